"""Locks that the system drops with their process, so that a killed run blocks nobody."""

from __future__ import annotations

import os
import sys
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


class FolderLock:
    """A lock that many users of a folder share, and that the last one can turn exclusive.

    Args:
        path: the lock file; it stays, because removing it would race.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    def share(self) -> None:
        """Wait until nobody holds it exclusively; on Windows there is no such lock."""
        if sys.platform != "win32":
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def take(self) -> None:
        """Wait until nobody else holds it."""
        if sys.platform == "win32":
            msvcrt.locking(self._descriptor, msvcrt.LK_LOCK, 1)
        else:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def try_take(self) -> bool:
        """Take it exclusively if nobody else holds it."""
        try:
            if sys.platform == "win32":
                msvcrt.locking(self._descriptor, msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Drop it."""
        os.close(self._descriptor)
