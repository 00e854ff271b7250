"""zstd, from wherever this Python has it, always set up the same way."""

from __future__ import annotations

import os
import sys
from typing import IO, BinaryIO, Protocol, cast

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ZstdError = zstd.ZstdError

LIBRARY = f"libzstd {zstd.zstd_version}"
"""What decides the bytes of a `.conda` beside its content and level."""


_JOB_SIZE = 4 * 1024 * 1024
_LEVELS_WITH_SMALL_WINDOWS = range(1, 10)
_MOST_WORKERS = 8
_LEVELS_WITH_TWO_TABLES = (3, 4)
_MINIMUM_MATCH = 7
"""Most of cuDNN is GPU code of 16-byte instructions: shorter matches cost these levels a
fifth of their time and save a fortieth of the size."""


class _Sink(Protocol):
    def write(self, data: bytes, /) -> int: ...


def open_zstd_writer(target: _Sink, level: int) -> BinaryIO:
    """Compress what is written to a stream, by all processors.

    libzstd's output depends on whether it has workers, not on how many: it always has
    one at least.

    Args:
        target: where the compressed bytes go; it stays open.
        level: 1 to 22.
    """
    options: dict[int, int] = {
        zstd.CompressionParameter.compression_level: level,
        zstd.CompressionParameter.nb_workers: min(os.cpu_count() or 1, _MOST_WORKERS),
        zstd.CompressionParameter.checksum_flag: 1,
    }
    if level in _LEVELS_WITH_TWO_TABLES:
        options[zstd.CompressionParameter.min_match] = _MINIMUM_MATCH
    if level in _LEVELS_WITH_SMALL_WINDOWS:
        # libzstd's own choice is twice as much memory for 0.3 % of the size.
        options[zstd.CompressionParameter.job_size] = _JOB_SIZE
    return cast("BinaryIO", zstd.ZstdFile(cast("BinaryIO", target), "wb", options=options))


def open_zstd_reader(stream: IO[bytes]) -> BinaryIO:
    """Decompress a stream while it is read."""
    return cast("BinaryIO", zstd.ZstdFile(stream))


def compressed_limit(size: int) -> int:
    """Give what a stream cannot outgrow when it is compressed.

    Args:
        size: bytes before.

    Source: ZSTD_COMPRESSBOUND of zstd.h, doubled for the frame's own bytes.
    """
    return size + size // 128 + 1024 * 1024
