"""Opening an archive and reading its members: what it is not, and what is damaged in it."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import os
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bundler import archive as archive_module
from bundler.archive import open_archive, open_file
from bundler.errors import ArchiveError, BundlerError, MissingError, UsageError
from tests.raw_zips import CONTENT, Member, deflated, made

HEADER = 30 + len(b"bin/cudnn64_8.dll")


def read_all(path: Path) -> dict[str, bytes]:
    with open_archive(path) as (archive, _):
        return {entry.name: b"".join(archive.read(entry)) for entry in archive.entries}


def tar_of(mode: str) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as tar:  # type: ignore[call-overload]
        member = tarfile.TarInfo("cudnn/LICENSE")
        member.size = 4
        tar.addfile(member, io.BytesIO(b"text"))
    return stream.getvalue()


FORMATS: dict[str, tuple[bytes, type[BundlerError], str]] = {
    "empty": (b"", ArchiveError, "is empty, not a cuDNN archive (0 bytes)"),
    "zeros": (bytes(5000), ArchiveError, "is filled with zeros, as an unfinished download may be"),
    "text": (
        b"404: Not Found",
        ArchiveError,
        "is of no known format, not a cuDNN archive (14 bytes)",
    ),
    "page": (b"\n <!DOCTYPE html><p>Log in", ArchiveError, "is a web page"),
    "page with a byte order mark": (b"\xef\xbb\xbf<html>", ArchiveError, "is a web page"),
    "page that begins with a comment": (b"<!-- x --><html>", ArchiveError, "is a web page"),
    "XML": (b"<?xml version='1.0'?><Error/>", ArchiveError, "is a web page"),
    "tar": (tar_of("w"), ArchiveError, "is a tar file"),
    "tar.xz": (tar_of("w:xz"), MissingError, "is a tar.xz, NVIDIA's format for Linux, whatever"),
    "xz": (lzma.compress(b"x"), MissingError, "is a tar.xz"),
    "tgz": (gzip.compress(b"x"), MissingError, "is a gzip file (tgz)"),
    "installer": (b"MZ\x90\0" + bytes(100), ArchiveError, "is a Windows program, perhaps an inst"),
    "RAR": (b"Rar!\x1a\x07\x01\0", ArchiveError, "is a RAR file"),
    "7-Zip": (b"7z\xbc\xaf\x27\x1c" + bytes(30), ArchiveError, "is a 7-Zip file"),
    "Linux program": (b"\x7fELF\2\1\1" + bytes(100), ArchiveError, "is a Linux program"),
    "Git LFS": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 7\n",
        ArchiveError,
        "is a Git LFS pointer",
    ),
    "empty zip": (b"PK\5\6" + bytes(18), ArchiveError, "is an empty zip"),
    "split zip": (b"PK\7\x08PK\3\4", ArchiveError, "is one part of a zip split over several"),
    "split zip of one part": (b"PK00PK\3\4", ArchiveError, "is one part of a zip split"),
}


@pytest.mark.parametrize(("data", "kind", "words"), FORMATS.values(), ids=FORMATS.keys())
def test_what_is_no_archive_is_named(
    tmp_path: Path, data: bytes, kind: type[BundlerError], words: str
) -> None:
    path = tmp_path / "cudnn.zip"
    path.write_bytes(data)

    with pytest.raises(kind) as caught:
        read_all(path)

    assert f"cudnn.zip {words}" in str(caught.value)
    assert caught.value.next_step


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        pytest.param(lambda path: path.mkdir(), "is a folder", id="folder"),
        pytest.param(lambda _path: None, "does not exist", id="missing"),
        pytest.param(os.mkfifo, "is not a file", id="pipe"),
        pytest.param(lambda path: path.symlink_to("nowhere"), "does not exist", id="dead link"),
    ],
)
def test_what_is_no_file_is_wrong_usage(
    tmp_path: Path, prepare: Callable[[Path], object], words: str
) -> None:
    path = tmp_path / "cudnn.zip"
    prepare(path)

    with pytest.raises(UsageError, match=words):
        read_all(path)


def test_a_name_that_no_file_can_have_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="File name too long"):
        read_all(tmp_path / ("x" * 5000))


def test_a_file_that_may_not_be_read_is_wrong_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cudnn.zip"
    path.write_bytes(made(Member()))

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)

    with pytest.raises(UsageError, match="Permission denied"):
        read_all(path)


def test_digest_and_members(tmp_path: Path) -> None:
    path = tmp_path / "cudnn.zip"
    path.write_bytes(data := made(Member(), deflated(name=b"x.h")))
    with open_archive(path) as (archive, digest):
        assert (digest.size, digest.sha256) == (len(data), hashlib.sha256(data).hexdigest())
        assert digest.md5 is None
        assert [entry.name for entry in archive.entries] == ["bin/cudnn64_8.dll", "x.h"]
        assert b"".join(archive.read_raw(archive.entries[1])) == deflated().data
        archive.check_unchanged()

    assert read_all(path) == {"bin/cudnn64_8.dll": CONTENT, "x.h": CONTENT}


def test_the_md5_is_taken_when_a_witness_names_one(tmp_path: Path) -> None:
    path = tmp_path / "cudnn.zip"
    path.write_bytes(data := made(Member()))

    with open_file(path, with_md5=True) as file:
        assert file.digest.md5 == hashlib.md5(data).hexdigest()


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


STREAM = deflated().data
LONGER = deflated(CONTENT + b"!")
DAMAGED = {
    "flipped byte, stored": (flipped(made(Member()), HEADER + 5), "its checksum (CRC-32) is wrong"),
    "wrong CRC": (made(Member(crc32=1)), "its checksum (CRC-32) is wrong"),
    "wrong CRC, deflated": (made(replace(deflated(), crc32=1)), "its checksum (CRC-32) is wrong"),
    "broken stream": (
        made(replace(deflated(), data=b"\xff" + STREAM[1:])),
        "its compressed stream is broken",
    ),
    "stream without an end": (
        made(replace(deflated(), data=STREAM[:-2], compressed=len(STREAM) - 2)),
        "is cut off: its compressed stream has no end",
    ),
    "stream ends early": (
        made(replace(deflated(), data=STREAM + b"more", compressed=len(STREAM) + 4)),
        "bytes follow its compressed stream",
    ),
    "larger than declared": (
        made(replace(LONGER, size=len(CONTENT))),
        "it unpacks to more than the 240 bytes it declares",
    ),
    "smaller than declared": (
        made(replace(deflated(CONTENT[:-1]), size=len(CONTENT))),
        "it unpacks to 239 of the 240 bytes it declares",
    ),
    "much larger than declared": (
        made(replace(deflated(bytes(40 << 20)), size=100)),
        "it unpacks to more than the 100 bytes it declares",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("data", "words"), DAMAGED.values(), ids=DAMAGED.keys())
def test_damaged_member_is_named(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "cudnn.zip"
    path.write_bytes(data)

    with pytest.raises(ArchiveError) as caught:
        read_all(path)

    (fault,) = caught.value.faults
    assert fault.where == "bin/cudnn64_8.dll"
    assert words in fault.what


def test_every_flipped_bit_of_a_stream_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "cudnn.zip"
    data = made(deflated())
    for at in range(HEADER, HEADER + len(STREAM)):
        path.write_bytes(flipped(data, at))
        with pytest.raises(ArchiveError, match=r"bin/cudnn64_8\.dll"):
            read_all(path)


def test_a_refused_zip_is_reported_with_its_hash(tmp_path: Path) -> None:
    path = tmp_path / "cudnn.zip"
    path.write_bytes(data := made(Member())[:-1])

    with pytest.raises(ArchiveError) as caught:
        read_all(path)

    assert "cudnn.zip: the zip is damaged" in str(caught.value)
    assert f"the file has {len(data)} bytes and SHA-256 {hashlib.sha256(data).hexdigest()}" in str(
        caught.value
    )


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "cudnn.zip"
    bomb = deflated(bytes(80 << 20))
    path.write_bytes(made(bomb))

    with pytest.raises(ArchiveError, match="declares 83,886,080 unpacked bytes in"):
        read_all(path)


def test_more_than_a_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cudnn.zip"
    path.write_bytes(made(deflated(bytes(1000))))
    monkeypatch.setattr(archive_module, "MAXIMUM_UNPACKED", 999)

    with pytest.raises(ArchiveError, match="what a zip bomb looks like"):
        read_all(path)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda data: flipped(data, HEADER), id="same size"),
        pytest.param(lambda data: data + b"more", id="grown"),
        pytest.param(lambda data: data[:-1], id="shrunk"),
    ],
)
def test_a_file_rewritten_while_open_is_noticed(
    tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "cudnn.zip"
    path.write_bytes(data := made(Member()))
    os.utime(path, (1, 1))
    with open_archive(path) as (archive, _):
        path.write_bytes(change(data))

        with pytest.raises(ArchiveError, match="changed while it was being read"):
            archive.check_unchanged()


def test_a_file_swapped_at_the_path_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "cudnn.zip"
    path.write_bytes(made(Member()))
    (tmp_path / "other").write_bytes(made(deflated(b"other")))
    with open_archive(path) as (archive, _):
        (tmp_path / "other").replace(path)

        assert b"".join(archive.read(archive.entries[0])) == CONTENT
        archive.check_unchanged()


def test_a_file_cut_while_open_ends_early(tmp_path: Path) -> None:
    path = tmp_path / "cudnn.zip"
    size = 1 << 20  # more than any buffer holds
    path.write_bytes(made(Member(data=bytes(size), size=size, compressed=size)))
    with open_archive(path) as (archive, _):
        os.truncate(path, HEADER + 10)

        with pytest.raises(ArchiveError, match="the archive ends in the middle of it"):
            list(archive.read_raw(archive.entries[0]))


class _FailingDisk(io.BytesIO):
    def read(self, *_: object) -> bytes:
        raise OSError(5, "Input/output error")


def test_a_failing_disk_is_told_from_a_damaged_archive(tmp_path: Path) -> None:
    path = tmp_path / "cudnn.zip"
    path.write_bytes(made(Member()))
    with open_archive(path) as (archive, _):
        failing = replace(archive, _file=replace(archive._file, stream=_FailingDisk()))

        with pytest.raises(ArchiveError, match=r"cudnn\.zip cannot be read: Input/output error"):
            list(failing.read(archive.entries[0]))


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_large_member_is_streamed(tmp_path: Path, method: int) -> None:
    size = 64 << 20
    path = tmp_path / "cudnn.zip"
    with zipfile.ZipFile(path, "w", method) as target:
        target.writestr("zeros", bytes(size))
        target.writestr("noise", os.urandom(1 << 20))
    tracemalloc.start()
    with open_archive(path) as (archive, _):
        read = sum(len(chunk) for chunk in archive.read(archive.entries[0]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert read == size
    assert peak < 8 << 20


def test_rubbish_behind_a_stream_is_not_kept_in_memory(tmp_path: Path) -> None:
    rubbish = 32 << 20
    path = tmp_path / "cudnn.zip"
    data = STREAM + bytes(rubbish)
    path.write_bytes(made(replace(deflated(), data=data, compressed=len(data))))
    tracemalloc.start()
    with open_archive(path) as (archive, _), pytest.raises(ArchiveError, match="bytes follow"):
        list(archive.read(archive.entries[0]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 8 << 20
