"""Where the parts of a Linux library lie: its segments and sections, each header read once.

pyelftools makes an object of every section at each look, and that of a hash table reads
every entry, so only its parsers of headers are used here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from elftools.common.utils import struct_parse
from elftools.elf.elffile import ELFFile

from bundler.file_window import FileWindow

_MAXIMUM_SEGMENTS, _MAXIMUM_SECTIONS = 256, 4096


@dataclass(frozen=True)
class Part:
    """A segment or a section.

    Args:
        kind: `PT_LOAD`, `SHT_DYNSYM`, ... or a number where it has no name.
        name: of a section; empty for a segment.
        offset: in the file, bytes.
        size: in the file, bytes; 0 for what exists in memory only.
        flags: the bits of the header.
        header: as pyelftools parsed it.
    """

    kind: str | int
    name: str
    offset: int
    size: int
    flags: int
    header: Any

    @property
    def end(self) -> int:
        """The offset of the first byte behind it."""
        return self.offset + self.size


@dataclass(frozen=True)
class Layout:
    """All parts of one library.

    Args:
        image: a parsed header.
        segments: what the run-time loader follows.
        sections: what linkers and readers follow.
    """

    image: ELFFile
    segments: tuple[Part, ...]
    sections: tuple[Part, ...]

    def section(self, kind: str) -> Part | None:
        """Give the first section of a kind, such as `SHT_DYNSYM`."""
        return next((section for section in self.sections if section.kind == kind), None)

    @property
    def end(self) -> int:
        """The offset of the first byte behind all parts and the tables of their headers."""
        header = self.image.header
        return max(
            int(header.e_phoff + len(self.segments) * header.e_phentsize),
            int(header.e_shoff + len(self.sections) * header.e_shentsize),
            *(part.end for part in (*self.segments, *self.sections)),
        )


def read_layout(image: ELFFile, window: FileWindow) -> Layout:
    """Read the headers of all parts.

    Raises:
        ValueError: there are none, or more than any library has.
    """
    header = image.header
    if not 0 < header.e_phnum <= _MAXIMUM_SEGMENTS:
        message = f"it has {header.e_phnum} segments"
        raise ValueError(message)
    if not 0 < header.e_shnum <= _MAXIMUM_SECTIONS:
        message = f"it has {header.e_shnum} sections"
        raise ValueError(message)
    tables = max(
        header.e_phoff + header.e_phnum * header.e_phentsize,
        header.e_shoff + header.e_shnum * header.e_shentsize,
    )
    if tables > len(window):
        message = f"it is cut off: its tables end at byte {tables}, the file at {len(window)}"
        raise ValueError(message)
    return Layout(image, tuple(_segments(image)), tuple(_sections(image, window)))


def _segments(image: ELFFile) -> Iterator[Part]:
    for number in range(image.header.e_phnum):
        place = image.header.e_phoff + number * image.header.e_phentsize
        found = struct_parse(image.structs.Elf_Phdr, image.stream, stream_pos=place)
        yield Part(found.p_type, "", found.p_offset, found.p_filesz, found.p_flags, found)


def _sections(image: ELFFile, window: FileWindow) -> Iterator[Part]:
    places = (
        image.header.e_shoff + number * image.header.e_shentsize
        for number in range(image.header.e_shnum)
    )
    found = [struct_parse(image.structs.Elf_Shdr, image.stream, stream_pos=at) for at in places]
    table = found[image.header.e_shstrndx]
    names = window.part(table.sh_offset, table.sh_size)
    for header in found:
        size = 0 if header.sh_type in {"SHT_NOBITS", "SHT_NULL"} else header.sh_size
        end = names.find(b"\0", header.sh_name, header.sh_name + 256)
        name = names[header.sh_name : end].decode("latin-1") if end >= 0 else ""
        yield Part(header.sh_type, name, header.sh_offset, size, header.sh_flags, header)
