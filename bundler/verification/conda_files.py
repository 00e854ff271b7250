"""A conda package as a set of files, read once from beginning to end.

The payload may unpack to no more than its lists declare, and a tar's headers may not ask
for more memory than a real one does.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, cast

from bundler import member_names
from bundler.archive import CHUNK, MAXIMUM_UNPACKED
from bundler.artifacts.conda_info import MAXIMUM_TEXT, READ_FAILURES
from bundler.compression import open_zstd_reader
from bundler.errors import Fault
from bundler.integrity import FoundFile, hash_stream
from bundler.lock import FILE_NAME
from bundler.lock_reading import parse_lock
from bundler.verification import FileFault, Unreadable
from bundler.verification.artifact_files import ZipFiles, damaged_artifact, member_chunks, too_long
from bundler.verification.listings import parse_paths
from bundler.zip_directory import ZipEntry
from bundler.zip_end import MAXIMUM_MEMBERS

_MAXIMUM_INFO = 64 * 1024 * 1024
_TAR_OVERHEAD = 4 * 1024 * 1024
_MAXIMUM_HEADER = 1024 * 1024
_EXTENDED = frozenset({
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
})  # fmt: skip
_LOCK = f"share/cudnn/{FILE_NAME}"


@dataclass(frozen=True)
class CondaFiles:
    """Both inner archives of a `.conda`, as they are laid out in a package cache.

    Args:
        stem: what the inner archives are named after.
        found: size and hash by path; those of `info` begin with `info/`.
        texts: the small files' bytes.
        sizes: bytes by path.
    """

    stem: str
    found: Mapping[str, FoundFile]
    texts: Mapping[str, bytes]
    sizes: Mapping[str, int]
    is_closed: bool = field(default=True, init=False)

    @property
    def blocked(self) -> Mapping[str, FileFault]:
        """Give nothing: links are refused."""
        return {}

    def read(self, path: str) -> bytes:
        """Give one small file; see `FileSet`."""
        if path not in self.texts:
            raise damaged_artifact(self.stem, too_long(path))
        return self.texts[path]

    def digests(self, paths: Collection[str]) -> dict[str, FoundFile | Unreadable]:
        """Give the hashes that were taken while reading; see `FileSet`."""
        return {path: self.found[path] for path in paths}


def read_conda(files: ZipFiles) -> CondaFiles:
    """Read both inner archives of a package once, from beginning to end.

    The payload may unpack to no more than its own list declares, which in turn may not
    exceed what an archive may unpack to.

    Raises:
        ArchiveError: it is damaged, hostile or no conda package.
    """
    name = files.archive.name
    try:
        info, package = (_inner(files, prefix) for prefix in ("info-", "pkg-"))
        if info.name.removeprefix("info-") != package.name.removeprefix("pkg-"):
            raise damaged_artifact(name, f"{info.name} and {package.name} do not belong together")
        reading = _CondaReading(name)
        reading.add(member_chunks(files.archive, info), _MAXIMUM_INFO, is_info=True)
        reading.add(member_chunks(files.archive, package), _limit(reading.texts), is_info=False)
    except READ_FAILURES as error:
        raise damaged_artifact(name, str(error)) from error
    if reading.faults:
        raise damaged_artifact(name, "", reading.faults)
    stem = package.name.removeprefix("pkg-").removesuffix(".tar.zst")
    sizes = {path: file.size for path, file in reading.found.items()}
    return CondaFiles(stem, reading.found, reading.texts, sizes)


class _Header(tarfile.TarInfo):
    """A header that is not read into memory whatever length it says it has."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Header:
        header = super().frombuf(buf, encoding, errors)
        if header.type in _EXTENDED and header.size > _MAXIMUM_HEADER:
            message = f"an inner archive has a header of {header.size:,} bytes"
            raise ValueError(message)
        return header


class _CondaReading:
    """What the inner archives hold, gathered while they stream by."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.found: dict[str, FoundFile] = {}
        self.texts: dict[str, bytes] = {}
        self.faults: list[Fault] = []

    def add(self, chunks: Iterator[bytes], limit: int, *, is_info: bool) -> None:
        """Read one inner archive of at most so many bytes."""
        with open_zstd_reader(cast("IO[bytes]", _Chunks(chunks))) as unpacked:
            bounded = _Bounded(unpacked, limit)
            with tarfile.open(
                fileobj=cast("IO[bytes]", bounded), mode="r|", tarinfo=_Header
            ) as tar:
                for number, member in enumerate(tar):
                    if number >= MAXIMUM_MEMBERS:
                        why = f"it has more than {MAXIMUM_MEMBERS:,} members"
                        raise damaged_artifact(self._name, why)
                    if not member.isdir():
                        self._add_member(tar, member, is_info=is_info)
            # What follows the end of the tar is nothing, or something hidden.
            while rest := bounded.read(CHUNK):
                if rest.strip(b"\0"):
                    raise damaged_artifact(self._name, "bytes follow the end of an inner archive")

    def _add_member(self, tar: tarfile.TarFile, member: tarfile.TarInfo, *, is_info: bool) -> None:
        path = member.name
        faults = list(member_names.faults_of(path))
        # A sparse file may say that it has an exabyte of zeros.
        if not member.isreg() or member.issparse():
            faults.append(Fault(member_names.shown(path), "is a link or a special file"))
        if is_info is not path.startswith("info/"):
            faults.append(Fault(member_names.shown(path), "lies in the wrong inner archive"))
        if path in self.found:
            faults.append(Fault(path, "occurs twice"))
        stream = tar.extractfile(member) if not faults else None
        self.faults += faults
        if stream is None:
            return
        if member.size <= MAXIMUM_TEXT and (is_info or path.endswith(_LOCK)):
            self.texts[path] = stream.read()
            stream = io.BytesIO(self.texts[path])
        self.found[path] = hash_stream(stream)


class _Chunks:
    """Makes a file of an iterator, for the zstd reader."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._left = b""

    def read(self, size: int) -> bytes:
        """Read at most so many bytes."""
        while not self._left:
            chunk = next(self._chunks, None)
            if chunk is None:
                return b""
            self._left = chunk
        data, self._left = self._left[:size], self._left[size:]
        return data


class _Bounded:
    """Stops a reader that wants more than was declared."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self._stream = stream
        self._left = self._limit = limit

    def read(self, size: int) -> bytes:
        """Read, or refuse."""
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            message = f"an inner archive unpacks to more than {self._limit:,} bytes"
            raise ValueError(message)
        return data


def _inner(files: ZipFiles, prefix: str) -> ZipEntry:
    entries = files.archive.entries
    found = [e for e in entries if e.name.startswith(prefix) and e.name.endswith(".tar.zst")]
    if len(entries) != 3 or len(found) != 1 or "metadata.json" not in files.sizes:
        why = "a conda package holds metadata.json, one info- and one pkg- archive, no more"
        raise damaged_artifact(files.archive.name, why)
    return found[0]


def _limit(texts: Mapping[str, bytes]) -> int:
    """Bound the payload by what its lists declare, and that by the lock where it is there."""
    listed = parse_paths(texts.get("info/paths.json", b""), "info/paths.json")
    limit = sum(file.size or MAXIMUM_TEXT for file in listed)
    if f"info/{FILE_NAME}" in texts:
        lock = parse_lock(texts[f"info/{FILE_NAME}"], f"info/{FILE_NAME}")
        limit = min(limit, sum(file.size for file in lock.runtime_files) + 2 * MAXIMUM_TEXT)
    return min(limit, MAXIMUM_UNPACKED) + _TAR_OVERHEAD
