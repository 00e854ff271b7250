"""Several files appear together, each whole, or none does."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
from pathlib import Path

import pytest

from bundler import outputs as outputs_module
from bundler.errors import RefusedError
from bundler.outputs import Outputs


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def visible(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def write_two(folder: Path, scratch: Path, error: BaseException | None = None) -> None:
    with Outputs(folder, scratch) as outputs:
        with outputs.open("a") as first:
            first.write(b"one")
        with outputs.open("win-64/b") as second:
            second.write(b"two")
            assert visible(folder) == {}
            if error is not None:
                raise error


def test_nothing_is_seen_before_all_is_whole(tmp_path: Path, scratch: Path) -> None:
    write_two(tmp_path / "out", scratch)

    assert visible(tmp_path / "out") == {"a": b"one", "win-64/b": b"two"}
    assert visible(scratch) == {}
    if sys.platform != "win32":
        assert stat.S_IMODE((tmp_path / "out" / "a").stat().st_mode) == 0o644


@pytest.mark.parametrize(
    "error", [ValueError("bug"), KeyboardInterrupt(), SystemExit(3)], ids=lambda e: type(e).__name__
)
def test_an_exception_leaves_none_of_them(
    error: BaseException, tmp_path: Path, scratch: Path
) -> None:
    with pytest.raises(type(error)):
        write_two(tmp_path / "out", scratch, error)

    assert visible(tmp_path) == {}


@pytest.mark.parametrize("step", ["fsync", "chmod"])
def test_a_failing_disk_is_a_refusal_and_leaves_none_of_them(
    step: str, tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os if step == "fsync" else Path, step, fail)

    with pytest.raises(RefusedError, match="cannot write"):
        write_two(tmp_path / "out", scratch)

    assert visible(tmp_path) == {}


def test_a_folder_in_the_way_is_a_refusal(tmp_path: Path, scratch: Path) -> None:
    (tmp_path / "out" / "a").mkdir(parents=True)

    with pytest.raises(RefusedError):
        write_two(tmp_path / "out", scratch)

    assert visible(tmp_path) == {}


def test_a_file_flushed_while_it_grows(
    tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(outputs_module, "_FLUSHED_EVERY", 4)
    monkeypatch.setattr(os, "fsync", flushed.append)

    with Outputs(tmp_path, scratch) as outputs, outputs.open("a") as output:
        for _ in range(9):
            output.write(b"12")

    assert len(flushed) > 1
    assert visible(tmp_path)["a"] == b"12" * 9


def test_a_place_filled_in_later_is_in_the_hash(tmp_path: Path, scratch: Path) -> None:
    with Outputs(tmp_path, scratch) as outputs, outputs.open("a") as output:
        output.write(b"head ")
        place = output.reserve(3)
        output.write(b" tail")
        output.fill(place, b"mid")
        output.write(b"!")

    assert visible(tmp_path)["a"] == b"head mid tail!"
    assert output.size == len(b"head mid tail!")
    assert output.sha256 == hashlib.sha256(b"head mid tail!").hexdigest()


def test_a_file_of_another_program_is_taken_over(tmp_path: Path, scratch: Path) -> None:
    (scratch / "made").write_bytes(b"by another")

    with Outputs(tmp_path / "out", scratch) as outputs:
        outputs.adopt("win-64/b", scratch / "made")
        assert not (tmp_path / "out").exists()

    assert visible(tmp_path) == {"out/win-64/b": b"by another"}
