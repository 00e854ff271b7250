"""Finding the libraries that a library opens by name while it runs.

cuDNN's import tables name none of cuBLAS, NVRTC, zlib or most of its own parts: they are
strings in its data, handed to LoadLibrary or dlopen. A name counts when a zero follows it
and no text stands before it, so a library mentioned inside an error message does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

_CHUNK = 1024 * 1024
_OVERLAP = 256
_NARROW_NAME = re.compile(rb"[^\x20-\x7e]([A-Za-z0-9_][A-Za-z0-9_.%+-]{0,62})\Z")
_WIDE_NAME = re.compile(rb"\0\0((?:[A-Za-z0-9_.%+-]\0){1,63})\Z")
# Both begin with a literal byte: the search walks back from the ending, since a regular
# expression that begins with the name takes minutes on the real files.
_WINDOWS_ENDING = re.compile(rb"\.(?:dll\0|(\0d\0l\0l\0\0\0))", re.IGNORECASE)
_LINUX_ENDING = re.compile(rb"\.so((?:\.[0-9%du]{1,8}){0,4})\0")


def scan(
    stream: BinaryIO,
    offset: int,
    length: int,
    names_in: Callable[[bytes], Iterator[str]] | None = None,
) -> Iterator[str]:
    """Yield the library names in one range of a file, possibly repeatedly.

    `%d` in a name is kept: `nvrtc64_%d_0.dll` is a pattern that printf fills in.

    Args:
        stream: an open library.
        offset: where the range begins, bytes.
        length: of the range, bytes.
        names_in: finds the names in a block; those of Windows unless it is given.
    """
    stream.seek(offset)
    carry, left = b"\0\0", length
    while left and (chunk := stream.read(min(_CHUNK, left))):
        left -= len(chunk)
        # Padded at the very end, where the section is followed by zeros in memory.
        block = carry + chunk + (b"" if left else b"\0\0\0\0")
        yield from (names_in or windows_names)(block)
        carry = block[-_OVERLAP:]


def merged(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Join ranges that touch, so that a file whose sections overlap is read only once.

    Args:
        ranges: offset and length of each, bytes.
    """
    begin = end = -1
    for offset, length in sorted(ranges):
        if offset > end:
            if end > begin:
                yield begin, end - begin
            begin, end = offset, offset
        end = max(end, offset + length)
    if end > begin:
        yield begin, end - begin


def one_spelling_each(names: Iterable[str]) -> list[str]:
    """List names once each, however they are capitalised, in order."""
    return sorted({name.lower(): name for name in sorted(names)}.values(), key=str.lower)


def windows_names(block: bytes) -> Iterator[str]:
    """Yield the names of DLLs, narrow and wide."""
    for ending in _WINDOWS_ENDING.finditer(block):
        at = ending.start()
        pattern = _WIDE_NAME if ending[1] else _NARROW_NAME
        match = pattern.search(block, max(0, at - 130), at)
        if match:
            yield match[1].replace(b"\0", b"").decode("ascii") + ".dll"


def linux_names(block: bytes) -> Iterator[str]:
    """Yield the names of shared objects, with the version behind them."""
    for ending in _LINUX_ENDING.finditer(block):
        at = ending.start()
        match = _NARROW_NAME.search(block, max(0, at - 64), at)
        if match:
            yield (match[1] + b".so" + ending[1]).decode("ascii")
