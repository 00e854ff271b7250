"""The file that parsers of hostile formats read from."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from bundler import file_window
from bundler.file_window import FileWindow, ReadingTooMuchError

DATA = bytes(range(100))


@pytest.fixture
def window() -> FileWindow:
    return FileWindow(io.BytesIO(DATA))


def test_it_looks_like_bytes(window: FileWindow) -> None:
    assert len(window) == 100
    assert window[7] == 7
    assert window[98:200] == b"bc"
    assert window[5:2] == b""


def test_it_looks_like_a_stream(window: FileWindow) -> None:
    assert window.read(2) == b"\0\1"
    assert window.tell() == 2
    assert window.seek(-1, io.SEEK_END) == 99
    assert window.read() == b"c"
    assert window.read(5) == b""
    assert window.seek(10) == 10
    assert window.seek(-4, io.SEEK_CUR) == 6
    assert window.seek(-40, io.SEEK_CUR) == 0


def test_a_place_that_no_disk_has_is_the_end(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(DATA)
    with path.open("rb") as stream:
        window = FileWindow(stream)
        window.seek(2**63 - 1)

        assert window.read(4) == b""
        assert window[2**70 :] == b""


@pytest.mark.parametrize(("offset", "length"), [(99, 2), (-1, 1), (0, -1), (10**12, 0)])
def test_a_part_must_lie_inside(window: FileWindow, offset: int, length: int) -> None:
    with pytest.raises(ValueError, match="beyond its end"):
        window.part(offset, length)


@pytest.mark.parametrize(("limit", "value"), [("MAXIMUM_BYTES", 250), ("MAXIMUM_READS", 2)])
def test_the_budget_ends(limit: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_window, limit, value)
    window = FileWindow(io.BytesIO(DATA))
    window.part(0, 100)
    window.part(0, 100)

    with pytest.raises(ReadingTooMuchError):
        window.part(0, 100)
