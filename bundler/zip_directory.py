"""Reading a zip's central directory, strictly.

The standard library's reader is lenient where an attacker wants leniency: it accepts
data before and after the zip, members that overlap, and local headers that contradict
the directory. Here every byte range is checked and every fault is listed.

Source: PKWARE APPNOTE.TXT 6.3.10, sections 4.3.7, 4.3.12, 4.3.14 to 4.3.16, 4.5.3.
"""

from __future__ import annotations

import stat
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from bundler import member_names
from bundler.errors import ArchiveError, Fault

ReadAt = Callable[[int, int], bytes]
"""Reads `length` bytes at `offset`; gives fewer at the end of the file."""

STORED, DEFLATED = 0, 8
MAXIMUM_MEMBERS = 10_000
MAXIMUM_DIRECTORY = 8 * 1024 * 1024
_END = struct.Struct("<4s4H2LH")
_END64_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_METHODS = {1: "Shrink", 6: "Implode", 9: "Deflate64", 12: "bzip2", 14: "LZMA", 93: "Zstandard"}


@dataclass(frozen=True)
class ZipEntry:
    """One file of the zip, with its stream located.

    Args:
        name: normalised member name.
        method: `STORED` or `DEFLATED`.
        crc32: of the unpacked bytes, as declared.
        size: unpacked bytes, as declared.
        compressed_size: bytes in the zip.
        data_offset: where the stream begins in the zip.
    """

    name: str
    method: int
    crc32: int
    size: int
    compressed_size: int
    data_offset: int


@dataclass(frozen=True)
class _End:
    offset: int
    entries: int
    size: int
    disk: int


@dataclass(frozen=True)
class _RawEntry:
    name: str
    raw_name: bytes
    flags: int
    method: int
    crc32: int
    sizes: tuple[int, int]
    offset: int
    attributes: int


def read_directory(read_at: ReadAt, file_size: int) -> tuple[ZipEntry, ...]:
    """Read and check the directory; directories themselves are left out.

    Args:
        read_at: access to the zip's bytes.
        file_size: bytes.

    Raises:
        ArchiveError: with every fault found.
    """
    end = _find_end(read_at, file_size)
    raw = list(_raw_entries(read_at(end.offset, end.size), end))
    faults = [fault for entry in raw for fault in _entry_faults(entry)]
    faults += member_names.collisions(entry.name for entry in raw)
    entries: list[ZipEntry] = []
    for item in raw:
        located = _locate(read_at, item, end.offset)
        if isinstance(located, Fault):
            faults.append(located)
        elif not item.name.endswith("/"):
            entries.append(located)
    faults += _overlaps(entries)
    if faults:
        raise _refusal(faults)
    return tuple(entries)


def _refusal(faults: Iterable[Fault]) -> ArchiveError:
    return ArchiveError(
        "this zip is refused",
        why="an archive is unpacked only if every entry is safe and means one thing",
        next_step="fetch NVIDIA's own archive again; do not repack it",
        faults=dict.fromkeys(faults),
    )


def _damaged(what: str) -> ArchiveError:
    return ArchiveError(
        f"the zip is damaged: {what}", next_step="fetch the archive again; never repair it"
    )


def _find_end(read_at: ReadAt, file_size: int) -> _End:
    tail_offset = max(0, file_size - _END.size - 0xFFFF)
    tail = read_at(tail_offset, file_size - tail_offset)
    position = tail.rfind(b"PK\x05\x06")
    if position < 0 or len(tail) - position < _END.size:
        message = "its directory is missing, so the end of the file is missing: an unfinished download?"
        raise _damaged(message)
    _, disk, start_disk, here, total, size, offset, comment = _END.unpack_from(tail, position)
    if position + _END.size + comment != len(tail):
        raise _damaged("bytes follow its directory, or its end is cut off")
    end_offset = tail_offset + position
    end = _End(offset, total, size, max(disk, start_disk, int(here != total)))
    if 0xFFFF in (disk, total) or 0xFFFFFFFF in (size, offset):
        end, end_offset = _read_end64(read_at, end_offset)
    _check_end(end, end_offset)
    return end


def _read_end64(read_at: ReadAt, end_offset: int) -> tuple[_End, int]:
    locator = read_at(max(0, end_offset - _END64_LOCATOR.size), _END64_LOCATOR.size)
    if len(locator) < _END64_LOCATOR.size or not locator.startswith(b"PK\x06\x07"):
        raise _damaged("its zip64 locator is missing")
    _, disk, offset, disks = _END64_LOCATOR.unpack(locator)
    record = read_at(offset, _END64.size)
    if len(record) < _END64.size or not record.startswith(b"PK\x06\x06"):
        raise _damaged("its zip64 directory record is missing")
    _, _, _, _, here_disk, start_disk, here, total, size, start = _END64.unpack(record)
    spanned = max(disk, here_disk, start_disk, disks - 1, int(here != total))
    return _End(start, total, size, spanned), offset


def _check_end(end: _End, end_offset: int) -> None:
    if end.disk:
        raise _refusal([Fault("", "is one part of a zip split over several files")])
    if end.entries > MAXIMUM_MEMBERS or end.size > MAXIMUM_DIRECTORY:
        raise _refusal([Fault("", f"has {end.entries} members, more than a cuDNN archive can have")])
    if end.offset + end.size != end_offset:
        raise _refusal([Fault("", "holds data before the zip or a gap in it")])


