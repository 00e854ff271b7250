"""Whether the installed files are those of the lock; installers do not check that."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._lock import Lock, LockedFile

_BLOCK = 1 << 20


@dataclass(frozen=True)
class Verification:
    """How the library folder differs from the lock; names without a folder, sorted.

    Args:
        missing: in the lock, and not there or not readable.
        changed: there with other bytes.
        extra: there, and not in the lock.
    """

    missing: tuple[str, ...]
    changed: tuple[str, ...]
    extra: tuple[str, ...]

    @property
    def is_intact(self) -> bool:
        """Say whether there is no difference."""
        return not (self.missing or self.changed or self.extra)


def verify_folder(folder: str, lock: Lock) -> Verification:
    """Compare every file of a library folder with the lock."""
    missing, changed = [], []
    for file in lock.files:
        try:
            if not _is_equal(os.path.join(folder, file.name), file):
                changed.append(file.name)
        except OSError:
            missing.append(file.name)
    known = {file.name for file in lock.files}
    extra = [name for name in _names(folder) if name not in known]
    return Verification(tuple(sorted(missing)), tuple(sorted(changed)), tuple(sorted(extra)))


def _is_equal(path: str, file: LockedFile) -> bool:
    if os.path.getsize(path) != file.size:
        return False
    digest = hashlib.sha256()
    with open(path, "rb") as opened:
        for block in iter(lambda: opened.read(_BLOCK), b""):
            digest.update(block)
    return digest.hexdigest() == file.sha256


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
