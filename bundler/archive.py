"""Opening NVIDIA's archive and reading its members, each byte checked.

Nothing is written here. An archive is one open file: its members are read from the
handle that was hashed, so a file swapped at the path later changes nothing, and one
rewritten in place is noticed by `check_unchanged`.
"""

from __future__ import annotations

import hashlib
import os
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from bundler.errors import ArchiveError, Fault, MissingError, UsageError
from bundler.trust import ArchiveDigest
from bundler.zip_directory import DEFLATED, ZipEntry, read_directory

CHUNK = 1024 * 1024
MAXIMUM_UNPACKED = 32 * 1024**3
MAXIMUM_RATIO = 100
"""Real archives unpack to 1.3 to 5 times their size; a hundred times is a bomb."""

_FORMATS = (
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "an empty zip"),
    (b"PK\x07\x08", "one part of a zip split over several files"),
    (b"PK00PK\x03\x04", "one part of a zip split over several files"),
    (b"\xfd7zXZ\x00", "a tar.xz, NVIDIA's format for Linux"),
    (b"\x1f\x8b", "a gzip file (tgz), NVIDIA's older format for Linux"),
    (b"MZ", "a Windows program, perhaps an installer"),
    (b"Rar!", "a RAR file"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip file"),
    (b"\x7fELF", "a Linux program"),
    (b"version https://git-lfs", "a Git LFS pointer, which stands in for a file"),
)
_WEB_PAGE = "a web page"
_MARKUP = (b"<!doctype", b"<html", b"<head", b"<?xml", b"<!--")


@dataclass(frozen=True)
class _SharedFile:
    """One open file that several threads read."""

    name: str
    stream: BinaryIO
    lock: threading.Lock

    def read_at(self, offset: int, length: int) -> bytes:
        with self.lock, _reading(self.name):
            self.stream.seek(offset)
            return self.stream.read(length)


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
            crc32 = zlib.crc32(chunk, crc32)
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
        if _stamp(self._file.stream) != self._stamp:
            raise ArchiveError(
                f"{self.name} changed while it was being read",
                why="another program is writing to it, perhaps an unfinished download",
                next_step="wait until the file is complete, then run the command again",
            )


@contextmanager
def open_archive(path: Path) -> Iterator[tuple[Archive, ArchiveDigest]]:
    """Open an archive, hash it whole, and read its directory.

    The hash comes first: it is what trust rests on, and a damaged file is reported with
    the hash that was found.

    Raises:
        UsageError: there is no such file, or it may not be read.
        ArchiveError: it is not a zip, damaged, or refused for its structure.
    """
    with _open(path) as stream:
        file = _SharedFile(path.name, stream, threading.Lock())
        with _reading(path.name):
            stamp = _stamp(stream)
            _check_format(path.name, stream.read(1024), stamp[0])
            digest = digest_stream(stream)
        entries = _read_entries(file, digest)
        yield Archive(path.name, digest.size, entries, file, stamp), digest


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


def _read_entries(file: _SharedFile, digest: ArchiveDigest) -> tuple[ZipEntry, ...]:
    try:
        entries = read_directory(file.read_at, digest.size)
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


def digest_stream(stream: BinaryIO) -> ArchiveDigest:
    """Hash a file from its beginning, with constant memory."""
    sha256, md5, size = hashlib.sha256(), hashlib.md5(usedforsecurity=False), 0
    stream.seek(0)
    while chunk := stream.read(CHUNK):
        sha256.update(chunk)
        md5.update(chunk)
        size += len(chunk)
    return ArchiveDigest(size=size, sha256=sha256.hexdigest(), md5=md5.hexdigest())


def _stamp(stream: BinaryIO) -> tuple[int, int]:
    status = os.fstat(stream.fileno())
    return status.st_size, status.st_mtime_ns


def _inflate(entry: ZipEntry, chunks: Iterator[bytes]) -> Iterator[bytes]:
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        for chunk in chunks:
            data = chunk
            while data:
                yield inflater.decompress(data, CHUNK)
                data = inflater.unconsumed_tail
            # Stopped here, for zlib would keep everything that follows in memory.
            if inflater.unused_data:
                raise _damaged(entry.name, "is damaged: bytes follow its compressed stream")
        yield inflater.flush()
    except zlib.error as error:
        raise _damaged(entry.name, "is damaged: its compressed stream is broken") from error
    if not inflater.eof:
        raise _damaged(entry.name, "is cut off: its compressed stream has no end")


def _damaged(name: str, what: str) -> ArchiveError:
    return ArchiveError(
        "the archive is damaged",
        next_step="fetch it again; never repair it",
        faults=[Fault(name, what)],
    )


def _check_format(name: str, head: bytes, size: int) -> None:
    kind = _format_of(head)
    if kind == "zip":
        return
    if kind.startswith(("a tar.xz", "a gzip")):
        raise MissingError(
            f"{name} is {kind}, whatever its name says",
            why="this version reads NVIDIA's Windows archives (.zip)",
            next_step="use the windows-x86_64 archive of the same release",
        )
    next_step = "fetch the archive again; a cuDNN archive is hundreds of megabytes"
    if kind == _WEB_PAGE:
        next_step = (
            "NVIDIA's download needs a login or another address: open the page, log in, retry"
        )
    raise ArchiveError(
        f"{name} is {kind}, not a cuDNN archive ({size:,} bytes)", next_step=next_step
    )


def _format_of(head: bytes) -> str:
    if not head:
        return "empty"
    for magic, kind in _FORMATS:
        if head.startswith(magic):
            return kind
    if head[257:262] == b"ustar":
        return "a tar file"
    if not head.strip(b"\0"):
        return "filled with zeros, as an unfinished download may be"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if text.startswith(_MARKUP):
        return _WEB_PAGE
    return "of no known format"


def _check_bomb(entries: tuple[ZipEntry, ...], size: int) -> None:
    unpacked = sum(entry.size for entry in entries)
    if unpacked > MAXIMUM_UNPACKED or unpacked > max(MAXIMUM_RATIO * size, 64 * CHUNK):
        raise ArchiveError(
            f"it declares {unpacked:,} unpacked bytes in {size:,}",
            why="no cuDNN archive comes near that; this is what a zip bomb looks like",
            next_step="fetch NVIDIA's own archive",
        )
