"""Zips made byte by byte: sound ones are read, all others are refused for what they are."""

from __future__ import annotations

import io
import stat
import struct
import tempfile
import time
import tracemalloc
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bundler.archive import open_archive
from bundler.errors import ArchiveError, MissingError
from bundler.member_names import collisions, faults_of
from bundler.zip_directory import ZipEntry, read_directory
from tests.raw_zips import (
    CONTENT,
    IN_ZIP64,
    LocalHeader,
    Member,
    Zip64End,
    deflated,
    made,
    made_zip64,
    pieces,
    streamed,
)


def read(data: bytes) -> tuple[ZipEntry, ...]:
    return read_directory(lambda offset, length: data[offset : offset + length], len(data))


def contents(data: bytes) -> dict[str, bytes]:
    """Open and read a zip whole, as the tool does."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "archive.zip"
        path.write_bytes(data)
        with open_archive(path) as (archive, _):
            return {entry.name: b"".join(archive.read(entry)) for entry in archive.entries}


def framed(before: bytes = b"", gap: bytes = b"", after: bytes = b"", shift: int = 0) -> bytes:
    """Make a zip with foreign bytes; `shift` makes the offset allow for those before it."""
    parts = pieces(MEMBER, OTHER)
    return before + parts.members + gap + parts.directory + parts.end(shift=shift) + after


def unicode_path(name: bytes) -> bytes:
    return struct.pack("<2HBL", 0x7075, 5 + len(name), 1, 0) + name


LONG_SIZES = struct.pack("<2H2Q", 1, 16, len(CONTENT), len(CONTENT))
IN_EXTRA = LocalHeader(size=IN_ZIP64, compressed=IN_ZIP64, extra=LONG_SIZES)
MEMBER = Member()
OTHER = Member(b"LICENSE", b"text", size=4, compressed=4, crc32=zlib.crc32(b"text"))
FOLDER = Member(b"bin/", b"", size=0, compressed=0, crc32=0)
WHOLE = made(MEMBER, deflated(name=b"x.h"))
BARE = pieces(MEMBER)

ACCEPTED = {
    "stored": made(MEMBER),
    "deflated": made(deflated()),
    "folder entry": made(FOLDER, MEMBER),
    "folder entry deflated": made(replace(FOLDER, method=8, data=b"\3\0", compressed=2), MEMBER),
    "folder mode": made(replace(FOLDER, attributes=(stat.S_IFDIR | 0o755) << 16), MEMBER),
    "file mode": made(Member(attributes=(stat.S_IFREG | 0o644) << 16)),
    "backslashes": made(Member(name=b"bin\\cudnn64_8.dll")),
    "streamed, short descriptor": made(streamed(deflated()), OTHER),
    "streamed, marked descriptor": made(streamed(deflated(), mark=b"PK\x07\x08"), OTHER),
    "streamed, long descriptor": made(streamed(MEMBER, "<L2Q")),
    "streamed, long marked descriptor": made(streamed(MEMBER, "<L2Q", b"PK\x07\x08")),
    "streamed, no descriptor": made(replace(streamed(deflated()), after=b""), OTHER),
    "zip64 sizes in both headers": made(
        Member(extra=LONG_SIZES, size=IN_ZIP64, compressed=IN_ZIP64, local=IN_EXTRA)
    ),
    "zip64 sizes in the local header": made(Member(local=IN_EXTRA)),
    "zip64 end": made_zip64(MEMBER),
    "zip64 end that was not needed": made_zip64(MEMBER, end=Zip64End(small_count=1)),
    "padded extra field": made(Member(extra=b"\0\0\0")),
    "same name in the extra field": made(Member(extra=unicode_path(b"bin/cudnn64_8.dll"))),
    "comment": BARE.members + BARE.directory + BARE.end(b"a comment"),
}


@pytest.mark.parametrize("data", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_sound_zip_is_read(data: bytes) -> None:
    assert contents(data)["bin/cudnn64_8.dll"] == CONTENT


REFUSED: dict[str, tuple[bytes, str]] = {
    # Cut off, or with foreign bytes.
    "no end record": (WHOLE[:-22], "its end, which lists the members, is missing"),
    "cut in the end record": (WHOLE[:-1], "its end, which lists the members, is missing"),
    "cut in the comment": (
        BARE.members + BARE.directory + BARE.end(b"comment")[:-1],
        "bytes follow its end, or its end is cut off",
    ),
    "appended": (framed(after=b"\0"), "bytes follow its end, or its end is cut off"),
    "another zip appended": (framed() + framed(), "has 466 bytes before it or inside it"),
    "an end record in the comment": (
        BARE.members + BARE.directory + BARE.end(b"PK\5\6 and more than twenty-two bytes"),
        "bytes follow its end, or its end is cut off",
    ),
    "prepended": (framed(before=b"MZ padding"), "has 10 bytes before it or inside it"),
    "prepended, offsets right": (
        framed(before=MEMBER.local_header(), shift=len(MEMBER.local_header())),
        "has no local header where the directory says",
    ),
    "beginning is missing": (framed()[5:], "lacks 5 bytes of its beginning or middle"),
    "gap before the directory": (framed(gap=b"?"), "has 1 bytes before it or inside it"),
    "gap before the directory, offsets right": (
        framed(gap=b"?", shift=1),
        "has bytes before its directory that belong to no member",
    ),
    "gap between members": (
        made(replace(MEMBER, after=b"hidden"), OTHER),
        "LICENSE: has bytes before it that belong to no member",
    ),
    "hidden member": (
        made(replace(MEMBER, after=OTHER.local_header() + b"text"), deflated(name=b"x.h")),
        "x.h: has bytes before it that belong to no member",
    ),
    "gap after a member that is not streamed": (
        made(replace(streamed(MEMBER), flags=0, local=LocalHeader())),
        "has bytes before its directory that belong to no member",
    ),
    "descriptor that contradicts": (
        made(replace(streamed(MEMBER), after=struct.pack("<3L", 1, 2, 3))),
        "has bytes before its directory that belong to no member",
    ),
    "directory entry is none": (
        BARE.members + b"PK\1\3" + BARE.directory[4:] + BARE.end(),
        "its directory holds something that is not an entry",
    ),
    "directory has fewer entries": (
        BARE.members + BARE.directory + replace(BARE, count=2).end(),
        "its directory holds something that is not an entry",
    ),
    "directory has more entries": (
        made(MEMBER, OTHER)[:-14] + struct.pack("<2H", 1, 1) + made(MEMBER, OTHER)[-10:],
        "its directory is longer than its entries",
    ),
    "last entry is cut off": (
        BARE.members + BARE.directory[:-1] + replace(BARE, directory=BARE.directory[:-1]).end(),
        "its last directory entry is cut off",
    ),
    "counts differ": (
        WHOLE[:-14] + struct.pack("<2H", 1, 2) + WHOLE[-10:],
        "is one part of a zip split over several files",
    ),
    "split": (
        BARE.members + BARE.directory + BARE.end(disk=1),
        "is one part of a zip split over several files",
    ),
    "member in another part": (made(Member(disk=1)), "lies in another part of a zip split"),
    "20,000 entries": (
        BARE.members + BARE.directory + replace(BARE, count=20_000).end(),
        "has 20,000 members in a directory of 63 bytes, more than a cuDNN archive can have",
    ),
    "directory of 9 MiB": (
        BARE.members
        + bytes(9 << 20)
        + replace(BARE, directory=bytes(9 << 20)).end(),
        "has 1 members in a directory of 9,437,184 bytes",
    ),
    # zip64.
    "zip64 locator is missing": (
        BARE.members + BARE.directory + replace(BARE, count=0xFFFF).end(),
        "has 65,535 members",
    ),
    "zip64 record is missing": (
        made_zip64(MEMBER, end=Zip64End(record_offset=0)),
        "its zip64 directory record is missing",
    ),
    "zip64 record lies at the end of the world": (
        made_zip64(MEMBER, end=Zip64End(record_offset=2**64 - 1)),
        "its zip64 directory record is missing",
    ),
    "zip64 record and locator have a gap": (
        made_zip64(MEMBER, end=Zip64End(between=b"gap")),
        "bytes lie between its zip64 directory record and the locator",
    ),
    "zip64 record lies about its length": (
        made_zip64(MEMBER, end=Zip64End(length=45)),
        "bytes lie between its zip64 directory record and the locator",
    ),
    "zip64 split": (made_zip64(MEMBER, end=Zip64End(disks=2)), "is one part of a zip split"),
    "zip64 split by disk": (made_zip64(MEMBER, end=Zip64End(disk=1)), "is one part of a zip split"),
    "zip64 contradicts the end record": (
        made_zip64(MEMBER, end=Zip64End(small_size=62)),
        "has a zip64 directory record that contradicts its end record",
    ),
    "zip64 size is missing": (made(Member(size=IN_ZIP64)), "a zip64 size is missing or cut off"),
    "zip64 size is cut off": (
        made(Member(size=IN_ZIP64, compressed=IN_ZIP64, extra=LONG_SIZES[:-1])),
        "a zip64 size is missing or cut off",
    ),
    "zip64 sizes of the local header contradict": (
        made(Member(local=replace(IN_EXTRA, extra=struct.pack("<2H2Q", 1, 16, 1, 1)))),
        "has other sizes in its local header",
    ),
    "zip64 sizes of the local header are missing": (
        made(Member(local=replace(IN_EXTRA, extra=b""))),
        "has other sizes in its local header",
    ),
    # What a member may not be.
    "link": (made(Member(attributes=(stat.S_IFLNK | 0o777) << 16)), "is a link"),
    "device": (made(Member(attributes=stat.S_IFCHR << 16)), "is a device or other special file"),
    "pipe": (made(Member(attributes=stat.S_IFIFO << 16)), "is a device or other special file"),
    "folder by mode only": (
        made(Member(attributes=stat.S_IFDIR << 16)),
        "is a folder by its mode and a file by its name",
    ),
    "folder with content": (made(Member(name=b"bin/")), "is a folder with content"),
    "folder with compressed content": (
        made(replace(deflated(), name=b"bin/", size=0)),
        "is a folder with content",
    ),
    "encrypted": (made(Member(flags=1)), "is encrypted"),
    "strongly encrypted": (made(Member(flags=0x40)), "is encrypted"),
    "masked": (made(Member(flags=0x2000)), "is encrypted"),
    "encrypted in the local header only": (
        made(Member(local=LocalHeader(flags=1))),
        "has a local header that contradicts the directory",
    ),
    "Deflate64": (made(Member(method=9)), "is compressed by Deflate64; only Store and Deflate"),
    "bzip2": (made(Member(method=12)), "is compressed by bzip2"),
    "LZMA": (made(Member(method=14)), "is compressed by LZMA"),
    "Zstandard": (made(Member(method=93)), "is compressed by Zstandard"),
    "AES": (made(Member(method=99)), "is compressed by AES"),
    "unknown method": (made(Member(method=77)), "is compressed by method 77"),
    "bad UTF-8": (made(Member(name=b"\xff.dll", flags=0x800)), "name that is not valid UTF-8"),
    "second name": (
        made(Member(extra=unicode_path(b"evil.exe"))),
        "has a second, other name in its extra field",
    ),
    "traversal": (made(Member(name=b"../cudnn64_8.dll")), "leaves its folder"),
    "duplicates": (made(MEMBER, MEMBER), "occurs twice"),
    "case collision": (made(MEMBER, Member(name=b"BIN/cudnn64_8.dll")), "would be the same file"),
    "file and folder": (made(MEMBER, Member(name=b"bin")), "needs a folder there"),
    # Where it lies and how large it is.
    "no local header": (made(Member(offset=1)), "has no local header where the directory says"),
    "local header beyond the end": (made(Member(offset=10**9)), "has no local header where"),
    "other name in the local header": (
        made(Member(local=LocalHeader(name=b"bin/evil64_8.dll"))),
        "has a local header that contradicts the directory",
    ),
    "other method in the local header": (
        made(Member(local=LocalHeader(method=8))),
        "has a local header that contradicts the directory",
    ),
    "other size in the local header": (
        made(Member(local=LocalHeader(size=1))),
        "has other sizes in its local header than in the directory",
    ),
    "other CRC in the local header": (
        made(Member(local=LocalHeader(crc32=IN_ZIP64))),
        "has other sizes in its local header than in the directory",
    ),
    "empty sizes without being streamed": (
        made(replace(streamed(MEMBER), flags=0)),
        "has other sizes in its local header than in the directory",
    ),
    "reaches beyond the data": (
        made(Member(size=1000, compressed=1000)),
        "reaches beyond the end of the data",
    ),
    "two members of the same bytes": (
        made(replace(MEMBER, after=b""), replace(MEMBER, name=b"bin/cudnn64_9.dll", offset=0)),
        "has a local header that contradicts the directory",
    ),
    "stored with two sizes": (made(Member(size=241)), "is stored, yet declares 241 bytes in 240"),
    "more than Deflate can": (
        made(replace(deflated(), size=10**6)),
        "declares 1,000,000 bytes in",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("data", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_unsound_zip_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(ArchiveError) as caught:
        read(data)

    assert words in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(
            made(Member(offset=IN_ZIP64, extra=struct.pack("<2HQ", 1, 8, 2**64 - 1))), id="member"
        ),
        pytest.param(made_zip64(MEMBER, end=Zip64End(record_offset=2**64 - 1)), id="end record"),
    ],
)
def test_an_offset_that_no_file_has_is_refused(data: bytes) -> None:
    """A real file cannot even be asked for it."""
    with pytest.raises(ArchiveError):
        contents(data)


def test_members_may_not_share_bytes() -> None:
    inner = MEMBER.local_header() + CONTENT
    outer = Member(b"outer", inner, size=len(inner), compressed=len(inner), crc32=zlib.crc32(inner))
    start = len(outer.local_header())
    data = pieces(outer)
    directory = data.directory + MEMBER.directory_entry(start)
    parts = replace(data, directory=directory, count=2)

    with pytest.raises(ArchiveError, match="shares bytes with another member"):
        read(parts.members + directory + parts.end())


def test_local_header_inside_another_member_is_an_overlap() -> None:
    """The header alone is quoted; the second stream begins where the first ends."""
    inner = OTHER.local_header()
    outer = Member(b"outer", inner, size=len(inner), compressed=len(inner), crc32=zlib.crc32(inner))
    data = pieces(replace(outer, after=b"text"))
    directory = data.directory + OTHER.directory_entry(len(outer.local_header()))
    parts = replace(data, directory=directory, count=2)

    with pytest.raises(ArchiveError, match="LICENSE: shares bytes with another member"):
        read(parts.members + directory + parts.end())


def test_all_faults_are_listed() -> None:
    names = (b"../a", b"aux.dll", b"x\0")

    with pytest.raises(ArchiveError) as caught:
        read(made(*(Member(name=name, flags=1) for name in names)))

    assert len(caught.value.faults) >= 6


def test_names_are_shown_safely() -> None:
    with pytest.raises(ArchiveError) as caught:
        read(made(Member(name=b"\x1b[2Jcudnn.dll", flags=1)))

    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "flags", "expected"),
    [
        pytest.param("é中.dll".encode(), 0x800, "é中.dll", id="UTF-8"),
        pytest.param(b"\x82.dll", 0, "é.dll", id="cp437"),
    ],
)
def test_names_are_decoded(name: bytes, flags: int, expected: str) -> None:
    (entry,) = read(made(Member(name=name, flags=flags)))

    assert entry.name == expected


def test_many_entries_and_absurd_names_cost_little() -> None:
    """A name of 32,000 folders would otherwise be kept 32,000 times."""
    members = [Member(b"a/" * 32_000 + b"%d" % number, b"", size=0, compressed=0, crc32=0)
               for number in range(100)]  # fmt: skip
    data = made(*members)
    started = time.monotonic()
    tracemalloc.start()
    with pytest.raises(ArchiveError, match="longer than"):
        read(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 100 << 20
    assert time.monotonic() - started < 20


def test_ten_thousand_entries_are_read() -> None:
    names = [b"bin/%d.dll" % number for number in range(10_000)]
    body, directory = io.BytesIO(), io.BytesIO()
    for name in names:
        member = replace(OTHER, name=name)
        directory.write(member.directory_entry(body.tell()))
        body.write(member.local_header() + member.data)
    parts = replace(BARE, members=body.getvalue(), directory=directory.getvalue(), count=len(names))

    assert len(read(parts.members + parts.directory + parts.end())) == len(names)


def test_standard_library_zip64_is_read(tmp_path: Path) -> None:
    path = tmp_path / "archive.zip"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("bin/cudnn64_8.dll", "w", force_zip64=True) as member,
    ):
        member.write(CONTENT)

    assert contents(path.read_bytes()) == {"bin/cudnn64_8.dll": CONTENT}


class _Pipe(io.RawIOBase):
    """A stream that cannot seek, as a zip is written to a pipe."""

    def __init__(self) -> None:
        self.data = b""

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.data += bytes(data)
        return len(data)


@pytest.mark.parametrize("force_zip64", [False, True], ids=["short", "zip64"])
def test_standard_library_streamed_zip_is_read(force_zip64: bool) -> None:
    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("a.dll", "b.dll"):
            with archive.open(name, "w", force_zip64=force_zip64) as member:
                member.write(CONTENT)

    assert contents(pipe.data) == {"a.dll": CONTENT, "b.dll": CONTENT}


def test_true_zip64_beyond_4_gib_is_read() -> None:
    """A sparse file in memory: 5 GiB of nothing, then a member and the directory."""
    large, at = 5 << 30, 5 << 30
    sizes = struct.pack("<2H2Q", 1, 16, large, large)
    huge = Member(b"huge", b"", size=IN_ZIP64, compressed=IN_ZIP64, crc32=7, extra=sizes,
                  local=LocalHeader(size=IN_ZIP64, compressed=IN_ZIP64, extra=sizes))  # fmt: skip
    at += len(huge.local_header())
    last = replace(OTHER, offset=IN_ZIP64, extra=struct.pack("<2HQ", 1, 8, at))
    directory = huge.directory_entry(0) + last.directory_entry(0)
    start = at + len(OTHER.local_header()) + 4
    record = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 2, 2, len(directory), start)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, start + len(directory), 1)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, IN_ZIP64, IN_ZIP64, 0)
    tail = OTHER.local_header() + b"text" + directory + record + locator + end
    head = huge.local_header()

    def read_at(offset: int, length: int) -> bytes:
        if offset < len(head):
            return head[offset : offset + length]
        zeros = bytes(min(length, max(0, at - offset)))
        skipped = max(0, offset - at)
        return zeros + tail[skipped : skipped + length - len(zeros)]

    huge_entry, last_entry = read_directory(read_at, at + len(tail))

    assert huge_entry.size == large
    assert last_entry.data_offset > 4 << 30


SAFE = st.text(
    st.characters(codec="utf-8", exclude_characters='<>:"|?*\\/'), min_size=1, max_size=12
)
NAMES = st.lists(SAFE, min_size=1, max_size=3).map("/".join)
FILES = st.dictionaries(
    NAMES.filter(lambda name: not any(faults_of(name))), st.binary(max_size=300), max_size=6
)


@given(FILES, st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
@example({"\ufffd": b"a name that is itself the mark of a bad name"}, zipfile.ZIP_STORED)
def test_what_the_standard_library_writes_is_read_equal(
    files: Mapping[str, bytes], method: int
) -> None:
    if not files or any(collisions(files)):
        return
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)

    entries = read(stream.getvalue())

    assert contents(stream.getvalue()) == files
    assert [(entry.name, entry.size) for entry in entries] == [
        (name, len(content)) for name, content in files.items()
    ]


SMALL = made(FOLDER, MEMBER, streamed(deflated(name=b"x.h"), mark=b"PK\x07\x08"), OTHER)
SMALL_64 = made_zip64(Member(local=IN_EXTRA, extra=b"\0\0"), OTHER)
EXPECTED = {name: contents(data) for name, data in (("plain", SMALL), ("zip64", SMALL_64))}


@pytest.mark.parametrize("data", [SMALL, SMALL_64], ids=["plain", "zip64"])
def test_cut_at_any_byte_is_refused(data: bytes) -> None:
    for length in range(len(data)):
        with pytest.raises(ArchiveError):
            contents(data[:length])


MUTATIONS = st.lists(
    st.tuples(st.integers(0, 2000), st.sampled_from([0, 1, 127, 128, 255]) | st.integers(0, 255)),
    min_size=1,
    max_size=8,
)


@given(st.sampled_from(["plain", "zip64"]), MUTATIONS)
def test_any_mutation_is_read_or_refused(name: str, mutations: list[tuple[int, int]]) -> None:
    """No other exception, and what is read under a known name is what was written."""
    data = bytearray(SMALL if name == "plain" else SMALL_64)
    for position, value in mutations:
        data[position % len(data)] = value
    try:
        found = contents(bytes(data))
    except (ArchiveError, MissingError):
        return

    assert set(found.values()) <= {*EXPECTED[name].values()}


@given(st.integers(0, 2000), st.binary(min_size=1, max_size=40), st.integers(0, 40))
def test_any_splice_is_read_or_refused(position: int, new: bytes, dropped: int) -> None:
    at = position % len(SMALL)
    data = SMALL[:at] + new + SMALL[at + dropped :]
    try:
        found = contents(data)
    except (ArchiveError, MissingError):
        return

    assert set(found.values()) <= {*EXPECTED["plain"].values()}


def test_a_known_archive_may_have_gaps_and_still_no_overlaps() -> None:
    gap = made(replace(MEMBER, after=b"padding"), OTHER)

    def read_known(data: bytes) -> tuple[ZipEntry, ...]:
        return read_directory(
            lambda offset, length: data[offset : offset + length], len(data), may_have_gaps=True
        )

    assert [entry.name for entry in read_known(gap)] == [
        entry.name for entry in read(made(MEMBER, OTHER))
    ]
    with pytest.raises(ArchiveError):
        read(gap)
