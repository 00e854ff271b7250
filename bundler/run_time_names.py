"""Finding the libraries that a library opens by name while it runs.

cuDNN's import tables name none of cuBLAS, NVRTC, zlib or most of its own parts: they are
strings in its data, handed to LoadLibrary. A name counts when a zero follows it and no
text stands before it, so a library mentioned inside an error message does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

_CHUNK = 1024 * 1024
_OVERLAP = 256
_NARROW_NAME = re.compile(rb"[^\x20-\x7e]([A-Za-z0-9_][A-Za-z0-9_.%+-]{0,62})\Z")
_WIDE_NAME = re.compile(rb"\0\0((?:[A-Za-z0-9_.%+-]\0){1,63})\Z")


def scan(stream: BinaryIO, offset: int, length: int) -> Iterator[str]:
    """Yield the DLL names in one range of a file, possibly repeatedly.

    `%d` in a name is kept: `nvrtc64_%d_0.dll` is a pattern that printf fills in.

    Searches for the literal ending and walks back: a regular expression over the whole
    range takes minutes on the real files.

    Args:
        stream: an open library.
        offset: where the range begins, bytes.
        length: of the range, bytes.
    """
    stream.seek(offset)
    carry, left = b"\0\0", length
    while left and (chunk := stream.read(min(_CHUNK, left))):
        left -= len(chunk)
        # Padded at the very end, where the section is followed by zeros in memory.
        block = carry + chunk + (b"" if left else b"\0\0\0\0")
        yield from _names_in(block)
        carry = block[-_OVERLAP:]


def _names_in(block: bytes) -> Iterator[str]:
    for ending, pattern in ((b".dll\0", _NARROW_NAME), (b".\0d\0l\0l\0\0\0", _WIDE_NAME)):
        for variant in (ending, ending.upper()):
            at = block.find(variant)
            while at >= 0:
                match = pattern.search(block, max(0, at - 130), at)
                if match:
                    yield match[1].replace(b"\0", b"").decode("ascii") + ".dll"
                at = block.find(variant, at + 1)
