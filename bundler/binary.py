"""Facts about a Windows library, read from its bytes: nothing is loaded or run.

Source: Microsoft's "PE Format"; pefile does the parsing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast, overload

import pefile

from bundler.errors import Fault
from bundler.run_time_names import scan

_MACHINES = {0x8664: "x86_64", 0x14C: "x86", 0xAA64: "arm64", 0x1C4: "arm"}
_DIRECTORIES = [
    pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_EXPORT"],
    pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_IMPORT"],
    pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT"],
    pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_RESOURCE"],
]
_SECURITY = pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_SECURITY"]
_EXECUTABLE = 0x20000000
# CUDA kernels: most of the bytes, and no name of a library in them.
_KERNEL_SECTIONS = frozenset({".nv_fatb", ".nvFatBi"})


@dataclass(frozen=True)
class BinaryFacts:
    """What one library says about itself.

    Args:
        machine: `x86_64`, `x86`, `arm64`, or the number in hex.
        file_version: of the version resource, or nothing when it has none.
        original_filename: of the version resource, or nothing.
        imports: per imported DLL (its name as written) the functions wanted by name.
        exports: the names it offers.
        run_time_names: DLL names and patterns in its data, which it may open while running.
        is_signed: an Authenticode signature is attached; says nothing about its worth.
    """

    machine: str
    file_version: str | None
    original_filename: str | None
    imports: Mapping[str, frozenset[str]]
    exports: frozenset[str]
    run_time_names: tuple[str, ...]
    is_signed: bool


def read_binary_facts(path: Path) -> BinaryFacts | Fault:
    """Read one PE file's facts with bounded memory.

    Returns:
        the facts, or the fault that makes it no usable library.
    """
    with path.open("rb") as stream:
        window = _FileWindow(stream, path.stat().st_size)
        try:
            image = pefile.PE(data=cast("bytes", window), fast_load=True)
            image.parse_data_directories(directories=_DIRECTORIES)
            fault = _structure_fault(image, len(window))
            return Fault(path.name, fault) if fault else _facts(image, stream)
        # pefile leaks these on hostile input besides its own error.
        except (pefile.PEFormatError, struct.error, ValueError, LookupError, AttributeError,
                TypeError, OverflowError, RecursionError) as error:  # fmt: skip
            head = window[:2]
            what = "is damaged" if head == b"MZ" else "is not a Windows library"
            reason = error.args[0] if error.args else type(error).__name__
            return Fault(path.name, f"{what} ({reason})")


class _FileWindow:
    """Gives pefile slices of a file on demand.

    pefile would map the whole file instead, and touching its sections would count
    hundreds of megabytes against this process.
    """

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream = stream
        self._size = size

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
        self._stream.seek(start)
        return self._stream.read(max(0, stop - start))


def _structure_fault(image: pefile.PE, size: int) -> str:
    end = max((s.PointerToRawData + s.SizeOfRawData for s in image.sections), default=0)
    if not image.sections or not image.is_dll():
        return "is a Windows file, but not a library"
    if end > size:
        return f"is cut off: its sections need {end} bytes, it has {size}"
    security = image.OPTIONAL_HEADER.DATA_DIRECTORY[_SECURITY]
    if security.VirtualAddress + security.Size > size:
        return "is cut off: its signature lies beyond its end"
    return ""


def _facts(image: pefile.PE, stream: BinaryIO) -> BinaryFacts:
    machine = image.FILE_HEADER.Machine
    version = _version_strings(image)
    imports = _imports(image)
    imported = {name.lower() for name in imports}
    return BinaryFacts(
        machine=_MACHINES.get(machine, hex(machine)),
        file_version=version.get("FileVersion"),
        original_filename=version.get("OriginalFilename"),
        imports=imports,
        exports=_exports(image),
        run_time_names=tuple(
            name for name in _names_in_data(image, stream) if name.lower() not in imported
        ),
        is_signed=bool(image.OPTIONAL_HEADER.DATA_DIRECTORY[_SECURITY].Size),
    )


def _names_in_data(image: pefile.PE, stream: BinaryIO) -> list[str]:
    """List the names once each, however they are capitalised."""
    found = sorted(
        name
        for section in image.sections
        if _holds_names(section)
        for name in scan(stream, section.PointerToRawData, section.SizeOfRawData)
    )
    return sorted({name.lower(): name for name in found}.values(), key=str.lower)


def _holds_names(section: pefile.SectionStructure) -> bool:
    name = section.Name.rstrip(b"\0").decode("latin-1")
    return not section.Characteristics & _EXECUTABLE and name not in _KERNEL_SECTIONS


def _imports(image: pefile.PE) -> dict[str, frozenset[str]]:
    wanted: dict[str, frozenset[str]] = {}
    for directory in ("DIRECTORY_ENTRY_IMPORT", "DIRECTORY_ENTRY_DELAY_IMPORT"):
        for entry in getattr(image, directory, []):
            names = frozenset(item.name.decode("latin-1") for item in entry.imports if item.name)
            library = entry.dll.decode("latin-1")
            wanted[library] = wanted.get(library, frozenset()) | names
    return wanted


def _exports(image: pefile.PE) -> frozenset[str]:
    table = getattr(image, "DIRECTORY_ENTRY_EXPORT", None)
    symbols = table.symbols if table else []
    return frozenset(symbol.name.decode("latin-1") for symbol in symbols if symbol.name)


def _version_strings(image: pefile.PE) -> dict[str, str]:
    return dict(_version_entries(image))


def _version_entries(image: pefile.PE) -> Iterator[tuple[str, str]]:
    for group in getattr(image, "FileInfo", None) or []:
        for block in group:
            for table in getattr(block, "StringTable", []):
                for key, value in table.entries.items():
                    yield key.decode("utf-8", "replace"), value.decode("utf-8", "replace").strip()
