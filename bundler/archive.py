"""Opening NVIDIA's archive and reading its members, each byte checked.

Nothing is written here. An archive is one open file: its members are read from the
handle that was hashed, so a file swapped at the path later changes nothing, and one
rewritten in place is noticed by `check_unchanged`.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from isal import isal_zlib

from bundler.archive_format import check_format
from bundler.errors import ArchiveError, Fault, UsageError
from bundler.trust import ArchiveDigest
from bundler.zip_directory import DEFLATED, ZipEntry, read_directory

CHUNK = 1024 * 1024
MAXIMUM_UNPACKED = 32 * 1024**3
MAXIMUM_RATIO = 100
"""Real archives unpack to 1.3 to 5 times their size; a hundred times is a bomb."""

# Its stub says an instance where the module holds the class.
_InflateError = cast("type[Exception]", isal_zlib.error)


@dataclass(frozen=True)
class _SharedFile:
    """One open file that several threads read, and somebody who counts the bytes."""

    name: str
    stream: BinaryIO
    lock: threading.Lock
    count: Callable[[int], None]

    def read_at(self, offset: int, length: int) -> bytes:
        with self.lock, _reading(self.name):
            self.stream.seek(offset)
            data = self.stream.read(length)
        self.count(len(data))
        return data


@dataclass(frozen=True)
class Archive:
    """An open, structurally sound archive.

    Args:
        name: the file's own name, for messages only.
        size: bytes.
        entries: its files, in the order of its directory.
    """

    name: str
    size: int
    entries: tuple[ZipEntry, ...]
    _file: _SharedFile
    _stamp: tuple[int, int]

    def read_raw(self, entry: ZipEntry) -> Iterator[bytes]:
        """Yield the entry's bytes as they lie in the zip, compressed or not.

        Raises:
            ArchiveError: the file ends early.
        """
        position, left = entry.data_offset, entry.compressed_size
        while left:
            chunk = self._file.read_at(position, min(CHUNK, left))
            if not chunk:
                raise _damaged(entry.name, "is cut off: the archive ends in the middle of it")
            yield chunk
            position, left = position + len(chunk), left - len(chunk)

    def read(self, entry: ZipEntry) -> Iterator[bytes]:
        """Yield the entry's unpacked bytes, and check size and CRC at the end.

        Stops as soon as more arrives than was declared, so a lie about the size cannot
        fill a disk.

        Raises:
            ArchiveError: the stream is damaged, or its size or CRC is not as declared.
        """
        crc32, size = 0, 0
        chunks = self.read_raw(entry)
        for chunk in _inflate(entry, chunks) if entry.method == DEFLATED else chunks:
            size += len(chunk)
            if size > entry.size:
                raise _damaged(
                    entry.name,
                    f"is damaged: it unpacks to more than the {entry.size:,} bytes it declares",
                )
            crc32 = isal_zlib.crc32(chunk, crc32)
            yield chunk
        if size != entry.size:
            raise _damaged(
                entry.name,
                f"is damaged: it unpacks to {size:,} of the {entry.size:,} bytes it declares",
            )
        if crc32 != entry.crc32:
            raise _damaged(entry.name, "is damaged: its checksum (CRC-32) is wrong")

    def check_unchanged(self) -> None:
        """Make sure nobody wrote to the file since it was opened.

        Raises:
            ArchiveError: its size or modification time changed.
        """
        _check_unchanged(self._file, self._stamp)


@dataclass(frozen=True)
class ArchiveFile:
    """An open file that begins like an archive, hashed and not yet looked into.

    Args:
        name: the file's own name, for messages only.
        digest: size and hashes of the whole file.
    """

    name: str
    digest: ArchiveDigest
    _file: _SharedFile
    _stamp: tuple[int, int]

    def check_unchanged(self) -> None:
        """Make sure nobody wrote to the file since it was opened.

        Raises:
            ArchiveError: its size or modification time changed.
        """
        _check_unchanged(self._file, self._stamp)

    def structure(self, *, is_known: bool = False) -> Archive:
        """Read the directory.

        Args:
            is_known: the hash is that of one of NVIDIA's own archives, so unused bytes
                between members are an oddity of NVIDIA's tools and no hiding place.

        Raises:
            ArchiveError: it is damaged, or refused for its structure.
        """
        entries = _read_entries(self._file, self.digest, is_known=is_known)
        return Archive(self.name, self.digest.size, entries, self._file, self._stamp)


@contextmanager
def open_file(
    path: Path, *, with_md5: bool = False, count: Callable[[int], None] = lambda _size: None
) -> Iterator[ArchiveFile]:
    """Open an archive and hash it whole, before anything in it is believed.

    Args:
        path: of the archive.
        with_md5: a witness names an MD5, which takes twice as long as the SHA-256.
        count: told of the bytes read, from several threads, as long as the archive is open.

    Raises:
        UsageError: there is no such file, or it may not be read.
        ArchiveError: it is not a zip.
    """
    with _open(path) as stream:
        file = _SharedFile(path.name, stream, threading.Lock(), count)
        with _reading(path.name):
            stamp = _stamp(stream)
            check_format(path.name, stream.read(1024), stamp[0])
        if stamp[0] > MAXIMUM_UNPACKED:
            raise ArchiveError(
                f"{path.name} has {stamp[0]:,} bytes",
                why="no cuDNN archive comes near that",
                next_step="fetch NVIDIA's own archive",
            )
        digest = _digest(file, with_md5=with_md5)
        yield ArchiveFile(path.name, digest, file, stamp)


@contextmanager
def open_archive(path: Path) -> Iterator[tuple[Archive, ArchiveDigest]]:
    """Open an archive that nobody needs to vouch for; see `open_file` and `structure`."""
    with open_file(path) as file:
        yield file.structure(), file.digest


def _open(path: Path) -> BinaryIO:
    try:
        if path.is_file():
            return path.open("rb")
        what = "is a folder" if path.is_dir() else "is not a file" if path.exists() else ""
        raise UsageError(
            f"{path} {what or 'does not exist'}", next_step="give the path of NVIDIA's archive"
        )
    except OSError as error:
        raise UsageError(
            f"cannot open {path}: {error.strerror}",
            next_step="give the path of a file that you may read",
        ) from error


@contextmanager
def _reading(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ArchiveError(
            f"{name} cannot be read: {error.strerror}",
            why="the disk or the network share that it lies on fails",
            next_step="copy the archive to a local disk and run the command again",
        ) from error


def _read_entries(
    file: _SharedFile, digest: ArchiveDigest, *, is_known: bool
) -> tuple[ZipEntry, ...]:
    try:
        entries = read_directory(file.read_at, digest.size, may_have_gaps=is_known)
        _check_bomb(entries, digest.size)
    except ArchiveError as error:
        found = f"the file has {digest.size:,} bytes and SHA-256 {digest.sha256}"
        raise ArchiveError(
            f"{file.name}: {error.what}",
            why=f"{error.why}; {found}" if error.why else found,
            next_step=error.next_step,
            faults=error.faults,
        ) from error
    return entries


def _digest(file: _SharedFile, *, with_md5: bool) -> ArchiveDigest:
    """Hash the whole file, each algorithm in a thread of its own."""
    with ThreadPoolExecutor() as pool:
        md5 = pool.submit(_hash, file, "md5") if with_md5 else None
        size, sha256 = _hash(file, "sha256")
        return ArchiveDigest(size, sha256, md5.result()[1] if md5 else None)


def _hash(file: _SharedFile, algorithm: str) -> tuple[int, str]:
    digest, size = hashlib.new(algorithm, usedforsecurity=algorithm != "md5"), 0
    while chunk := file.read_at(size, CHUNK):
        digest.update(chunk)
        size += len(chunk)
    return size, digest.hexdigest()


def _stamp(stream: BinaryIO) -> tuple[int, int]:
    status = os.fstat(stream.fileno())
    return status.st_size, status.st_mtime_ns


def _check_unchanged(file: _SharedFile, stamp: tuple[int, int]) -> None:
    if _stamp(file.stream) != stamp:
        raise ArchiveError(
            f"{file.name} changed while it was being read",
            why="another program is writing to it, perhaps an unfinished download",
            next_step="wait until the file is complete, then run the command again",
        )


def _inflate(entry: ZipEntry, chunks: Iterator[bytes]) -> Iterator[bytes]:
    inflater = isal_zlib.decompressobj(-isal_zlib.MAX_WBITS)
    try:
        for chunk in chunks:
            data = chunk
            while data:
                yield inflater.decompress(data, CHUNK)
                data = inflater.unconsumed_tail
            # Stopped here, for isal would keep everything that follows in memory.
            if inflater.unused_data:
                raise _damaged(entry.name, "is damaged: bytes follow its compressed stream")
        yield inflater.flush()
    except _InflateError as error:
        raise _damaged(entry.name, "is damaged: its compressed stream is broken") from error
    if not inflater.eof:
        raise _damaged(entry.name, "is cut off: its compressed stream has no end")


def _damaged(name: str, what: str) -> ArchiveError:
    return ArchiveError(
        "the archive is damaged",
        next_step="fetch it again; never repair it",
        faults=[Fault(name, what)],
    )


def _check_bomb(entries: tuple[ZipEntry, ...], size: int) -> None:
    unpacked = sum(entry.size for entry in entries)
    if unpacked > MAXIMUM_UNPACKED or unpacked > max(MAXIMUM_RATIO * size, 64 * CHUNK):
        raise ArchiveError(
            f"it declares {unpacked:,} unpacked bytes in {size:,}",
            why="no cuDNN archive comes near that; this is what a zip bomb looks like",
            next_step="fetch NVIDIA's own archive",
        )
