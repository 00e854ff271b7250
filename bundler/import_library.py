"""Import libraries: what a linker is promised, against what the DLLs offer.

Source: Microsoft's "PE Format", Archive (Library) File Format and Import Library Format. An
archive holds one small object for each function; members of other kinds are skipped, and so
is a static library as a whole.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from bundler.binary_facts import BinaryFacts
from bundler.errors import Fault
from bundler.file_window import FileWindow
from bundler.inventory import CUDNN_LIBRARY

_MAGIC = b"!<arch>\n"
_MEMBER = struct.Struct("16s12x6x6x8x10s2s")
_IMPORT = struct.Struct("<3H H 4x L 2H")
_MACHINES = {0x8664: "x86_64", 0x14C: "x86", 0xAA64: "arm64", 0x1C4: "arm"}
_BY_NUMBER, _WITHOUT_PREFIX, _UNDECORATED, _EXPORTED_AS = 0, 2, 3, 4
_PREFIX = ("?", "@", "_")
_MAXIMUM_NAMES = 64 * 1024


@dataclass(frozen=True)
class Promise:
    """One function that a linker is told a DLL has.

    Args:
        machine: `x86_64`, or what the object has in hex.
        library: the DLL's name.
        symbol: the function's name there, or `#5` for a number.
    """

    machine: str
    library: str
    symbol: str


def read_promises(stream: BinaryIO) -> frozenset[Promise] | str:
    """Read what an import library promises, with bounded memory and time.

    Returns:
        the promises, or in words what makes it no import library.
    """
    window = FileWindow(stream)
    if window[: len(_MAGIC)] != _MAGIC:
        return "is not an import library"
    try:
        return frozenset(_promises(window))
    except (ValueError, struct.error) as error:
        return f"is damaged ({error})"


def _promises(window: FileWindow) -> Iterator[Promise]:
    for begin, size in _members(window):
        if size >= _IMPORT.size and window.part(begin, 4) == b"\0\0\xff\xff":
            data = window.part(begin, min(size, _IMPORT.size + _MAXIMUM_NAMES))
            _, _, version, machine, length, ordinal, kind = _IMPORT.unpack_from(data)
            if version == 0:
                names = data[_IMPORT.size : _IMPORT.size + length].split(b"\0")
                if len(names) < 3:
                    message = f"the names of its member at {begin} have no end"
                    raise ValueError(message)
                words = [name.decode("latin-1") for name in names]
                symbol = _symbol(words, ordinal, kind >> 2 & 7)
                yield Promise(_MACHINES.get(machine, hex(machine)), words[1], symbol)


def _members(window: FileWindow) -> Iterator[tuple[int, int]]:
    """Give offset and size of each member's content."""
    at = len(_MAGIC)
    while at < len(window):
        _, digits, end = _MEMBER.unpack(window.part(at, _MEMBER.size))
        text = digits.rstrip()
        if end != b"`\n" or not text.isdigit():
            message = f"no member begins at {at}"
            raise ValueError(message)
        begin, size = at + _MEMBER.size, int(text)
        if begin + size > len(window):
            message = f"its member at {at} lies beyond its end"
            raise ValueError(message)
        yield begin, size
        # Members begin at even offsets.
        at = begin + size + (size & 1)


def _symbol(words: list[str], ordinal: int, kind: int) -> str:
    """Turn a name as the linker sees it into the one in the DLL's export table."""
    name = words[0]
    if kind == _BY_NUMBER:
        return f"#{ordinal}"
    if kind == _EXPORTED_AS and len(words) > 3:
        return words[2]
    if kind in {_WITHOUT_PREFIX, _UNDECORATED} and name.startswith(_PREFIX):
        name = name[1:]
    return name.partition("@")[0] if kind == _UNDECORATED else name


def promise_faults(
    promises: Mapping[str, frozenset[Promise]],
    facts: Mapping[str, BinaryFacts],
    unreadable: frozenset[str] = frozenset(),
) -> Iterator[Fault]:
    """Say what import libraries promise and the shipped DLLs do not keep.

    Args:
        promises: by the import library's path.
        facts: of the DLLs, by file name.
        unreadable: names of DLLs that are there and whose faults are told already.
    """
    present = {name.lower(): fact for name, fact in facts.items()}
    told = {name.lower() for name in unreadable}
    for path, all_of_one in sorted(promises.items()):
        for library in sorted({promise.library for promise in all_of_one}):
            wanted = {p for p in all_of_one if p.library == library}
            exporter = present.get(library.lower())
            if exporter is not None:
                yield from _broken(path, library, wanted, exporter)
            elif library.lower() not in told and CUDNN_LIBRARY.fullmatch(library):
                yield Fault(path, f"leads to {library}, which is not in the archive")


def _broken(
    path: str, library: str, wanted: set[Promise], exporter: BinaryFacts
) -> Iterator[Fault]:
    machines = sorted({promise.machine for promise in wanted} - {exporter.machine})
    if machines:
        yield Fault(path, f"is for {machines[0]}, {library} for {exporter.machine}")
        return
    absent = sorted({p.symbol for p in wanted} - exporter.exports - exporter.ordinals)
    if absent:
        more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
        what = f"promises {absent[0]}{more}, which {library} does not offer"
        yield Fault(path, f"{what}: they are of different builds")
