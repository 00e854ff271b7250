"""Comparing files that were installed, unpacked or packed with the lock they must equal."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bundler.errors import Fault
from bundler.inventory import CUDNN_LIBRARY
from bundler.lock import Lock, LockedFile


@dataclass(frozen=True)
class FoundFile:
    """A file that was found.

    Args:
        size: bytes.
        sha256: lowercase hex SHA-256.
    """

    size: int
    sha256: str


def find_files(folder: Path) -> dict[str, FoundFile]:
    """Hash every file directly inside a folder, by name."""
    return {
        entry.name: hash_file(Path(entry.path)) for entry in os.scandir(folder) if entry.is_file()
    }


def hash_file(path: Path) -> FoundFile:
    """Hash one file with constant memory."""
    with path.open("rb") as stream:
        return hash_stream(stream)


def hash_stream(stream: IO[bytes]) -> FoundFile:
    """Hash what is left of a stream with constant memory."""
    sha256, size = hashlib.sha256(), 0
    while chunk := stream.read(1024 * 1024):
        sha256.update(chunk)
        size += len(chunk)
    return FoundFile(size, sha256.hexdigest())


def compare(lock: Lock, found: Mapping[str, FoundFile]) -> list[Fault]:
    """List every way in which libraries differ from the lock.

    Files that are neither in the lock nor named like a cuDNN library are not looked at:
    an application's folder holds other things too.

    Args:
        lock: what must be there.
        found: the folder's files by name.
    """
    expected = {file.name: file for file in lock.runtime_files}
    differing = (_difference(file, found.get(name)) for name, file in expected.items())
    faults = [fault for fault in differing if fault is not None]
    strangers = (name for name in found.keys() - expected.keys() if CUDNN_LIBRARY.fullmatch(name))
    what = "is not part of this release, and cuDNN may open it by name"
    return faults + [Fault(name, what) for name in sorted(strangers)]


def _difference(expected: LockedFile, found: FoundFile | None) -> Fault | None:
    if found is None:
        return Fault(expected.name, "is missing")
    if found.size != expected.size:
        return Fault(expected.name, f"has {found.size} bytes instead of {expected.size}")
    if found.sha256 != expected.sha256:
        return Fault(expected.name, f"has SHA-256 {found.sha256} instead of {expected.sha256}")
    return None
