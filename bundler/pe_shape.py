"""Whether a Windows library lies whole in its file, and whether somebody reworked it.

What makes it unusable is a fault. What only no library of NVIDIA's has, as far as known,
is an oddity: said, and let through, since an old release may have it after all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import pefile

from bundler.file_window import FileWindow

_TABLES = {
    "export table": pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_EXPORT"],
    "import table": pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_IMPORT"],
    "delayed import table": pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT"],
    "resource table": pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_RESOURCE"],
}
_SECURITY = pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_SECURITY"]
_EXECUTABLE, _WRITABLE = 0x20000000, 0x80000000
# Section names that executable compressors leave behind.
_PACKERS = {
    **dict.fromkeys(("UPX0", "UPX1", "UPX2", "UPX!"), "UPX"),
    **dict.fromkeys((".MPRESS1", ".MPRESS2"), "MPRESS"),
    **dict.fromkeys((".aspack", ".adata"), "ASPack"),
    **dict.fromkeys((".vmp0", ".vmp1", ".vmp2"), "VMProtect"),
    **dict.fromkeys((".themida", ".winlice"), "Themida"),
    **dict.fromkeys(("PEC2", "PEC2TO", "pec1", "pec2"), "PECompact"),
    **dict.fromkeys((".petite", "petite"), "Petite"),
}
_SAMPLE = 64 * 1024
# Machine code of x86_64 and arm64 has 5 to 6.7 bits of information a byte, compressed data 7.9.
_COMPRESSED = 7.5


def structure_fault(image: pefile.PE, size: int) -> str:
    """Say what makes it no whole library, or nothing.

    Args:
        image: parsed headers.
        size: of the file, bytes.
    """
    return next(_structure_faults(image, size), "")


def _structure_faults(image: pefile.PE, size: int) -> Iterator[str]:
    end = end_of_sections(image)
    security = image.OPTIONAL_HEADER.DATA_DIRECTORY[_SECURITY]
    packers = sorted({_PACKERS[name] for s in image.sections if (name := _name(s)) in _PACKERS})
    if not image.sections or not image.is_dll():
        yield "is a Windows file, but not a library"
    if end > size:
        yield f"is cut off: its sections need {end} bytes, it has {size}"
    if security.VirtualAddress + security.Size > size:
        yield "is cut off: its signature lies beyond its end"
    if security.Size and security.VirtualAddress < end:
        yield "is damaged: its signature lies inside its sections"
    if packers:
        yield f"is packed ({', '.join(packers)}): these are not the bytes that NVIDIA built"
    for name, number in _TABLES.items():
        if not _is_inside(image, number):
            yield f"is damaged: its {name} lies outside its sections"


def end_of_sections(image: pefile.PE) -> int:
    """Give the offset of the first byte behind all sections."""
    return max((s.PointerToRawData + s.SizeOfRawData for s in image.sections), default=0)


def oddities(image: pefile.PE, window: FileWindow) -> Iterator[str]:
    """Say what nothing built by NVIDIA is known to have.

    Args:
        image: parsed headers and import table.
        window: the file.
    """
    security = image.OPTIONAL_HEADER.DATA_DIRECTORY[_SECURITY]
    end = end_of_sections(image)
    between = (security.VirtualAddress if security.Size else len(window)) - end
    behind = len(window) - security.VirtualAddress - security.Size if security.Size else 0
    if between:
        yield f"has {between} bytes behind its last section that belong to nothing"
    if behind:
        yield f"has {behind} bytes behind its signature, which covers none of them"
    for section in image.sections:
        if section.Characteristics & _EXECUTABLE and section.Characteristics & _WRITABLE:
            yield f"has code that can be written while it runs ({_name(section)}), as packers leave"
    if _looks_compressed(image, window):
        yield "has code that looks compressed or encrypted"


def _name(section: pefile.SectionStructure) -> str:
    return str(section.Name.rstrip(b"\0").decode("latin-1"))


def _is_inside(image: pefile.PE, number: int) -> bool:
    directories = image.OPTIONAL_HEADER.DATA_DIRECTORY
    if number >= len(directories) or not directories[number].VirtualAddress:
        return True
    begin, size = directories[number].VirtualAddress, directories[number].Size
    return any(
        s.VirtualAddress <= begin
        and begin + size <= s.VirtualAddress + max(s.Misc_VirtualSize, s.SizeOfRawData)
        for s in image.sections
    )


def _looks_compressed(image: pefile.PE, window: FileWindow) -> bool:
    """Judge the middle of the largest section of code."""
    code = [s for s in image.sections if s.Characteristics & _EXECUTABLE and s.SizeOfRawData]
    if not code:
        return False
    largest = max(code, key=lambda section: int(section.SizeOfRawData))
    length = min(_SAMPLE, largest.SizeOfRawData)
    begin = largest.PointerToRawData + (largest.SizeOfRawData - length) // 2
    return _bits_a_byte(window.part(begin, length)) > _COMPRESSED


def _bits_a_byte(data: bytes) -> float:
    """Give Shannon's entropy."""
    shares = [count / len(data) for count in Counter(data).values()]
    return -sum(share * math.log2(share) for share in shares)
