"""zstd is set up one way, so that its bytes are the same every time."""

from __future__ import annotations

import io
import os
import random

import pytest

from bundler.compression import (
    LIBRARY,
    ZstdError,
    compressed_limit,
    open_zstd_reader,
    open_zstd_writer,
)

DATA = random.Random(1).randbytes(400_000) * 20


def compress(level: int, step: int = 1_000_003) -> bytes:
    target = io.BytesIO()
    with open_zstd_writer(target, level) as stream:
        for start in range(0, len(DATA), step):
            stream.write(DATA[start : start + step])
    return target.getvalue()


@pytest.mark.parametrize("level", [1, 3, 15])
def test_what_was_written_is_read(level: int) -> None:
    with open_zstd_reader(io.BytesIO(compress(level))) as stream:
        assert stream.read() == DATA


@pytest.mark.parametrize("level", [1, 3, 10])
@pytest.mark.parametrize("processors", [None, 1, 3, 64], ids=str)
def test_the_number_of_workers_does_not_change_a_byte(
    level: int, processors: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = compress(level)
    monkeypatch.setattr(os, "cpu_count", lambda: processors)

    assert compress(level) == usual


@pytest.mark.parametrize("step", [10_000, 2**23, len(DATA)])
def test_the_pieces_it_is_written_in_do_not_change_a_byte(step: int) -> None:
    assert compress(3, step) == compress(3)


@pytest.mark.parametrize("level", [1, 3, 15])
@pytest.mark.parametrize("data", [b"", b"1", random.Random(2).randbytes(1_000_000)], ids=len)
def test_nothing_outgrows_the_limit(level: int, data: bytes) -> None:
    target = io.BytesIO()
    with open_zstd_writer(target, level) as stream:
        stream.write(data)

    assert len(target.getvalue()) <= compressed_limit(len(data))


def test_damage_is_noticed() -> None:
    data = bytearray(compress(3))
    data[len(data) // 2] ^= 1

    with pytest.raises(ZstdError), open_zstd_reader(io.BytesIO(data)) as stream:
        stream.read()


def test_the_library_is_named() -> None:
    assert LIBRARY.startswith("libzstd 1.")
