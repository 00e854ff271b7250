"""What is read from a library's bytes."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bundler import pe
from bundler.binary import read_binary_facts
from bundler.binary_facts import BinaryFacts
from bundler.errors import Fault
from bundler.file_window import FileWindow
from bundler.names import Platform
from bundler.probe import decoy_library
from tests.sample_archives import FIXTURES, libraries
from tests.sample_facts import stand_in_facts

SUB = "cudnn_cnn_train64_8.dll"


def facts_of(data: bytes, folder: Path) -> BinaryFacts | Fault:
    path = folder / "library.dll"
    path.write_bytes(data)
    return read_binary_facts(path)


def test_facts_of_the_main_library() -> None:
    facts = stand_in_facts()["cudnn64_8.dll"]

    assert facts.machine == "x86_64"
    assert facts.file_version == "8.9.5.29"
    assert (facts.fixed_version, facts.product_version) == ("8.9.5.29", "8.9.5.29")
    assert facts.original_filename == facts.own_name == "cudnn64_8.dll"
    assert len(facts.ordinals) == len(facts.exports)
    assert facts.oddities == ()
    assert set(facts.imports) == {"KERNEL32.dll"}
    assert {"cudnnCreate", "cudnnGetVersion"} <= facts.exports
    assert {f"cudnn_{part}_{use}64_8.dll" for part in ("ops", "cnn", "adv")
            for use in ("infer", "train")} < set(facts.run_time_names)  # fmt: skip
    assert not facts.is_signed


def test_facts_of_a_part() -> None:
    facts = stand_in_facts()[SUB]

    assert set(facts.imports) == {
        "KERNEL32.dll",
        "cudnn_cnn_infer64_8.dll",
        "cudnn_ops_infer64_8.dll",
        "cudnn_ops_train64_8.dll",
    }
    assert facts.imports["cudnn_ops_infer64_8.dll"] == {"standInOpsInferVersion"}
    assert "cudnnCnnTrainVersionCheck" in facts.exports


def test_wide_and_narrow_names_are_found_and_printf_patterns_kept() -> None:
    names = stand_in_facts()["cudnn_ops_infer64_8.dll"].run_time_names

    assert {"cublas64_11.dll", "cublasLt64_11.dll", "nvrtc64_%d_0.dll"} < set(names)


def test_imported_names_are_not_run_time_names() -> None:
    for facts in stand_in_facts().values():
        imported = {name.lower() for name in facts.imports}
        assert not imported & {name.lower() for name in facts.run_time_names}


@pytest.mark.parametrize("machine", ["x86", "arm64"])
def test_other_machines_are_told_apart(machine: str) -> None:
    facts = read_binary_facts(FIXTURES / "machines" / f"{machine}.dll")

    assert isinstance(facts, BinaryFacts)
    assert facts.machine == machine
    assert facts.file_version is None


def test_a_library_without_version_resource(tmp_path: Path) -> None:
    facts = facts_of(decoy_library(Platform.WINDOWS_X86_64), tmp_path)

    assert isinstance(facts, BinaryFacts)
    assert (facts.file_version, facts.original_filename) == (None, None)


def patched(offset: int, value: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data[:offset] + value + data[offset + len(value) :]


def header(offset: int, value: bytes) -> Callable[[bytes], bytes]:
    """Patch behind the signature `PE`, wherever that is."""

    def patch(data: bytes) -> bytes:
        (start,) = struct.unpack_from("<L", data, 0x3C)
        return patched(start + offset, value)(data)

    return patch


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda _: b"", "is not a Windows library"),
    "text": (lambda _: b"version https://git-lfs", "is not a Windows library"),
    "ELF": (lambda _: b"\x7fELF" + bytes(500), "is not a Windows library, but a Linux one"),
    "only MZ": (lambda _: b"MZ", "is damaged"),
    "no PE signature": (header(0, b"XX"), "is damaged"),
    "header offset beyond the end": (patched(0x3C, b"\xff\xff\xff\x7f"), "is damaged"),
    "cut in the headers": (lambda data: data[:200], "is damaged"),
    "cut in the sections": (lambda data: data[:-600], "is cut off"),
    "an executable": (header(22, b"\x22\x00"), "not a library"),
    "no sections": (header(6, b"\0\0"), "not a library"),
    # Directory 4 of a 64-bit optional header: 24 + 112 + 4 * 8.
    "signature beyond the end": (header(168, struct.pack("<2L", 4096, 999_999)), "signature"),
    "signature in a section": (header(168, struct.pack("<2L", 1024, 8)), "inside its sections"),
    "exports elsewhere": (header(136, struct.pack("<2L", 0x100000, 40)), "its export table lies"),
    "imports elsewhere": (header(144, struct.pack("<2L", 0x100000, 40)), "its import table lies"),
    "resources too long": (header(156, struct.pack("<L", 0x100000)), "its resource table lies"),
    "exports cut": (header(140, struct.pack("<L", 40)), "export table points outside itself"),
    "UPX": (lambda data: data.replace(b".rdata\0\0", b"UPX1\0\0\0\0", 1), "is packed (UPX)"),
    "VMProtect": (lambda data: data.replace(b".rdata\0\0", b".vmp0\0\0\0", 1), "(VMProtect)"),
}


@pytest.mark.parametrize(("damage", "what"), DAMAGES.values(), ids=DAMAGES.keys())
def test_damage_is_a_fault_and_no_exception(
    damage: Callable[[bytes], bytes], what: str, tmp_path: Path
) -> None:
    fault = facts_of(damage(libraries()[SUB]), tmp_path)

    assert isinstance(fault, Fault)
    assert what in fault.what
    assert fault.where == "library.dll"


def test_a_signature_is_noticed(tmp_path: Path) -> None:
    data = libraries()[SUB]
    signed = header(168, struct.pack("<2L", len(data), 8))(data) + bytes(8)

    facts = facts_of(signed, tmp_path)

    assert isinstance(facts, BinaryFacts)
    assert facts.is_signed


def with_flags(name: bytes, flags: int) -> Callable[[bytes], bytes]:
    """Set the characteristics of a section, 36 bytes behind its name."""
    return lambda data: patched(data.index(name) + 36, struct.pack("<L", flags))(data)


def with_large_code(data: bytes) -> bytes:
    """Let the code end the file and be 64 KiB of compressed bytes."""
    at, begin = data.index(b".text\0"), len(data)
    fields = struct.pack("<2L", 64 * 1024, begin)
    return (
        patched(at + 16, fields)(data) + zlib.compress(random.Random(8).randbytes(2**16))[: 2**16]
    )


ODDITIES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "data behind the sections": (lambda data: data + b"x" * 9, "has 9 bytes behind its last sect"),
    "data behind the signature": (
        lambda data: header(168, struct.pack("<2L", len(data), 8))(data) + bytes(11),
        "has 3 bytes behind its signature",
    ),
    "data before the signature": (
        lambda data: header(168, struct.pack("<2L", len(data) + 5, 8))(data) + bytes(13),
        "has 5 bytes behind its last section",
    ),
    "code that can be written": (with_flags(b".text\0", 0xE0000020), "written while it runs (.tex"),
    "compressed code": (with_large_code, "has code that looks compressed"),
}


@pytest.mark.parametrize(("change", "what"), ODDITIES.values(), ids=ODDITIES.keys())
def test_what_packers_leave_is_an_oddity(
    change: Callable[[bytes], bytes], what: str, tmp_path: Path
) -> None:
    facts = facts_of(change(libraries()[SUB]), tmp_path)

    assert isinstance(facts, BinaryFacts)
    assert len(facts.oddities) == 1
    assert what in facts.oddities[0]


def test_sections_that_overlap_are_scanned_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a few thousand sections that span the file would take hours."""
    ranges: list[tuple[int, int]] = []

    def scan(_: BinaryIO, offset: int, length: int) -> Iterator[str]:
        ranges.append((offset, length))
        yield from ()

    monkeypatch.setattr(pe, "scan", scan)
    data = libraries()[SUB]
    for name in (b".rdata\0", b".rsrc\0"):
        data = patched(data.index(name) + 16, struct.pack("<2L", 4096 - 512, 512))(data)

    facts_of(data, tmp_path)

    assert sum(length for _, length in ranges) <= len(data)


@given(
    changes=st.lists(st.tuples(st.integers(0, 4607), st.integers(0, 255)), max_size=12),
    length=st.integers(0, 4608),
)
@example(changes=[], length=4608)
@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_no_mutation_of_a_library_raises(
    changes: list[tuple[int, int]], length: int, tmp_path: Path
) -> None:
    data = bytearray(libraries()[SUB])
    for offset, value in changes:
        data[offset] = value

    assert isinstance(facts_of(bytes(data[:length]), tmp_path), BinaryFacts | Fault)


def test_reading_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library of 64 MiB, most of it kernels: no read is larger than a chunk of the scan."""
    reads: list[int] = []

    class Watched(FileWindow):
        def _part(self, offset: int, length: int) -> bytes:
            reads.append(length)
            return super()._part(offset, length)

    monkeypatch.setattr(pe, "FileWindow", Watched)
    path = tmp_path / SUB
    path.write_bytes(libraries()[SUB])
    with path.open("r+b") as stream:
        stream.truncate(64 * 1024 * 1024)

    facts = read_binary_facts(path)

    assert isinstance(facts, BinaryFacts)
    assert max(reads) <= 1024 * 1024
    assert sum(reads) < 8 * 1024 * 1024
