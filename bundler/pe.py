"""Facts about a Windows library.

Source: Microsoft's "PE Format"; pefile does the parsing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO, cast

import pefile

from bundler.binary_facts import BinaryFacts
from bundler.file_window import FileWindow
from bundler.pe_exports import read_exports
from bundler.pe_shape import oddities, structure_fault
from bundler.run_time_names import merged, one_spelling_each, scan

MAGIC = b"MZ"
_MACHINES = {0x8664: "x86_64", 0x14C: "x86", 0xAA64: "arm64", 0x1C4: "arm"}
_DIRECTORIES = [
    pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_IMPORT"],
    pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT"],
    pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_RESOURCE"],
]
_SECURITY = pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_SECURITY"]
_EXECUTABLE = 0x20000000
# CUDA kernels, most of the bytes, and tables of addresses: no name of a library in them.
_NAMELESS_SECTIONS = frozenset({".nv_fatb", ".nvFatBi", ".pdata", ".reloc"})


def read_facts(stream: BinaryIO) -> BinaryFacts | str:
    """Read a PE file's facts with bounded memory and time.

    Returns:
        the facts, or in words what makes it no usable library.
    """
    window = FileWindow(stream)
    try:
        image = pefile.PE(data=cast("bytes", window), fast_load=True)
        fault = structure_fault(image, len(window))
        if fault:
            return fault
        image.parse_data_directories(directories=_DIRECTORIES)
        return _facts(image, window, stream)
    # pefile leaks these on hostile input besides its own error.
    except (pefile.PEFormatError, struct.error, ValueError, LookupError, AttributeError,
            TypeError, OverflowError, RecursionError) as error:  # fmt: skip
        stream.seek(0)
        what = "is damaged" if stream.read(2) == MAGIC else "is not a Windows library"
        reason = error.args[0] if error.args else type(error).__name__
        return f"{what} ({reason})"


def _facts(image: pefile.PE, window: FileWindow, stream: BinaryIO) -> BinaryFacts:
    machine = image.FILE_HEADER.Machine
    version = dict(_version_entries(image))
    imports = _imports(image)
    imported = {name.lower() for name in imports}
    exports = read_exports(image, window)
    return BinaryFacts(
        machine=_MACHINES.get(machine, hex(machine)),
        own_name=exports.own_name,
        file_version=version.get("FileVersion"),
        fixed_version=_fixed_version(image),
        product_version=version.get("ProductVersion"),
        original_filename=version.get("OriginalFilename"),
        imports=imports,
        exports=exports.names,
        ordinals=exports.ordinals,
        run_time_names=tuple(
            name for name in _names_in_data(image, stream) if name.lower() not in imported
        ),
        is_signed=bool(image.OPTIONAL_HEADER.DATA_DIRECTORY[_SECURITY].Size),
        oddities=tuple(oddities(image, window)),
    )


def _text(data: bytes) -> str:
    return data.decode("latin-1")


def _names_in_data(image: pefile.PE, stream: BinaryIO) -> list[str]:
    ranges = [
        (section.PointerToRawData, section.SizeOfRawData)
        for section in image.sections
        if _holds_names(section)
    ]
    return one_spelling_each(name for begin, size in merged(ranges)
                             for name in scan(stream, begin, size))  # fmt: skip


def _holds_names(section: pefile.SectionStructure) -> bool:
    name = _text(section.Name.rstrip(b"\0"))
    return not section.Characteristics & _EXECUTABLE and name not in _NAMELESS_SECTIONS


def _imports(image: pefile.PE) -> dict[str, frozenset[str]]:
    wanted: dict[str, frozenset[str]] = {}
    for directory in ("DIRECTORY_ENTRY_IMPORT", "DIRECTORY_ENTRY_DELAY_IMPORT"):
        for entry in getattr(image, directory, []):
            names = frozenset(
                _text(item.name) if item.name else f"#{item.ordinal}" for item in entry.imports
            )
            library = _text(entry.dll)
            wanted[library] = wanted.get(library, frozenset()) | names
    return wanted


def _fixed_version(image: pefile.PE) -> str | None:
    for block in getattr(image, "VS_FIXEDFILEINFO", None) or []:
        words = (block.FileVersionMS, block.FileVersionLS)
        return ".".join(str(part) for word in words for part in (word >> 16, word & 0xFFFF))
    return None


def _version_entries(image: pefile.PE) -> Iterator[tuple[str, str]]:
    for group in getattr(image, "FileInfo", None) or []:
        for block in group:
            for table in getattr(block, "StringTable", []):
                for key, value in table.entries.items():
                    yield key.decode("utf-8", "replace"), value.decode("utf-8", "replace").strip()
