"""Writing a zip whose bytes depend on its members only.

Members that come from another zip keep their compressed streams: nothing is compressed
again, so no zlib build or processor can change a byte. Everything else is stored.

Source: PKWARE APPNOTE.TXT 6.3.10, sections 4.3.7, 4.3.12, 4.3.14 to 4.3.16, 4.5.3.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from isal.isal_zlib import crc32

from bundler.moment import Moment
from bundler.reproducible import FILE_MODE, OutputFile
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


class GrowingMember:
    """A stored member whose length is not known beforehand."""

    def __init__(self, output: OutputFile) -> None:
        self._output = output
        self.size = 0
        self.crc32 = 0

    def write(self, data: bytes) -> int:
        """Append bytes."""
        self._output.write(data)
        self.crc32 = crc32(data, self.crc32)
        self.size += len(data)
        return len(data)


class ZipWriter:
    """Appends members to an output; `close` writes the directory.

    Args:
        output: the file.
        moment: the time of every member.
    """

    def __init__(self, output: OutputFile, moment: Moment) -> None:
        self._output = output
        self._moment = moment
        self._directory: list[bytes] = []

    def add(self, name: str, data: bytes, mode: int = FILE_MODE) -> None:
        """Store bytes."""
        size = len(data)
        member = ZipMember(name, STORED, crc32(data), size, size, mode)
        self.add_stream(member, [data])

    def add_stream(self, member: ZipMember, chunks: Iterable[bytes]) -> None:
        """Copy a stream as it is.

        Raises:
            ValueError: the stream has another length than the member says; the output is
                then useless.
        """
        offset, large = self._output.size, _is_large(member)
        self._output.write(self._local_header(member, large=large))
        start = self._output.size
        for chunk in chunks:
            self._output.write(chunk)
        written = self._output.size - start
        if written != member.compressed_size:
            message = f"{member.name}: {written} bytes instead of {member.compressed_size}"
            raise ValueError(message)
        self._directory.append(self._directory_entry(member, offset, large=large))

    @contextmanager
    def open_stored(self, name: str, maximum: int) -> Iterator[GrowingMember]:
        """Store what is written in the block; its header is filled in afterwards.

        Args:
            name: posix path inside the zip, ASCII.
            maximum: bytes that it may grow to, which decide the form of its header.

        Raises:
            ValueError: it grew larger; the output is then useless.
        """
        large = _is_large(ZipMember(name, STORED, 0, maximum, maximum))
        empty = ZipMember(name, STORED, 0, 0, 0)
        offset = self._output.reserve(len(self._local_header(empty, large=large)))
        content = GrowingMember(self._output)
        yield content
        if content.size > maximum:
            message = f"{name}: {content.size} bytes, more than {maximum}"
            raise ValueError(message)
        member = ZipMember(name, STORED, content.crc32, content.size, content.size)
        self._output.fill(offset, self._local_header(member, large=large))
        self._directory.append(self._directory_entry(member, offset, large=large))

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

    def _local_header(self, member: ZipMember, *, large: bool) -> bytes:
        name = member.name.encode("ascii")
        extra = struct.pack("<2H2Q", 1, 16, member.size, member.compressed_size) if large else b""
        common = self._common(member, large, large)
        return _LOCAL.pack(b"PK\3\4", *common, len(name), len(extra)) + name + extra

    def _common(self, member: ZipMember, large: bool, zip64: bool) -> tuple[int, ...]:
        """Give the fields that local header and directory share."""
        sizes = (_LIMIT, _LIMIT) if large else (member.compressed_size, member.size)
        version = _ZIP64 if zip64 else _PLAIN
        time, date = self._moment.zip_time, self._moment.zip_date
        return (version, 0, member.method, time, date, member.crc32, *sizes)

    def _directory_entry(self, member: ZipMember, offset: int, *, large: bool) -> bytes:
        name = member.name.encode("ascii")
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


def _is_large(member: ZipMember) -> bool:
    """Say whether its sizes need the 64-bit form."""
    return max(member.size, member.compressed_size) >= _LIMIT
