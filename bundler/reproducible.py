"""Determinism, in one place: time, order, modes, owner, and how a file is finished.

Every writer of this package takes its constants from here, so that a reviewer who wants
to know why two builds are equal reads one page.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from bundler.errors import RefusedError

ZIP_DATE: Final = 0x0021
"""1980-01-01 in MS-DOS form, the earliest date a zip can say."""

ZIP_TIME: Final = 0
"""Midnight in MS-DOS form."""

TAR_TIME: Final = 315532800
"""The same instant in seconds since 1970, UTC."""

CONDA_TIMESTAMP: Final = TAR_TIME * 1000
"""The same instant in milliseconds, as conda's index wants it."""

FILE_MODE: Final = 0o644
PROGRAM_MODE: Final = 0o755

ZSTD_WORKERS: Final = 2
"""libzstd's output depends on whether it has workers, not on how many; never 0."""


@dataclass(frozen=True)
class Written:
    """A finished file.

    Args:
        path: where it lies.
        size: bytes.
        sha256: lowercase hex SHA-256, taken while writing.
    """

    path: Path
    size: int
    sha256: str


class OutputFile:
    """A file being written, hashed as it grows."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._sha256 = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> None:
        """Append bytes."""
        self._stream.write(data)
        self._sha256.update(data)
        self.size += len(data)

    @property
    def sha256(self) -> str:
        """The hash of what was written so far, lowercase hex."""
        return self._sha256.hexdigest()


@contextmanager
def refusing_to_write(path: Path) -> Iterator[None]:
    """Turn every failure of the system inside the block into one about a path.

    Raises:
        RefusedError: the folder is full, not writable, or the old file is in use.
    """
    try:
        yield
    except OSError as error:
        raise RefusedError(
            f"cannot write {path}: {error.strerror or error}",
            why="the disk is full, the folder is not writable, or the old file is in use",
            next_step="free space, close the program that has it open, or choose another folder",
        ) from error


@contextmanager
def atomic_output(path: Path, scratch: Path | None = None) -> Iterator[OutputFile]:
    """Write a file that appears at its path whole or not at all.

    It is written under another name, flushed to the disk, and then renamed over whatever
    was there.

    Args:
        path: where it appears.
        scratch: a folder on the same disk for the unfinished file; that of the path when
            not given.

    Raises:
        RefusedError: the folder is full, not writable, or the old file is in use.
    """
    partial: Path | None = None
    try:
        with refusing_to_write(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(
                prefix=".", suffix=".part", dir=scratch or path.parent
            )
            partial = Path(name)
            with os.fdopen(descriptor, "wb") as stream:
                yield OutputFile(stream)
                stream.flush()
                os.fsync(stream.fileno())
            # mkstemp's 0600 would keep a package from being served.
            partial.chmod(FILE_MODE)
            partial.replace(path)
    finally:
        if partial is not None:
            with suppress(OSError):
                partial.unlink(missing_ok=True)


def write_bytes(path: Path, data: bytes) -> Written:
    """Write a small file whole or not at all."""
    with atomic_output(path) as output:
        output.write(data)
    return Written(path, output.size, output.sha256)


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file a second name, or a copy where the file system has no links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
