"""zstd is set up one way, so that its bytes are the same every time."""

from __future__ import annotations

import io
import random
from pathlib import Path

import pytest

from bundler import compression
from bundler.compression import LIBRARY, ZstdError, open_zstd_reader, open_zstd_writer

DATA = random.Random(1).randbytes(400_000) * 20


def compress(path: Path, level: int) -> bytes:
    with open_zstd_writer(path, level) as stream:
        for start in range(0, len(DATA), 1_000_003):
            stream.write(DATA[start : start + 1_000_003])
    return path.read_bytes()


@pytest.mark.parametrize("level", [1, 3, 15])
def test_what_was_written_is_read(level: int, tmp_path: Path) -> None:
    with open_zstd_reader(io.BytesIO(compress(tmp_path / "file", level))) as stream:
        assert stream.read() == DATA


def test_the_number_of_workers_does_not_change_a_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = compress(tmp_path / "two", 3)
    monkeypatch.setattr(compression, "ZSTD_WORKERS", 1)

    assert compress(tmp_path / "one", 3) == usual


def test_damage_is_noticed(tmp_path: Path) -> None:
    data = bytearray(compress(tmp_path / "file", 3))
    data[len(data) // 2] ^= 1

    with pytest.raises(ZstdError), open_zstd_reader(io.BytesIO(data)) as stream:
        stream.read()


def test_the_library_is_named() -> None:
    assert LIBRARY.startswith("libzstd 1.")