def _raw_entries(directory: bytes, end: _End) -> Iterator[_RawEntry]:
    position = 0
    for _ in range(end.entries):
        if directory[position : position + 4] != b"PK\x01\x02" or (
            len(directory) - position < _ENTRY.size
        ):
            raise _damaged("its directory holds something that is not an entry")
        fields = _ENTRY.unpack_from(directory, position)
        lengths = fields[10:13]
        body = directory[position + _ENTRY.size :][: sum(lengths)]
        if len(body) < sum(lengths):
            raise _damaged("its last directory entry is cut off")
        yield _raw_entry(fields, body[: lengths[0]], body[lengths[0] : lengths[0] + lengths[1]])
        position += _ENTRY.size + sum(lengths)
    if position != len(directory):
        raise _damaged("its directory is longer than its entries")


def _raw_entry(fields: tuple[int, ...], raw_name: bytes, extra: bytes) -> _RawEntry:
    flags, method, crc32 = fields[3], fields[4], fields[7]
    compressed, size, offset = fields[8], fields[9], fields[16]
    if 0xFFFFFFFF in (compressed, size, offset):
        size, compressed, offset = _zip64_values(extra, (size, compressed, offset))
    encoding = "utf-8" if flags & 0x800 else "cp437"
    name = member_names.normalise(raw_name.decode(encoding, errors="replace"))
    return _RawEntry(name, raw_name, flags, method, crc32, (size, compressed), offset, fields[15])


def _zip64_values(extra: bytes, values: tuple[int, int, int]) -> tuple[int, int, int]:
    while len(extra) >= 4:
        identifier, length = struct.unpack_from("<2H", extra)
        if identifier == 1:
            field, result = extra[4 : 4 + length], []
            for value in values:
                if value == 0xFFFFFFFF:
                    if len(field) < 8:
                        raise _damaged("a zip64 size is cut off")
                    value = struct.unpack_from("<Q", field)[0]  # noqa: PLW2901 - the real value
                    field = field[8:]
                result.append(value)
            return result[0], result[1], result[2]
        extra = extra[4 + length :]
    raise _damaged("a zip64 size is missing")


def _entry_faults(entry: _RawEntry) -> Iterator[Fault]:
    if "�" in entry.name:
        yield Fault(entry.name, "has a name that is not valid UTF-8")
    yield from member_names.faults_of(entry.name)
    mode = entry.attributes >> 16
    if stat.S_IFMT(mode) not in {0, stat.S_IFREG, stat.S_IFDIR}:
        what = "a link" if stat.S_ISLNK(mode) else "a device or other special file"
        yield Fault(entry.name, f"is {what}")
    if entry.flags & 0x2041:
        yield Fault(entry.name, "is encrypted")
    if entry.method not in {STORED, DEFLATED}:
        method = _METHODS.get(entry.method, f"number {entry.method}")
        yield Fault(entry.name, f"is compressed by {method}; only Store and Deflate are read")
    size, compressed = entry.sizes
    if entry.name.endswith("/") and size:
        yield Fault(entry.name, "is a folder with content")
    if entry.method == STORED and size != compressed:
        yield Fault(entry.name, f"is stored, yet declares {size} bytes in {compressed}")
    # Deflate cannot do better than 1032 to 1, so more is a lie about one of the sizes.
    if entry.method == DEFLATED and size > 1040 * compressed + 1024:
        yield Fault(entry.name, f"declares {size} bytes in {compressed}, more than Deflate can")


def _locate(read_at: ReadAt, entry: _RawEntry, directory_offset: int) -> ZipEntry | Fault:
    header = read_at(entry.offset, _LOCAL.size) if entry.offset < directory_offset else b""
    if len(header) < _LOCAL.size or not header.startswith(b"PK\x03\x04"):
        return Fault(entry.name, "has no local header where the directory says")
    _, _, flags, method, _, _, crc32, compressed, size, name_length, extra_length = _LOCAL.unpack(
        header
    )
    name = read_at(entry.offset + _LOCAL.size, name_length)
    if (name, method) != (entry.raw_name, entry.method):
        return Fault(entry.name, "has a local header that contradicts the directory")
    declared = (crc32, size, compressed)
    expected = (entry.crc32, *entry.sizes)
    streamed = flags & 8 and declared == (0, 0, 0)
    if not streamed and 0xFFFFFFFF not in declared and declared != expected:
        return Fault(entry.name, "has other sizes in its local header than in the directory")
    data_offset = entry.offset + _LOCAL.size + name_length + extra_length
    size, compressed = entry.sizes
    if data_offset + compressed > directory_offset:
        return Fault(entry.name, "reaches beyond the end of the data")
    return ZipEntry(entry.name, entry.method, entry.crc32, size, compressed, data_offset)


def _overlaps(entries: Iterable[ZipEntry]) -> Iterator[Fault]:
    reached = 0
    for entry in sorted(entries, key=lambda entry: (entry.data_offset, entry.compressed_size)):
        if entry.data_offset < reached:
            yield Fault(entry.name, "shares bytes with another member")
        reached = max(reached, entry.data_offset + entry.compressed_size)
