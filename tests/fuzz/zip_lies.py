"""Zips that are nearly right: bytes decide what each of them says of itself.

Bytes changed at random in a zip seldom get past its signatures and offsets. Here they are
choices instead: which members, and which fields of theirs are a lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from tests import raw_zips
from tests.raw_zips import IN_ZIP64, LocalHeader, Member, Zip64End

_Item = TypeVar("_Item")
_NAMES = (
    b"bin/cudnn64_8.dll", b"LICENSE", b"bin/", b"bin", b"BIN/cudnn64_8.dll", b"../x", b"a\\b.dll",
    b"\xc3\xa9.dll", b"aux", b"",
)  # fmt: skip
_ENDS = (b"", b"", b"", b"PK\5\6", b"\0")


class Choices:
    """Reads bytes as choices; when they are used up, every choice is the first."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def take(self, length: int) -> bytes:
        """Give the next bytes, or fewer."""
        taken = self._data[self._position : self._position + length]
        self._position += length
        return taken

    def number(self, length: int = 1) -> int:
        """Give the next bytes as a number."""
        return int.from_bytes(self.take(length), "little")

    def one_of(self, items: Sequence[_Item]) -> _Item:
        """Pick an item."""
        return items[self.number() % len(items)]

    def lie(self, truth: int, length: int) -> int:
        """Give a number that is mostly true, or near to it, or any."""
        largest = (1 << 8 * length) - 1
        near = (truth, truth, truth, truth + 1, max(0, truth - 1), 0, largest, -1)
        chosen = self.one_of(near)
        return self.number(length) if chosen < 0 else min(chosen, largest)


def zip_of(data: bytes) -> bytes:
    """Make the zip that bytes describe."""
    choices = Choices(data)
    members = [_member(choices) for _ in range(choices.number() % 4)]
    before, after = choices.one_of(_ENDS), choices.one_of(_ENDS)
    if choices.number() % 3:
        return before + raw_zips.made(*members) + after
    end = Zip64End(
        length=choices.lie(44, 8),
        disks=choices.lie(1, 4),
        small_size=choices.lie(IN_ZIP64, 4),
        small_count=choices.lie(0xFFFF, 2),
    )
    return before + raw_zips.made_zip64(*members, end=end) + after


def _member(choices: Choices) -> Member:
    name = choices.one_of(_NAMES) or choices.take(choices.number())
    content = choices.take(choices.number()) * (1 + choices.number() % 3)
    honest = raw_zips.deflated(content, name)
    if choices.number() % 2:
        length = len(content)
        honest = replace(honest, method=0, data=content, size=length, compressed=length)
    honest = replace(honest, flags=choices.one_of((0, 0x800, 8, 1, 0x808)))
    if choices.number() % 4 == 3:
        mark = choices.one_of((b"", b"PK\x07\x08"))
        honest = raw_zips.streamed(honest, choices.one_of(("<3L", "<L2Q")), mark)
    return _with_lies(choices, honest) if choices.number() % 2 else honest


def _with_lies(choices: Choices, honest: Member) -> Member:
    extra = b""
    if choices.number() % 4 == 3:
        values = b"".join(choices.lie(size, 8).to_bytes(8, "little") for size in
                          (honest.size, honest.compressed))  # fmt: skip
        extra = b"\1\0" + choices.lie(len(values), 2).to_bytes(2, "little") + values
    return replace(
        honest,
        data=honest.data if choices.number() % 4 else choices.take(len(honest.data)),
        method=choices.lie(honest.method, 2),
        size=IN_ZIP64 if extra else choices.lie(honest.size, 4),
        compressed=IN_ZIP64 if extra else choices.lie(honest.compressed, 4),
        crc32=choices.lie(honest.crc32, 4),
        attributes=choices.lie(0, 4),
        disk=choices.lie(0, 2),
        offset=choices.number(4) if choices.number() % 8 == 7 else None,
        extra=extra + choices.take(choices.number() % 8),
        local=LocalHeader(
            size=choices.one_of((None, IN_ZIP64, 0)), extra=choices.one_of((b"", extra))
        ),
        after=choices.take(choices.number() % 32) if choices.number() % 4 == 3 else honest.after,
    )
