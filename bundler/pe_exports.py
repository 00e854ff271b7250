"""The functions that a Windows library offers.

Source: Microsoft's "PE Format", The .edata Section. pefile reads the table's whole section
several times, which is 80 MB of cuDNN's largest library; the table itself is 200 KB.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import pefile

from bundler.file_window import FileWindow

_EXPORT = pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_EXPORT"]
_DIRECTORY = struct.Struct("<12x7L")
_MAXIMUM_NAME = 4096
_MAXIMUM_SIZE = 16 * 1024 * 1024


@dataclass(frozen=True)
class Exports:
    """What an export table says.

    Args:
        own_name: the library's name when it was linked, or nothing.
        names: of the functions.
        ordinals: their numbers, as `#5`.
    """

    own_name: str | None = None
    names: frozenset[str] = frozenset()
    ordinals: frozenset[str] = frozenset()


def read_exports(image: pefile.PE, window: FileWindow) -> Exports:
    """Read the export table; a library without one offers nothing.

    Args:
        image: parsed headers, whose export table lies in a section.
        window: the file.

    Raises:
        ValueError: the table points outside itself.
    """
    directory = image.OPTIONAL_HEADER.DATA_DIRECTORY[_EXPORT]
    if not directory.VirtualAddress or not directory.Size:
        return Exports()
    if directory.Size > _MAXIMUM_SIZE:
        message = f"its export table has {directory.Size} bytes"
        raise ValueError(message)
    begin = image.get_offset_from_rva(directory.VirtualAddress)
    return _Table(directory.VirtualAddress, window.part(begin, directory.Size)).exports()


@dataclass(frozen=True)
class _Table:
    base: int
    data: bytes

    def exports(self) -> Exports:
        own, first, functions, count, at_functions, at_names, _ = _DIRECTORY.unpack_from(self.data)
        addresses = self._numbers(at_functions, functions)
        return Exports(
            own_name=self._text(own) if own else None,
            names=frozenset(self._text(at) for at in self._numbers(at_names, count)),
            ordinals=frozenset(
                f"#{number}" for number, address in enumerate(addresses, first) if address
            ),
        )

    def _numbers(self, address: int, count: int) -> tuple[int, ...]:
        begin = address - self.base
        if count and not 0 <= begin <= begin + 4 * count <= len(self.data):
            message = "its export table points outside itself"
            raise ValueError(message)
        return struct.unpack_from(f"<{count}L", self.data, begin) if count else ()

    def _text(self, address: int) -> str:
        begin = address - self.base
        end = self.data.find(b"\0", begin, begin + _MAXIMUM_NAME) if begin >= 0 else -1
        if end < 0:
            message = "a name in its export table has no end"
            raise ValueError(message)
        return self.data[begin:end].decode("latin-1")
