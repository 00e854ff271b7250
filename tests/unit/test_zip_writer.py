"""A zip is written once and read the same by everybody."""

from __future__ import annotations

import hashlib
import io
import shutil
import stat
import subprocess
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.moment import Moment
from bundler.reproducible import PROGRAM_MODE, OutputFile
from bundler.zip_directory import DEFLATED, STORED, ZipEntry, read_directory
from bundler.zip_writer import ZipMember, ZipWriter

MEMBERS = {"bin/a.dll": b"library " * 1000, "LICENSE": b"text\n", "empty": b""}


def deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush()


def write(members: Mapping[str, bytes], stream: io.BufferedIOBase) -> OutputFile:
    """Write members, half of them deflated."""
    output = OutputFile(stream)  # type: ignore[arg-type]
    writer = ZipWriter(output, Moment())
    for number, (name, data) in enumerate(members.items()):
        if number % 2:
            writer.add(name, data)
            continue
        packed = deflate(data)
        member = ZipMember(name, DEFLATED, zlib.crc32(data), len(data), len(packed))
        writer.add_stream(member, [packed[:10], packed[10:]])
    writer.close()
    return output


def directory(data: bytes) -> tuple[ZipEntry, ...]:
    return read_directory(lambda offset, length: data[offset : offset + length], len(data))


NAMES = st.from_regex(r"[a-z]{1,8}(/[a-z_.]{0,8}[a-z])?", fullmatch=True)


@given(st.dictionaries(NAMES, st.binary(max_size=300), max_size=8))
def test_the_standard_library_reads_what_was_written(members: dict[str, bytes]) -> None:
    stream = io.BytesIO()
    output = write(members, stream)

    assert output.size == len(stream.getvalue())
    with zipfile.ZipFile(stream) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == members


def test_our_strict_reader_accepts_it() -> None:
    stream = io.BytesIO()
    write(MEMBERS, stream)
    data = stream.getvalue()

    entries = directory(data)

    assert [entry.name for entry in entries] == list(MEMBERS)
    for entry in entries:
        raw = data[entry.data_offset : entry.data_offset + entry.compressed_size]
        content = zlib.decompress(raw, -zlib.MAX_WBITS) if entry.method == DEFLATED else raw
        assert content == MEMBERS[entry.name]
        assert (entry.size, entry.crc32) == (len(content), zlib.crc32(content))


@pytest.mark.skipif(shutil.which("unzip") is None, reason="unzip is not installed")
def test_unzip_accepts_it(tmp_path: Path) -> None:
    path = tmp_path / "written.zip"
    with path.open("wb") as stream:
        write(MEMBERS, stream)

    result = subprocess.run(["unzip", "-t", path], capture_output=True, text=True, check=False)

    assert result.returncode == 0, result.stdout
    assert "No errors detected" in result.stdout


def test_date_modes_and_system_are_fixed() -> None:
    stream = io.BytesIO()
    writer = ZipWriter(OutputFile(stream), Moment())
    writer.add("text", b"1")
    writer.add("program", b"2", PROGRAM_MODE)
    writer.close()

    with zipfile.ZipFile(stream) as archive:
        infos = archive.infolist()
    assert [info.date_time for info in infos] == [(1980, 1, 1, 0, 0, 0)] * 2
    assert [stat.filemode(info.external_attr >> 16) for info in infos] == [
        "-rw-r--r--",
        "-rwxr-xr-x",
    ]
    assert {info.create_system for info in infos} == {3}
    assert {info.flag_bits for info in infos} == {0}


def test_equal_members_give_equal_bytes() -> None:
    one, other = io.BytesIO(), io.BytesIO()

    assert write(MEMBERS, one).sha256 == write(MEMBERS, other).sha256
    assert one.getvalue() == other.getvalue()


@pytest.mark.parametrize("stream", [b"", b"12", b"1234"], ids=["none", "short", "long"])
def test_a_stream_of_another_length_is_refused(stream: bytes) -> None:
    writer = ZipWriter(OutputFile(io.BytesIO()), Moment())

    with pytest.raises(ValueError, match=f"name: {len(stream)} bytes instead of 3"):
        writer.add_stream(ZipMember("name", STORED, 0, 3, 3), [stream])


