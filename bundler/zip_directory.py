"""Reading a zip's central directory, strictly.

The standard library's reader is lenient where an attacker wants leniency: it accepts
data before and after the zip, members that overlap, and local headers that contradict
the directory. Here members and directory must fill the file to the byte, and every fault
is listed.

Source: PKWARE APPNOTE.TXT 6.3.10, sections 4.3.7, 4.3.9, 4.3.12, 4.5.3, 4.6.9.
"""

from __future__ import annotations

import stat
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bundler import member_names
from bundler.errors import Fault
from bundler.zip_end import DirectoryPlace, ReadAt, damage, find_directory, refusal

STORED, DEFLATED = 0, 8
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_METHODS = {
    1: "Shrink", 6: "Implode", 9: "Deflate64", 12: "bzip2", 14: "LZMA", 93: "Zstandard",
    95: "xz", 98: "PPMd", 99: "AES",
}  # fmt: skip
_ENCRYPTED, _STREAMED, _UTF_8 = 0x2041, 0x0008, 0x0800
_ZIP64, _UNICODE_PATH = 0x0001, 0x7075
_IN_ZIP64 = 0xFFFFFFFF
"""Stands where the value is in the zip64 extra field."""


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
class _RawEntry:
    name: str
    raw_name: bytes
    extra: bytes
    flags: int
    method: int
    crc32: int
    sizes: tuple[int, int]
    offset: int
    disk: int
    attributes: int

    @property
    def is_folder(self) -> bool:
        return self.name.endswith("/")

    def fault(self, what: str) -> Fault:
        return Fault(member_names.shown(self.name), what)


@dataclass(frozen=True)
class _Located:
    raw: _RawEntry
    entry: ZipEntry
    is_streamed: bool

    @property
    def end(self) -> int:
        return self.entry.data_offset + self.entry.compressed_size


def read_directory(
    read_at: ReadAt, file_size: int, *, may_have_gaps: bool = False
) -> tuple[ZipEntry, ...]:
    """Read and check the directory; directories themselves are left out.

    Args:
        read_at: access to the zip's bytes.
        file_size: bytes.
        may_have_gaps: let bytes pass that belong to no member.

    Raises:
        ArchiveError: with every fault found.
    """
    place = find_directory(read_at, file_size)
    raw = list(_raw_entries(read_at(place.offset, place.size), place))
    faults = [fault for entry in raw for fault in _entry_faults(entry)]
    sound = (entry.name for entry in raw if not any(member_names.faults_of(entry.name)))
    faults += member_names.collisions(sound)
    located: list[_Located] = []
    for entry in raw:
        found = _locate(read_at, entry, place.offset)
        if isinstance(found, Fault):
            faults.append(found)
        else:
            located.append(found)
    # A member that was not found leaves a hole, which is no second fault.
    if len(located) == len(raw):
        faults += _overlap_faults(located)
        faults += () if may_have_gaps else _gap_faults(read_at, located, place.offset)
    if faults:
        raise refusal(faults)
    return tuple(item.entry for item in located if not item.raw.is_folder)


def _raw_entries(directory: bytes, place: DirectoryPlace) -> Iterator[_RawEntry]:
    position = 0
    for _ in range(place.entries):
        start = position + _ENTRY.size
        if directory[position : position + 4] != b"PK\x01\x02" or len(directory) < start:
            raise damage("its directory holds something that is not an entry")
        fields = _ENTRY.unpack_from(directory, position)
        name_length, extra_length, comment_length = fields[10:13]
        position = start + name_length + extra_length + comment_length
        if len(directory) < position:
            raise damage("its last directory entry is cut off")
        name_end = start + name_length
        extra = directory[name_end : name_end + extra_length]
        yield _raw_entry(fields, directory[start:name_end], extra)
    if position != len(directory):
        raise damage("its directory is longer than its entries")


def _raw_entry(fields: tuple[int, ...], raw_name: bytes, extra: bytes) -> _RawEntry:
    flags, method, crc32, disk, attributes = (fields[index] for index in (3, 4, 7, 13, 15))
    values = _with_zip64((fields[9], fields[8], fields[16]), extra)
    if values is None:
        raise damage("a zip64 size is missing or cut off")
    size, compressed, offset = values
    encoding = "utf-8" if flags & _UTF_8 else "cp437"
    name = member_names.normalise(raw_name.decode(encoding, errors="replace"))
    sizes = (size, compressed)
    return _RawEntry(name, raw_name, extra, flags, method, crc32, sizes, offset, disk, attributes)


def _with_zip64(values: tuple[int, ...], extra: bytes) -> tuple[int, ...] | None:
    """Take those values that did not fit from the zip64 field, where they stand in order."""
    field = _extra_field(extra, _ZIP64) or b""
    result = []
    for value in values:
        if value != _IN_ZIP64:
            result.append(value)
        elif len(field) < 8:
            return None
        else:
            result += struct.unpack_from("<Q", field)
            field = field[8:]
    return tuple(result)


def _extra_field(extra: bytes, wanted: int) -> bytes | None:
    while len(extra) >= 4:
        identifier, length = struct.unpack_from("<2H", extra)
        if identifier == wanted:
            return extra[4 : 4 + length]
        extra = extra[4 + length :]
    return None


