"""What is read from a Linux library's bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bundler import elf
from bundler.binary import read_binary_facts
from bundler.binary_facts import BinaryFacts
from bundler.errors import Fault
from bundler.file_window import FileWindow
from bundler.names import Platform
from bundler.probe import decoy_library
from tests.sample_archives import FIXTURES
from tests.sample_facts import linux_facts

FOLDER = FIXTURES / "cudnn9"
OPS = (FOLDER / "libcudnn_ops.so.9").read_bytes()
PREBUILT = Path(__file__).parents[2] / "bundler" / "probe" / "prebuilt" / "linux-x86_64"


def facts_of(data: bytes, folder: Path) -> BinaryFacts | Fault:
    path = folder / "library.so"
    path.write_bytes(data)
    return read_binary_facts(path)


def test_facts_of_the_main_library() -> None:
    facts = linux_facts()["libcudnn.so.9"]

    assert facts.machine == "x86_64"
    assert facts.own_name == "libcudnn.so.9"
    assert facts.imports == {}
    assert facts.exports == {"cudnnGetVersion", "run_time_names"}
    # Its own name is in its data too, and is none that it opens.
    assert facts.run_time_names == ("libcudnn_graph.so", "libcudnn_ops.so")
    assert facts.search_path == ("$ORIGIN",)
    assert len(facts.build_id or "") == 40
    assert (facts.file_version, facts.is_signed, facts.oddities) == (None, False, ())


def test_facts_of_a_part() -> None:
    """A weak symbol need not be there, and a hidden one is not offered."""
    facts = linux_facts()

    assert facts["libcudnn_ops.so.9"].imports == {
        "libcudnn_graph.so.9": frozenset({"cudnnGraphVersionCheck"})
    }
    assert facts["libcudnn_ops.so.9"].unbound == frozenset()
    assert "hidden" not in facts["libcudnn_graph.so.9"].exports


def test_patterns_are_kept_and_error_messages_left_out() -> None:
    assert linux_facts()["libcudnn_graph.so.9"].run_time_names == ("libcuda.so.1", "libnvrtc.so.%d")


def test_versions_wanted_of_the_c_library() -> None:
    facts = read_binary_facts(PREBUILT / "cudnn-check.so")

    assert isinstance(facts, BinaryFacts)
    assert {"libc.so.6", "libdl.so.2"} <= facts.imports.keys()
    assert "dlopen" in facts.imports["libdl.so.2"]
    assert "GLIBC_2.2.5" in facts.symbol_versions


@pytest.mark.parametrize(
    ("data", "machine"),
    [
        ((PREBUILT.parent / "linux-aarch64" / "decoy.so").read_bytes(), "arm64"),
        (decoy_library(Platform.LINUX_X86_64), "x86_64"),
        ((FIXTURES / "machines" / "x86.so").read_bytes(), "x86"),
    ],
    ids=["arm64", "x86_64", "x86"],
)
def test_other_machines_are_told_apart(data: bytes, machine: str, tmp_path: Path) -> None:
    facts = facts_of(data, tmp_path)

    assert isinstance(facts, BinaryFacts)
    assert facts.machine == machine
    assert facts.own_name is None


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.so.9")), ids=lambda path: path.name)
def test_another_reader_agrees(path: Path) -> None:
    """pyelftools' own walk over the symbols, which is too slow and too trusting for real ones."""
    facts = linux_facts()[path.name]
    with path.open("rb") as stream:
        image = ELFFile(stream)
        symbols = [
            symbol
            for table in image.iter_sections()
            if isinstance(table, SymbolTableSection)
            for symbol in table.iter_symbols()
            if symbol.name and symbol["st_shndx"] != "SHN_ABS"
        ]

    offered = {symbol.name for symbol in symbols if symbol["st_shndx"] != "SHN_UNDEF"}
    wanted = {
        symbol.name
        for symbol in symbols
        if symbol["st_shndx"] == "SHN_UNDEF" and symbol["st_info"]["bind"] == "STB_GLOBAL"
    }
    assert facts.exports == offered
    assert frozenset[str]().union(*facts.imports.values()) == wanted