ZEROS = bytes(16 * 1024 * 1024)


class SparseOutput(OutputFile):
    """Leaves holes instead of writing zeros, and hashes nothing."""

    def __init__(self, stream: io.BufferedIOBase) -> None:
        super().__init__(stream)  # type: ignore[arg-type]
        self.target = stream

    def write(self, data: bytes) -> None:
        if data is ZEROS:
            self.target.seek(len(data), io.SEEK_CUR)
        else:
            self.target.write(data)
        self.size += len(data)


def write_large(path: Path, count: int) -> None:
    """Write a small member before and one after a large one."""
    with path.open("wb") as stream:
        writer = ZipWriter(SparseOutput(stream), Moment())
        writer.add("before", b"small")
        size = count * len(ZEROS)
        writer.add_stream(ZipMember("large", STORED, 0, size, size), [ZEROS] * count)
        writer.add("after", b"beyond")
        writer.close()


@pytest.mark.parametrize("count", [255, 256, 320], ids=["below 4 GiB", "4 GiB", "5 GiB"])
def test_members_and_offsets_around_four_gibibytes(count: int, tmp_path: Path) -> None:
    path = tmp_path / "large.zip"
    write_large(path, count)

    with zipfile.ZipFile(path) as archive:
        assert [info.file_size for info in archive.infolist()] == [5, count * len(ZEROS), 6]
        assert (archive.read("before"), archive.read("after")) == (b"small", b"beyond")
        with archive.open("large") as stream:
            assert stream.read(100) == bytes(100)

    with path.open("rb") as file:

        def read_at(offset: int, length: int) -> bytes:
            file.seek(offset)
            return file.read(length)

        entries = read_directory(read_at, path.stat().st_size)
        assert [entry.size for entry in entries] == [5, count * len(ZEROS), 6]
        assert read_at(entries[2].data_offset, 6) == b"beyond"


@pytest.mark.skipif(shutil.which("unzip") is None, reason="unzip is not installed")
def test_unzip_finds_a_member_beyond_four_gibibytes(tmp_path: Path) -> None:
    path = tmp_path / "large.zip"
    write_large(path, 320)

    result = subprocess.run(["unzip", "-p", path, "after"], capture_output=True, check=False)

    assert (result.returncode, result.stdout) == (0, b"beyond")


def test_more_members_than_the_old_directory_can_count() -> None:
    stream = io.BytesIO()
    writer = ZipWriter(OutputFile(stream), Moment())
    for number in range(0xFFFF):
        writer.add(f"{number}", b"")
    writer.close()

    with zipfile.ZipFile(stream) as archive:
        assert len(archive.namelist()) == 0xFFFF


GROWN = {"small": 100, "what an old header can say": 0xFFFFFFFE, "larger": 0xFFFFFFFF}


@pytest.mark.parametrize("maximum", GROWN.values(), ids=GROWN.keys())
def test_a_member_whose_length_is_known_at_its_end(maximum: int) -> None:
    stream = io.BytesIO()
    output = OutputFile(stream)
    writer = ZipWriter(output, Moment(1_700_000_000))
    writer.add("before", b"1")
    with writer.open_stored("grown", maximum) as member:
        assert [member.write(b"some "), member.write(b"bytes")] == [5, 5]
    writer.add("after", b"2")
    writer.close()
    output.finish()

    data = stream.getvalue()
    with zipfile.ZipFile(stream) as archive:
        assert archive.testzip() is None
        assert archive.read("grown") == b"some bytes"
        assert archive.getinfo("grown").date_time == (2023, 11, 14, 22, 13, 20)
    assert [entry.size for entry in directory(data)] == [1, 10, 1]
    assert output.sha256 == hashlib.sha256(data).hexdigest()


def test_a_member_that_outgrows_its_header_is_refused() -> None:
    writer = ZipWriter(OutputFile(io.BytesIO()), Moment())

    with (
        pytest.raises(ValueError, match="grown: 4 bytes, more than 3"),
        writer.open_stored("grown", 3) as member,
    ):
        member.write(b"1234")
