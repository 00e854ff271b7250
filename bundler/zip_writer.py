"""Writing a zip whose bytes depend on its members only.

Members that come from another zip keep their compressed streams: nothing is compressed
again, so no zlib build or processor can change a byte. Everything else is stored.

Source: PKWARE APPNOTE.TXT 6.3.10, sections 4.3.7, 4.3.12, 4.3.14 to 4.3.16, 4.5.3.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass

from bundler.reproducible import FILE_MODE, ZIP_DATE, ZIP_TIME, OutputFile
from bundler.zip_directory import STORED

_LIMIT = 0xFFFFFFFF
_LOCAL = struct.Struct("<4s5H3L2H")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_END64 = struct.Struct("<4sQ2H2L4Q")
_END64_LOCATOR = struct.Struct("<4sLQL")
_END = struct.Struct("<4s4H2LH")
_PLAIN, _ZIP64 = 20, 45
_MADE_BY_UNIX = 3 << 8
_REGULAR_FILE = 0o100000


@dataclass(frozen=True)
class ZipMember:
    """A member whose stream is already made.

    Args:
        name: posix path inside the zip, ASCII.
        method: of the stream.
        crc32: of the unpacked bytes.
        size: unpacked bytes.
        compressed_size: bytes of the stream.
        mode: permission bits.
    """

    name: str
    method: int
    crc32: int
    size: int
    compressed_size: int
    mode: int = FILE_MODE


class ZipWriter:
    """Appends members to an output; `close` writes the directory."""

    def __init__(self, output: OutputFile) -> None:
        self._output = output
        self._directory: list[bytes] = []

    def add(self, name: str, data: bytes, mode: int = FILE_MODE) -> None:
        """Store bytes."""
        size = len(data)
        member = ZipMember(name, STORED, zlib.crc32(data), size, size, mode)
        self.add_stream(member, [data])

    def add_stream(self, member: ZipMember, chunks: Iterable[bytes]) -> None:
        """Copy a stream as it is.

        Raises:
            ValueError: the stream has another length than the member says; the output is
                then useless.
        """
        offset = self._output.size
        name = member.name.encode("ascii")
        large = max(member.size, member.compressed_size) >= _LIMIT
        extra = struct.pack("<2H2Q", 1, 16, member.size, member.compressed_size) if large else b""
        self._output.write(
            _LOCAL.pack(b"PK\3\4", *self._common(member, large, large), len(name), len(extra))
        )
        self._output.write(name + extra)
        for chunk in chunks:
            self._output.write(chunk)
        written = self._output.size - offset - _LOCAL.size - len(name) - len(extra)
        if written != member.compressed_size:
            message = f"{member.name}: {written} bytes instead of {member.compressed_size}"
            raise ValueError(message)
        self._directory.append(self._directory_entry(member, name, offset))

    def close(self) -> None:
        """Write the directory."""
        start = self._output.size
        for entry in self._directory:
            self._output.write(entry)
        size, count = self._output.size - start, len(self._directory)
        if start >= _LIMIT or count >= 0xFFFF:
            self._write_end64(start, size, count)
        self._output.write(
            _END.pack(
                b"PK\5\6", 0, 0, min(count, 0xFFFF), min(count, 0xFFFF), size, min(start, _LIMIT), 0
            )
        )

    def _common(self, member: ZipMember, large: bool, zip64: bool) -> tuple[int, ...]:
        """Give the fields that local header and directory share."""
        sizes = (_LIMIT, _LIMIT) if large else (member.compressed_size, member.size)
        version = _ZIP64 if zip64 else _PLAIN
        return (version, 0, member.method, ZIP_TIME, ZIP_DATE, member.crc32, *sizes)

    def _directory_entry(self, member: ZipMember, name: bytes, offset: int) -> bytes:
        large = max(member.size, member.compressed_size) >= _LIMIT
        values = [member.size, member.compressed_size] if large else []
        values += [offset] if offset >= _LIMIT else []
        extra = struct.pack(f"<2H{len(values)}Q", 1, 8 * len(values), *values) if values else b""
        common = self._common(member, large, bool(values))
        attributes = (_REGULAR_FILE | member.mode) << 16
        entry = _ENTRY.pack(
            b"PK\1\2",
            _MADE_BY_UNIX | common[0],
            *common,
            len(name),
            len(extra),
            *(0, 0, 0),
            attributes,
            min(offset, _LIMIT),
        )
        return entry + name + extra

    def _write_end64(self, start: int, size: int, count: int) -> None:
        record_offset = self._output.size
        version = _MADE_BY_UNIX | _ZIP64
        length = _END64.size - 12
        self._output.write(
            _END64.pack(b"PK\6\6", length, version, _ZIP64, 0, 0, count, count, size, start)
        )
        self._output.write(_END64_LOCATOR.pack(b"PK\6\7", 0, record_offset, 1))
