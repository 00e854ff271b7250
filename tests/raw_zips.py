"""Zips made byte by byte, lies included: what the standard library would not write."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, replace

NAME = b"bin/cudnn64_8.dll"
CONTENT = b"cuDNN " * 40
IN_ZIP64 = 0xFFFFFFFF


@dataclass(frozen=True)
class LocalHeader:
    """Fields of a local header that differ from the directory's; none by default."""

    name: bytes | None = None
    method: int | None = None
    flags: int | None = None
    crc32: int | None = None
    size: int | None = None
    compressed: int | None = None
    extra: bytes = b""


HONEST = LocalHeader()
UNKNOWN_YET = LocalHeader(crc32=0, size=0, compressed=0)


@dataclass(frozen=True)
class Member:
    """One member as its directory entry describes it.

    Args:
        data: what lies in the zip, compressed or not.
        offset: of the local header, where the truth is not to be told.
        after: bytes between this member's stream and what follows.
    """

    name: bytes = NAME
    data: bytes = CONTENT
    method: int = 0
    flags: int = 0
    size: int = len(CONTENT)
    compressed: int = len(CONTENT)
    crc32: int = zlib.crc32(CONTENT)
    attributes: int = 0
    disk: int = 0
    offset: int | None = None
    extra: bytes = b""
    local: LocalHeader = HONEST
    after: bytes = b""

    def local_header(self) -> bytes:
        local = self.local
        name = self.name if local.name is None else local.name
        fields = (
            20,
            self.flags if local.flags is None else local.flags,
            self.method if local.method is None else local.method,
            0,
            33,
            self.crc32 if local.crc32 is None else local.crc32,
            self.compressed if local.compressed is None else local.compressed,
            self.size if local.size is None else local.size,
            len(name),
            len(local.extra),
        )
        return struct.pack("<4s5H3L2H", b"PK\x03\x04", *fields) + name + local.extra

    def directory_entry(self, offset: int) -> bytes:
        fields = (20, 20, self.flags, self.method, 0, 33, self.crc32, self.compressed, self.size)
        lengths = (len(self.name), len(self.extra), 0)
        where = (self.disk, 0, self.attributes, offset if self.offset is None else self.offset)
        fixed = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", *fields, *lengths, *where)
        return fixed + self.name + self.extra


@dataclass(frozen=True)
class Pieces:
    """A zip in pieces, so that tests can put something between them."""

    members: bytes
    directory: bytes
    count: int

    def end(self, comment: bytes = b"", disk: int = 0, shift: int = 0) -> bytes:
        """Make the end record."""
        where = (len(self.directory), len(self.members) + shift, len(comment))
        counts = (disk, disk, self.count, self.count)
        return struct.pack("<4s4H2LH", b"PK\x05\x06", *counts, *where) + comment


def pieces(*members: Member) -> Pieces:
    """Make a zip's pieces."""
    body, directory = b"", b""
    for member in members:
        directory += member.directory_entry(len(body))
        body += member.local_header() + member.data + member.after
    return Pieces(body, directory, len(members))


def made(*members: Member) -> bytes:
    """Make a whole zip."""
    parts = pieces(*members)
    return parts.members + parts.directory + parts.end()


@dataclass(frozen=True)
class Zip64End:
    """How a zip64 end differs from an honest one."""

    between: bytes = b""
    length: int = 44
    record_offset: int | None = None
    disk: int = 0
    disks: int = 1
    small_size: int = IN_ZIP64
    small_count: int = 0xFFFF


def made_zip64(*members: Member, end: Zip64End | None = None) -> bytes:
    """Make a whole zip with a zip64 end record."""
    parts, how = pieces(*members), end or Zip64End()
    at, size, count = len(parts.members), len(parts.directory), parts.count
    record = struct.pack("<4sQ2H2L", b"PK\x06\x06", how.length, 45, 45, how.disk, how.disk)
    record += struct.pack("<4Q", count, count, size, at)
    where = at + size if how.record_offset is None else how.record_offset
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, where, how.disks)
    counts = (0, 0, how.small_count, how.small_count)
    small = struct.pack("<4s4H2LH", b"PK\x05\x06", *counts, how.small_size, IN_ZIP64, 0)
    return parts.members + parts.directory + record + how.between + locator + small


def deflated(content: bytes = CONTENT, name: bytes = NAME) -> Member:
    """Make a compressed member."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = compressor.compress(content) + compressor.flush()
    crc32 = zlib.crc32(content)
    return Member(name, data, 8, 0, len(content), len(data), crc32)


def streamed(member: Member, form: str = "<3L", mark: bytes = b"") -> Member:
    """Put sizes and CRC after the stream, as writers to a pipe do."""
    descriptor = struct.pack(form, member.crc32, member.compressed, member.size)
    return replace(member, flags=8, local=UNKNOWN_YET, after=mark + descriptor)