def patched(offset: int, value: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data[:offset] + value + data[offset + len(value) :]


def with_entry(table: int, kind: int, offset: int, value: bytes) -> Callable[[bytes], bytes]:
    """Patch a header: of segments (`table` 32) or sections (40) the first of a kind."""
    size, kind_at = (56, 0) if table == 32 else (64, 4)

    def patch(data: bytes) -> bytes:
        (begin,) = struct.unpack_from("<Q", data, table)
        at = next(
            place
            for place in range(begin, len(data), size)
            if struct.unpack_from("<L", data, place + kind_at) == (kind,)
        )
        return patched(at + offset, value)(data)

    return patch


def quad(value: int) -> bytes:
    return struct.pack("<Q", value)


SEGMENTS, SECTIONS = 32, 40
LOAD, DYNAMIC = 1, 2
DYNSYM, DYNAMIC_SECTION = 11, 6
DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda _: b"", "is not a Linux library"),
    "text": (lambda _: b"version https://git-lfs", "is not a Linux library"),
    "only the mark": (lambda _: b"\x7fELF", "is damaged"),
    "cut in the header": (lambda data: data[:40], "is damaged"),
    "cut in half": (lambda data: data[: len(data) // 2], "it is cut off: its tables"),
    "cut in the section table": (lambda data: data[:-8], "it is cut off: its tables"),
    "a segment beyond the end": (with_entry(SEGMENTS, LOAD, 32, quad(1 << 30)), "is cut off"),
    "a section beyond the end": (with_entry(SECTIONS, DYNSYM, 24, quad(1 << 40)), "is cut off"),
    "an object": (patched(16, b"\1\0"), "not a library"),
    "a program": (lambda _: (PREBUILT / "cudnn-check").read_bytes(), "not a library"),
    "no sections": (patched(60, b"\0\0"), "it has 0 sections"),
    "too many sections": (patched(60, b"\xff\xff"), "it has 65535 sections"),
    "no segments": (patched(56, b"\0\0"), "it has 0 segments"),
    "no dynamic table": (with_entry(SEGMENTS, DYNAMIC, 0, b"\4"), "not a library"),
    "two dynamic tables": (with_entry(SEGMENTS, DYNAMIC, 8, quad(64)), "different dynamic tables"),
    "no symbols": (with_entry(SECTIONS, DYNSYM, 4, b"\1"), "no table of dynamic symbols"),
    "names elsewhere": (with_entry(SECTIONS, DYNSYM, 40, b"\xff\0"), "is damaged"),
    "names without end": (with_entry(SECTIONS, DYNSYM, 40, b"\0"), "has no end"),
    "packed": (patched(0xE0, b"UPX!"), "is packed (UPX)"),
}


@pytest.mark.parametrize(("damage", "what"), DAMAGES.values(), ids=DAMAGES.keys())
def test_damage_is_a_fault_and_no_exception(
    damage: Callable[[bytes], bytes], what: str, tmp_path: Path
) -> None:
    fault = facts_of(damage(OPS), tmp_path)

    assert isinstance(fault, Fault)
    assert what in fault.what
    assert fault.where == "library.so"


ODDITIES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "data at the end": (lambda data: data + b"x", "has 1 bytes behind its last part"),
    "code that can be written": (with_entry(SEGMENTS, LOAD, 4, b"\7"), "can be written while"),
    "an absolute folder": (
        lambda data: data.replace(b"$ORIGIN\0", b"/opt/x/\0"),
        "looks for other libraries in /opt/x/, which is not beside it",
    ),
    "the current folder": (lambda data: data.replace(b"$ORIGIN\0", bytes(8)), "the current folder"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "what"), ODDITIES.values(), ids=ODDITIES.keys())
def test_what_is_odd(change: Callable[[bytes], bytes], what: str, tmp_path: Path) -> None:
    facts = facts_of(change(OPS), tmp_path)

    assert isinstance(facts, BinaryFacts)
    assert len(facts.oddities) == 1
    assert what in facts.oddities[0]


@given(
    changes=st.lists(st.tuples(st.integers(0, len(OPS) - 1), st.integers(0, 255)), max_size=12),
    length=st.integers(0, len(OPS)),
    whole=st.booleans(),
)
@example(changes=[], length=len(OPS), whole=True)
@example(changes=[(1357, 16)], length=0, whole=True)
@settings(
    max_examples=400,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_no_mutation_of_a_library_raises(
    changes: list[tuple[int, int]], length: int, tmp_path: Path, *, whole: bool
) -> None:
    data = bytearray(OPS)
    for offset, value in changes:
        data[offset] = value

    cut = bytes(data if whole else data[:length])
    assert isinstance(facts_of(cut, tmp_path), BinaryFacts | Fault)


def test_reading_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []

    class Watched(FileWindow):
        def _part(self, offset: int, length: int) -> bytes:
            reads.append(length)
            return super()._part(offset, length)

    monkeypatch.setattr(elf, "FileWindow", Watched)
    path = tmp_path / "libcudnn_ops.so.9"
    path.write_bytes(OPS)
    with path.open("r+b") as stream:
        stream.truncate(64 * 1024 * 1024)

    assert isinstance(read_binary_facts(path), BinaryFacts)
    assert sum(reads) < 1024 * 1024


def test_a_dynamic_table_without_end_is_left(tmp_path: Path) -> None:
    """Every entry names a library, and the file has half a million of them."""
    entries = struct.pack("<2Q", 1, 1) * 500_000
    at = quad(len(OPS))
    data = with_entry(SEGMENTS, DYNAMIC, 8, at)(OPS)
    data = with_entry(SECTIONS, DYNAMIC_SECTION, 24, at)(data)

    facts = facts_of(data + entries, tmp_path)

    assert isinstance(facts, BinaryFacts)
    assert len(facts.imports) < 3
