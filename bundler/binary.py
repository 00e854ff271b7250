"""Facts about a library, read from its bytes: nothing is loaded or run."""

from __future__ import annotations

from pathlib import Path

from bundler import elf, pe
from bundler.binary_facts import BinaryFacts
from bundler.errors import Fault


def read_binary_facts(path: Path) -> BinaryFacts | Fault:
    """Read one library's facts with bounded memory, in the format that its bytes show.

    Returns:
        the facts, or the fault that makes it no usable library.
    """
    with path.open("rb") as stream:
        head = stream.read(4)
        is_windows_name = path.name.lower().endswith(".dll")
        if head == elf.MAGIC and is_windows_name:
            return Fault(path.name, "is not a Windows library, but a Linux one (ELF)")
        is_windows = is_windows_name or head.startswith(pe.MAGIC)
        found = pe.read_facts(stream) if is_windows else elf.read_facts(stream)
    return found if isinstance(found, BinaryFacts) else Fault(path.name, found)
