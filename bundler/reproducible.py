"""Determinism, in one place: modes, owner, compressor, and how a file is finished.

Every writer of this package takes its constants from here, so that a reviewer who wants
to know why two builds are equal reads one page.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from bundler.errors import RefusedError

FILE_MODE: Final = 0o644
PROGRAM_MODE: Final = 0o755

CHUNK: Final = 1024 * 1024


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
    """A file being written, hashed as it grows.

    A place may be left open and filled in later; such a file is hashed at its end.

    Args:
        stream: open for reading and writing.
        step: bytes between two calls of the next.
        grown: told that the file has grown by a step.
    """

    def __init__(
        self, stream: BinaryIO, step: int = 0, grown: Callable[[], None] | None = None
    ) -> None:
        self._stream = stream
        self._step, self._grown, self._told = step, grown, 0
        self._sha256 = hashlib.sha256()
        self._is_revised = False
        self.size = 0

    def write(self, data: bytes) -> None:
        """Append bytes."""
        self._stream.write(data)
        if not self._is_revised:
            self._sha256.update(data)
        self.size += len(data)
        if self._grown is not None and self.size - self._told >= self._step:
            self._told = self.size
            self._grown()

    def reserve(self, length: int) -> int:
        """Append a place that `fill` fills in.

        Args:
            length: bytes.

        Returns:
            where it begins.
        """
        offset, self._is_revised = self.size, True
        self.write(bytes(length))
        return offset

    def fill(self, offset: int, data: bytes) -> None:
        """Write into a reserved place."""
        self._stream.seek(offset)
        self._stream.write(data)
        self._stream.seek(self.size)

    def finish(self) -> None:
        """Hand everything to the system, and hash what could not be hashed on the way."""
        self._stream.flush()
        if self._is_revised:
            self._stream.seek(0)
            self._sha256 = hashlib.sha256()
            while chunk := self._stream.read(CHUNK):
                self._sha256.update(chunk)

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
def atomic_output(path: Path) -> Iterator[OutputFile]:
    """Write a file that appears at its path whole or not at all.

    It is written under another name, flushed to the disk, and then renamed over whatever
    was there.

    Args:
        path: where it appears.

    Raises:
        RefusedError: the folder is full, not writable, or the old file is in use.
    """
    partial: Path | None = None
    try:
        with refusing_to_write(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
            partial = Path(name)
            with os.fdopen(descriptor, "w+b") as stream:
                output = OutputFile(stream)
                yield output
                output.finish()
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
