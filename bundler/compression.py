"""zstd, from wherever this Python has it, always set up the same way."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, BinaryIO, cast

from bundler.reproducible import ZSTD_WORKERS

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ZstdError = zstd.ZstdError

LIBRARY = f"libzstd {zstd.zstd_version}"
"""What decides the bytes of a `.conda` beside its content and level."""


def open_zstd_writer(path: Path, level: int) -> BinaryIO:
    """Open a file that compresses what is written to it.

    Args:
        path: of the new file.
        level: 1 to 22.
    """
    options: dict[int, int] = {
        zstd.CompressionParameter.compression_level: level,
        zstd.CompressionParameter.nb_workers: ZSTD_WORKERS,
        zstd.CompressionParameter.checksum_flag: 1,
    }
    return cast("BinaryIO", zstd.ZstdFile(path, "wb", options=options))


def open_zstd_reader(stream: IO[bytes]) -> BinaryIO:
    """Decompress a stream while it is read."""
    return cast("BinaryIO", zstd.ZstdFile(stream))
