"""A file that gives its bytes on demand, and only so many of them.

Parsers of binary formats follow offsets and counts that a hostile file chooses. None of
those we use bounds what it reads, so the file does: past the budget every read fails.
"""

from __future__ import annotations

import io
from typing import BinaryIO, overload

# Several times what the largest real library needs (8 MB, 14,000 reads).
MAXIMUM_BYTES = 64 * 1024 * 1024
MAXIMUM_READS = 100_000


class ReadingTooMuchError(ValueError):
    """A file sends its reader around more than any real library does."""


class FileWindow:
    """Looks like `bytes` to pefile and like a stream to pyelftools.

    pefile would map the whole file instead, and touching its sections would count
    hundreds of megabytes against this process.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._size = stream.seek(0, io.SEEK_END)
        self._at = 0
        self._bytes_left = MAXIMUM_BYTES
        self._reads_left = MAXIMUM_READS

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> bytes: ...
    def __getitem__(self, index: int | slice) -> int | bytes:
        if isinstance(index, int):
            return self[index : index + 1][0]
        start, stop, _ = index.indices(self._size)
        return self._part(start, max(0, stop - start))

    def part(self, offset: int, length: int) -> bytes:
        """Read a range that must lie inside the file.

        Raises:
            ValueError: it does not, or the budget is spent.
        """
        if offset < 0 or length < 0 or offset + length > self._size:
            message = f"bytes {offset} to {offset + length} lie beyond its end"
            raise ValueError(message)
        return self._part(offset, length)

    def read(self, length: int = -1) -> bytes:
        """Read on from the current place, as streams do."""
        left = max(0, self._size - self._at)
        data = self._part(self._at, left if length < 0 else min(length, left))
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move the current place, as streams do."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        """Give the current place, as streams do."""
        return self._at

    def _part(self, offset: int, length: int) -> bytes:
        self._bytes_left -= length
        self._reads_left -= 1
        if self._bytes_left < 0 or self._reads_left < 0:
            message = "its tables lead a reader around without end"
            raise ReadingTooMuchError(message)
        if offset >= self._size or not length:
            # The system refuses to go as far as a 64-bit offset of a hostile file.
            return b""
        self._stream.seek(offset)
        return self._stream.read(length)
