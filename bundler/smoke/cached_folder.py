"""Folders that are dear to make and are made once per machine, whoever else is at it.

They play Windows on another system (a Wine prefix, a Windows Python), so nothing here is
used on Windows.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bundler.errors import MissingError
from bundler.folder_lock import FolderLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a lock file exclusively."""
    lock = FolderLock(path)
    try:
        lock.take()
        yield
    finally:
        lock.close()


def make_once(folder: Path, build: Callable[[Path], None]) -> Path:
    """Make a folder that does not exist yet: all of it or nothing, and once.

    Args:
        folder: the final place.
        build: fills an empty folder beside the final one, which is then renamed; what
            it starts must not keep the folder's old name in mind.

    Returns:
        The folder.

    Raises:
        MissingError: the place cannot be written. Whatever `build` raises.
    """
    if folder.exists():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MissingError(
            f"cannot make the cache folder {folder.parent}",
            why=str(error),
            next_step="set XDG_CACHE_HOME to a folder that can be written",
        ) from error
    with exclusive(folder.with_name(f"{folder.name}.lock")):
        if not folder.exists():
            _build_beside(folder, build)
    return folder


def _build_beside(folder: Path, build: Callable[[Path], None]) -> None:
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        build(unfinished)
        unfinished.rename(folder)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