def _entry_faults(entry: _RawEntry) -> Iterator[Fault]:
    yield from member_names.faults_of(entry.name)
    yield from (entry.fault(what) for what in (*_kind_faults(entry), *_size_faults(entry)))


def _kind_faults(entry: _RawEntry) -> Iterator[str]:
    is_utf_8 = entry.raw_name.decode(errors="replace").encode() == entry.raw_name
    if entry.flags & _UTF_8 and not is_utf_8:
        yield "has a name that is not valid UTF-8"
    second_name = _extra_field(entry.extra, _UNICODE_PATH)
    # The field is a version, the CRC of the first name, and the second name.
    if second_name is not None and second_name[5:].decode(errors="replace") != entry.name:
        yield "has a second, other name in its extra field"
    mode = entry.attributes >> 16
    if stat.S_ISLNK(mode):
        yield "is a link"
    elif stat.S_IFMT(mode) not in {0, stat.S_IFREG, stat.S_IFDIR}:
        yield "is a device or other special file"
    elif stat.S_ISDIR(mode) and not entry.is_folder:
        yield "is a folder by its mode and a file by its name"
    if entry.disk:
        yield "lies in another part of a zip split over several files"
    if entry.flags & _ENCRYPTED:
        yield "is encrypted"
    if entry.method not in {STORED, DEFLATED}:
        method = _METHODS.get(entry.method, f"method {entry.method}")
        yield f"is compressed by {method}; only Store and Deflate are read"


def _size_faults(entry: _RawEntry) -> Iterator[str]:
    size, compressed = entry.sizes
    # Deflate needs two bytes for nothing.
    if entry.is_folder and (size or compressed > 2):
        yield "is a folder with content"
    if entry.method == STORED and size != compressed:
        yield f"is stored, yet declares {size:,} bytes in {compressed:,}"
    # Deflate cannot do better than 1032 to 1, so more is a lie about one of the sizes.
    if entry.method == DEFLATED and size > 1040 * compressed + 1024:
        yield f"declares {size:,} bytes in {compressed:,}, more than Deflate can"


def _locate(read_at: ReadAt, entry: _RawEntry, directory_offset: int) -> _Located | Fault:
    header = read_at(entry.offset, _LOCAL.size) if entry.offset < directory_offset else b""
    if len(header) < _LOCAL.size or not header.startswith(b"PK\x03\x04"):
        return entry.fault("has no local header where the directory says")
    fields = _LOCAL.unpack(header)
    flags, method, name_length, extra_length = (fields[index] for index in (2, 3, 9, 10))
    tail = read_at(entry.offset + _LOCAL.size, name_length + extra_length)
    declared_kind = (tail[:name_length], method, flags & _ENCRYPTED)
    if declared_kind != (entry.raw_name, entry.method, entry.flags & _ENCRYPTED):
        return entry.fault("has a local header that contradicts the directory")
    sizes = _with_zip64((fields[8], fields[7]), tail[name_length:])
    declared = (fields[6], *sizes) if sizes else None
    is_streamed = bool((flags | entry.flags) & _STREAMED)
    expected = (entry.crc32, *entry.sizes)
    if declared != expected and not (is_streamed and declared == (0, 0, 0)):
        return entry.fault("has other sizes in its local header than in the directory")
    data_offset = entry.offset + _LOCAL.size + name_length + extra_length
    size, compressed = entry.sizes
    if data_offset + compressed > directory_offset:
        return entry.fault("reaches beyond the end of the data")
    found = ZipEntry(entry.name, method, entry.crc32, size, compressed, data_offset)
    return _Located(entry, found, is_streamed)


def _overlap_faults(located: Iterable[_Located]) -> Iterator[Fault]:
    """Find bytes that belong to two members."""
    reached = 0
    for item in _in_file_order(located):
        if item.raw.offset < reached:
            yield item.raw.fault("shares bytes with another member")
        reached = max(reached, item.end)


def _gap_faults(
    read_at: ReadAt, located: Iterable[_Located], directory_offset: int
) -> Iterator[Fault]:
    """Find bytes that belong to no member."""
    reached, before = 0, None
    for item in _in_file_order(located):
        gap = item.raw.offset - reached
        if gap > 0 and not _is_filled(read_at(reached, min(gap, 25)), before):
            yield item.raw.fault("has bytes before it that belong to no member")
        if item.end >= reached:
            reached, before = item.end, item
    if not _is_filled(read_at(reached, min(directory_offset - reached, 25)), before):
        yield Fault("", "has bytes before its directory that belong to no member")


def _in_file_order(located: Iterable[_Located]) -> list[_Located]:
    return sorted(located, key=lambda item: (item.raw.offset, item.end))


def _is_filled(between: bytes, before: _Located | None) -> bool:
    """Say whether bytes after a member are nothing, or the data descriptor of a streamed one."""
    if not between or before is None or not before.is_streamed:
        return not between
    entry = before.entry
    values = (entry.crc32, entry.compressed_size, entry.size)
    forms = {len(form): form for form in _descriptors(values)}
    return between == forms.get(len(between))


def _descriptors(values: tuple[int, int, int]) -> Iterator[bytes]:
    """Yield the forms that writers give a descriptor: long or short, signed or not."""
    for form in ("<3L", "<L2Q") if max(values) <= 0xFFFFFFFF else ("<L2Q",):
        packed = struct.pack(form, *values)
        yield packed
        yield b"PK\x07\x08" + packed
