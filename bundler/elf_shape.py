"""Whether a Linux library lies whole in its file, and whether somebody reworked it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bundler.elf_layout import Layout

_WRITABLE, _EXECUTABLE = 2, 1


def structure_fault(layout: Layout, size: int) -> str:
    """Say what makes it no whole library, or nothing.

    Args:
        layout: of the file.
        size: of the file, bytes.
    """
    if layout.image.header.e_type != "ET_DYN":
        return "is a Linux file, but not a library"
    if layout.end > size:
        return f"is cut off: its parts need {layout.end} bytes, it has {size}"
    tables = [part.offset for part in layout.segments if part.kind == "PT_DYNAMIC"]
    if len(tables) != 1:
        return "is a Linux file, but not a library"
    # Sections are read here, segments by the loader; both must mean the same.
    if tables != [part.offset for part in layout.sections if part.kind == "SHT_DYNAMIC"]:
        return "is damaged: its sections and its segments name different dynamic tables"
    return ""


def oddities(layout: Layout, size: int, folders: Iterable[str]) -> Iterator[str]:
    """Say what nothing built by NVIDIA is known to have.

    Args:
        layout: of the file.
        size: of the file, bytes.
        folders: where the library says it looks for others.
    """
    if size > layout.end:
        yield f"has {size - layout.end} bytes behind its last part that belong to nothing"
    for part in layout.segments:
        if part.kind == "PT_LOAD" and part.flags & _WRITABLE and part.flags & _EXECUTABLE:
            yield "has code that can be written while it runs, as packers leave"
    for folder in folders:
        if not folder.startswith(("$ORIGIN", "${ORIGIN}")):
            where = folder or "the current folder"
            yield f"looks for other libraries in {where}, which is not beside it (RUNPATH)"
