"""Finding where a zip's central directory lies, from the record at the end of the file.

Source: PKWARE APPNOTE.TXT 6.3.10, sections 4.3.14 to 4.3.16.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bundler.errors import ArchiveError, Fault

ReadAt = Callable[[int, int], bytes]
"""Reads `length` bytes at `offset`; gives fewer at the end of the file."""

MAXIMUM_MEMBERS = 10_000
MAXIMUM_DIRECTORY = 8 * 1024 * 1024
_END = struct.Struct("<4s4H2LH")
_END64_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")


@dataclass(frozen=True)
class DirectoryPlace:
    """Where the directory lies.

    Args:
        offset: where it begins, bytes.
        size: bytes.
        entries: how many it has.
    """

    offset: int
    size: int
    entries: int


@dataclass(frozen=True)
class _End:
    place: DirectoryPlace
    is_split: bool


def refusal(faults: Iterable[Fault]) -> ArchiveError:
    """Say that a zip is whole and yet not to be unpacked."""
    return ArchiveError(
        "this zip is refused",
        why="an archive is unpacked only if every entry is safe and means one thing",
        next_step="fetch NVIDIA's own archive again; do not repack it",
        faults=dict.fromkeys(faults),
    )


def damage(what: str) -> ArchiveError:
    """Say that a zip cannot be read."""
    return ArchiveError(
        f"the zip is damaged: {what}", next_step="fetch the archive again; never repair it"
    )


def find_directory(read_at: ReadAt, file_size: int) -> DirectoryPlace:
    """Find the directory, which must end where the end record begins.

    Args:
        read_at: access to the zip's bytes.
        file_size: bytes.

    Raises:
        ArchiveError: there is no end record, it contradicts itself, or it asks too much.
    """
    tail_offset = max(0, file_size - _END.size - 0xFFFF)
    tail = read_at(tail_offset, file_size - tail_offset)
    position = tail.rfind(b"PK\x05\x06")
    if position < 0 or len(tail) - position < _END.size:
        raise damage("its end, which lists the members, is missing: an unfinished download?")
    _, disk, start_disk, here, total, size, offset, comment = _END.unpack_from(tail, position)
    if position + _END.size + comment != len(tail):
        raise damage("bytes follow its end, or its end is cut off")
    end = _End(
        DirectoryPlace(offset, size, total), is_split=bool(disk or start_disk or here != total)
    )
    end_offset = tail_offset + position
    locator_offset = max(0, end_offset - _END64_LOCATOR.size)
    locator = read_at(locator_offset, end_offset - locator_offset)
    # Looked for even where it is not needed: other readers use it whenever it is there.
    if len(locator) == _END64_LOCATOR.size and locator.startswith(b"PK\x06\x07"):
        larger, end_offset = _read_end64(read_at, locator, locator_offset)
        _check_agreement(end.place, larger.place)
        end = larger
    _check(end, end_offset)
    return end.place


def _read_end64(read_at: ReadAt, locator: bytes, locator_offset: int) -> tuple[_End, int]:
    _, disk, offset, disks = _END64_LOCATOR.unpack(locator)
    record = read_at(offset, _END64.size) if offset < locator_offset else b""
    if len(record) < _END64.size or not record.startswith(b"PK\x06\x06"):
        raise damage("its zip64 directory record is missing")
    _, length, _, _, here_disk, start_disk, here, total, size, start = _END64.unpack(record)
    # The length does not count its own field and the signature.
    if offset + 12 + length != locator_offset:
        raise damage("bytes lie between its zip64 directory record and the locator")
    is_split = bool(disk or here_disk or start_disk or disks > 1 or here != total)
    return _End(DirectoryPlace(start, size, total), is_split), offset


def _check_agreement(small: DirectoryPlace, large: DirectoryPlace) -> None:
    agrees = (
        small.offset in (0xFFFFFFFF, large.offset)
        and small.size in (0xFFFFFFFF, large.size)
        and small.entries in (0xFFFF, large.entries)
    )
    if not agrees:
        raise refusal([Fault("", "has a zip64 directory record that contradicts its end record")])


def _check(end: _End, end_offset: int) -> None:
    place = end.place
    if end.is_split:
        raise refusal([Fault("", "is one part of a zip split over several files")])
    if place.entries > MAXIMUM_MEMBERS or place.size > MAXIMUM_DIRECTORY:
        what = f"has {place.entries:,} members in a directory of {place.size:,} bytes"
        raise refusal([Fault("", f"{what}, more than a cuDNN archive can have")])
    if place.offset + place.size != end_offset:
        surplus = end_offset - place.offset - place.size
        what = f"has {surplus:,} bytes before it or inside it that belong to no member"
        if surplus < 0:
            what = f"lacks {-surplus:,} bytes of its beginning or middle"
        raise refusal([Fault("", what)])
