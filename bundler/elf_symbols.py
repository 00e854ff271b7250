"""The functions that a Linux library offers and wants, and from which library.

An ELF file does not say where a function comes from, except by its version: the table of
wanted versions (`SHT_GNU_verneed`) names a library for each, and cuDNN gives every function
the name of its library as version.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from elftools.elf.gnuversions import GNUVerNeedSection
from elftools.elf.sections import StringTableSection

from bundler.elf_layout import Layout, Part
from bundler.file_window import FileWindow

_SYMBOL = struct.Struct("<IBBHQQ")
_LOCAL, _WEAK = 0, 2
_UNDEFINED, _ABSOLUTE = 0, 0xFFF1
_VISIBLE = frozenset({0, 3})
# A name of a C++ template may be thousands of bytes long.
_MAXIMUM_NAME = 64 * 1024
_MAXIMUM_NAMES = 64 * 1024 * 1024


@dataclass(frozen=True)
class Symbols:
    """What the dynamic symbol table says.

    Args:
        wanted: per library the functions wanted from it, weak ones left out.
        unbound: functions wanted from no library in particular.
        offered: the names other libraries may link to.
        versions: wanted of libraries that are no cuDNN, sorted.
    """

    wanted: dict[str, frozenset[str]]
    unbound: frozenset[str]
    offered: frozenset[str]
    versions: tuple[str, ...]


@dataclass(frozen=True)
class _Symbol:
    name: str
    binding: int
    visibility: int
    section: int
    version: int


def read_symbols(layout: Layout, window: FileWindow) -> Symbols:
    """Read the dynamic symbols of a 64-bit little-endian library.

    Raises:
        ValueError: the tables contradict themselves or the file.
    """
    files, versions = _wanted_versions(layout)
    wanted: dict[str, set[str]] = {}
    offered: set[str] = set()
    for symbol in _symbols(layout, window):
        if symbol.section == _UNDEFINED and symbol.binding != _WEAK:
            library = files.get(symbol.version & 0x7FFF, "")
            wanted.setdefault(library, set()).add(symbol.name)
        elif symbol.section not in {_UNDEFINED, _ABSOLUTE} and symbol.visibility in _VISIBLE:
            offered.add(symbol.name)
    unbound = frozenset(wanted.pop("", set()))
    bound = {library: frozenset(names) for library, names in wanted.items()}
    return Symbols(bound, unbound, frozenset(offered), tuple(sorted(versions)))


def _symbols(layout: Layout, window: FileWindow) -> Iterator[_Symbol]:
    table = layout.section("SHT_DYNSYM")
    if table is None:
        message = "it has no table of dynamic symbols"
        raise ValueError(message)
    names_at = layout.sections[table.header.sh_link]
    names = window.part(names_at.offset, names_at.size)
    count = table.size // _SYMBOL.size
    entries = _SYMBOL.iter_unpack(window.part(table.offset, count * _SYMBOL.size))
    versions = _version_numbers(layout, window, count)
    left = _MAXIMUM_NAMES
    for (at, info, other, section, _, _), version in zip(entries, versions, strict=True):
        end = names.find(b"\0", at, at + _MAXIMUM_NAME)
        left -= end - at
        if end < 0 or left < 0:
            message = f"the name of a symbol at {at} has no end"
            raise ValueError(message)
        if end > at and info >> 4 != _LOCAL:
            name = names[at:end].decode("latin-1")
            yield _Symbol(name, info >> 4, other & 3, section, version)


def _version_numbers(layout: Layout, window: FileWindow, count: int) -> tuple[int, ...]:
    """Give each symbol's version, 0 for all where there are no versions."""
    table = layout.section("SHT_GNU_versym")
    if table is None:
        return (0,) * count
    return struct.unpack(f"<{count}H", window.part(table.offset, 2 * count))


def _wanted_versions(layout: Layout) -> tuple[dict[int, str], set[str]]:
    files: dict[int, str] = {}
    versions: set[str] = set()
    table = layout.section("SHT_GNU_verneed")
    for library, wanted in _needs(layout, table) if table else ():
        for version in wanted:
            files[version["vna_other"] & 0x7FFF] = library.name
            if not library.name.startswith("libcudnn"):
                versions.add(version.name)
    return files, versions


def _needs(layout: Layout, table: Part) -> Iterator[tuple[Any, Any]]:
    at = layout.sections[table.header.sh_link]
    strings = StringTableSection(at.header, at.name, layout.image)
    yield from GNUVerNeedSection(table.header, table.name, layout.image, strings).iter_versions()
