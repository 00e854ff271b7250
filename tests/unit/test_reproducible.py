"""A file appears whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bundler import reproducible
from bundler.errors import RefusedError
from bundler.reproducible import (
    OutputFile,
    atomic_output,
    write_bytes,
)


def test_what_is_written_lies_there_with_its_hash(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file"

    written = write_bytes(path, b"content")

    assert path.read_bytes() == b"content"
    assert (written.path, written.size) == (path, 7)
    assert written.sha256 == hashlib.sha256(b"content").hexdigest()


@pytest.fixture
def narrow_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.skipif(sys.platform == "win32", reason="modes are a POSIX matter")
@pytest.mark.usefixtures("narrow_umask")
def test_the_mode_does_not_depend_on_the_umask(tmp_path: Path) -> None:
    written = write_bytes(tmp_path / "file", b"")

    assert stat.S_IMODE(written.path.stat().st_mode) == 0o644


def write_half(path: Path, error: BaseException) -> None:
    with atomic_output(path) as output:
        output.write(b"half")
        raise error


@pytest.mark.parametrize(
    "error", [ValueError("bug"), KeyboardInterrupt(), SystemExit(3)], ids=lambda e: type(e).__name__
)
@pytest.mark.parametrize("old", [None, b"old"], ids=["new", "existing"])
def test_an_exception_leaves_what_was_there(
    error: BaseException, old: bytes | None, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    if old is not None:
        path.write_bytes(old)

    with pytest.raises(type(error)):
        write_half(path, error)

    assert [entry.name for entry in tmp_path.iterdir()] == (["file"] if old else [])
    assert not old or path.read_bytes() == old


def test_the_old_file_is_there_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    with atomic_output(path) as output:
        output.write(b"new")
        assert path.read_bytes() == b"old"

    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


class FullDisk(io.BytesIO):
    """Takes three bytes, then is full."""

    def write(self, data: object, /) -> int:
        assert isinstance(data, bytes)
        if self.tell() + len(data) > 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(data)


def test_a_full_disk_is_a_refusal_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reproducible, "OutputFile", lambda _stream: OutputFile(FullDisk()))
    path = tmp_path / "file"

    with pytest.raises(RefusedError, match=r"cannot write .*No space left") as caught:
        write_bytes(path, b"four")

    assert caught.value.exit_code == 7
    assert "free space" in caught.value.next_step
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
def test_a_failure_while_finishing_is_a_refusal_and_leaves_nothing(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    owner = os if step == "fsync" else Path
    monkeypatch.setattr(owner, step, fail)

    with pytest.raises(RefusedError):
        write_bytes(tmp_path / "file", b"content")

    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_the_way_is_a_refusal(tmp_path: Path) -> None:
    (tmp_path / "file").mkdir()

    with pytest.raises(RefusedError):
        write_bytes(tmp_path / "file", b"content")

    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_file_where_a_folder_must_be_is_a_refusal(tmp_path: Path) -> None:
    (tmp_path / "folder").write_bytes(b"")

    with pytest.raises(RefusedError):
        write_bytes(tmp_path / "folder" / "file", b"content")
