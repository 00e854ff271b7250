"""Facts about a Linux library.

Source: the System V ABI, chapters 4 and 5, and the Linux Standard Base on symbol versions;
pyelftools does the parsing. The run-time loader follows segments and the dynamic table, so
those count; sections say where data and symbols lie.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, BinaryIO, cast

from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.notes import iter_notes

from bundler.binary_facts import BinaryFacts
from bundler.elf_layout import Layout, Part, read_layout
from bundler.elf_shape import oddities, structure_fault
from bundler.elf_symbols import read_symbols
from bundler.file_window import FileWindow
from bundler.run_time_names import linux_names, merged, scan

MAGIC = b"\x7fELF"
_MACHINES = {
    ("EM_X86_64", 64, True): "x86_64",
    ("EM_AARCH64", 64, True): "arm64",
    ("EM_PPC64", 64, True): "ppc64le",
    ("EM_386", 32, True): "x86",
    ("EM_ARM", 32, True): "arm",
}
_MAXIMUM_TAGS, _MAXIMUM_NOTES = 4096, 64
# UPX leaves its mark in the first page, and no table of sections.
_PACKED = b"UPX!"
_NAMELESS_SECTIONS = frozenset({
    ".nv_fatbin", "__nv_relfatbin", ".nvFatBinSegment", ".eh_frame", ".eh_frame_hdr",
    ".gcc_except_table", ".got", ".got.plt", ".cask_resource",
})  # fmt: skip
_LEAKED = (ELFError, ConstructError, struct.error, ValueError, LookupError, AttributeError,
           TypeError, OverflowError, RecursionError, AssertionError)  # fmt: skip


def read_facts(stream: BinaryIO) -> BinaryFacts | str:
    """Read an ELF file's facts with bounded memory and time.

    Only the header is read of a library for a machine that no cuDNN of today is for: of
    32 bits, or with the high byte first.

    Returns:
        the facts, or in words what makes it no usable library.
    """
    stream.seek(0)
    if stream.read(4) != MAGIC:
        return "is not a Linux library"
    window = FileWindow(stream)
    if _PACKED in window[:4096]:
        return "is packed (UPX): these are not the bytes that NVIDIA built"
    try:
        return _facts(ELFFile(cast("BinaryIO", window)), window, stream)
    # pyelftools leaks these on hostile input besides its own errors.
    except _LEAKED as error:
        reason = error.args[0] if error.args else type(error).__name__
        return f"is damaged ({reason})"


@dataclass(frozen=True)
class _Dynamic:
    """What the dynamic table says."""

    needed: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)


def _facts(image: ELFFile, window: FileWindow, stream: BinaryIO) -> BinaryFacts | str:
    layout = read_layout(image, window)
    fault = structure_fault(layout, len(window))
    if fault:
        return fault
    machine = _machine(image)
    if image.elfclass != 64 or not image.little_endian:
        return BinaryFacts(machine=machine)
    dynamic = _dynamic(layout)
    # A program may be of the same type (ET_DYN), and has a loader of its own.
    if not dynamic.names and any(part.kind == "PT_INTERP" for part in layout.segments):
        return "is a Linux file, but not a library"
    symbols = read_symbols(layout, window)
    imports = dict.fromkeys(dynamic.needed, frozenset[str]()) | symbols.wanted
    return BinaryFacts(
        machine=machine,
        own_name=dynamic.names[0] if dynamic.names else None,
        imports=imports,
        unbound=symbols.unbound,
        exports=symbols.offered,
        symbol_versions=symbols.versions,
        search_path=tuple(dynamic.folders),
        build_id=_build_id(layout),
        run_time_names=tuple(
            name
            for name in _names_in_data(layout, stream)
            if name not in imports and name not in dynamic.names
        ),
        oddities=tuple(oddities(layout, len(window), dynamic.folders)),
    )


def _machine(image: ELFFile) -> str:
    kind = image.header.e_machine
    order = "little" if image.little_endian else "big"
    known = _MACHINES.get((kind, image.elfclass, image.little_endian))
    return known or f"{kind}, {image.elfclass} bits, {order}-endian"


def _dynamic(layout: Layout) -> _Dynamic:
    found = _Dynamic()
    table = layout.section("SHT_DYNAMIC")
    # The attributes of a tag depend on its kind, which types cannot say.
    tags: Iterable[Any] = (
        DynamicSection(table.header, table.name, layout.image).iter_tags() if table else ()
    )
    for tag in islice(tags, _MAXIMUM_TAGS):
        match tag.entry.d_tag:
            case "DT_NEEDED":
                found.needed.append(tag.needed)
            case "DT_SONAME":
                found.names.append(tag.soname)
            case "DT_RPATH":
                found.folders.extend(tag.rpath.split(":"))
            case "DT_RUNPATH":
                found.folders.extend(tag.runpath.split(":"))
            case _:
                pass
    return found


def _build_id(layout: Layout) -> str | None:
    for part in layout.segments:
        if part.kind == "PT_NOTE":
            for note in islice(iter_notes(layout.image, part.offset, part.size), _MAXIMUM_NOTES):
                if note["n_type"] == "NT_GNU_BUILD_ID":
                    return str(note["n_desc"])
    return None


def _names_in_data(layout: Layout, stream: BinaryIO) -> list[str]:
    ranges = [(part.offset, part.size) for part in layout.sections if _holds_names(part)]
    return sorted({name for begin, size in merged(ranges)
                   for name in scan(stream, begin, size, linux_names)})  # fmt: skip


def _holds_names(section: Part) -> bool:
    allocated, executable = section.flags & 2, section.flags & 4
    nameless = section.kind != "SHT_PROGBITS" or section.name in _NAMELESS_SECTIONS
    return bool(allocated and not executable and not nameless)
