"""Reading a tar from outside with bounded memory.

Python's reader keeps every header it sees, and takes long names and extended headers whole,
however long they say they are; compressed, a gigabyte of them is a file of 60 kB.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import IO, NoReturn

_MAXIMUM_MEMBERS = 20_000
_MAXIMUM_HEADER = 1024 * 1024
"""Bytes of an extended header; real ones hold a path or a time."""

_EXTENDED = frozenset({
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
})  # fmt: skip


def tar_members(stream: IO[bytes]) -> Iterator[tuple[tarfile.TarInfo, IO[bytes]]]:
    """Yield a tar's files with their content, which must be read before the next one.

    Args:
        stream: the tar, already decompressed; read forwards only.

    Raises:
        tarfile.TarError: it is damaged.
        ValueError: it asks for more memory than a package's tar needs.
    """
    with tarfile.open(fileobj=stream, mode="r|", tarinfo=_BoundedTarInfo) as tar:
        for number, entry in enumerate(tar):
            if number >= _MAXIMUM_MEMBERS:
                message = f"it has more than {_MAXIMUM_MEMBERS:,} members"
                raise ValueError(message)
            content = tar.extractfile(entry) if entry.isfile() else None
            if content is not None:
                yield entry, content


class _BoundedTarInfo(tarfile.TarInfo):
    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _BoundedTarInfo:
        entry = super().frombuf(buf, encoding, errors)
        if entry.type == tarfile.GNUTYPE_SPARSE:
            _refuse_sparse()
        if entry.type in _EXTENDED and entry.size > _MAXIMUM_HEADER:
            message = f"it has a header of {entry.size:,} bytes"
            raise ValueError(message)
        return entry

    # A sparse file may say that it has an exabyte of zeros. Its three later forms are told by
    # their headers only, and read here.
    def _proc_gnusparse_00(self, *_: object) -> NoReturn:
        _refuse_sparse()

    def _proc_gnusparse_01(self, *_: object) -> NoReturn:
        _refuse_sparse()

    def _proc_gnusparse_10(self, *_: object) -> NoReturn:
        _refuse_sparse()


def _refuse_sparse() -> NoReturn:
    message = "it holds a sparse file, which no package does"
    raise ValueError(message)
