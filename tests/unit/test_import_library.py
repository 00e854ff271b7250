"""What import libraries promise, against what the DLLs offer."""

from __future__ import annotations

import io
import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.errors import Fault
from bundler.import_library import Promise, promise_faults, read_promises
from tests.sample_archives import FIXTURES
from tests.sample_facts import library_facts, stand_in_facts

OPS = "cudnn_ops_infer64_8.dll"
HEADER = b"!<arch>\n"


def library(name: str, version: str = "8.9.5.29") -> bytes:
    return (FIXTURES / "cudnn8" / version / "lib" / name.replace(".dll", ".lib")).read_bytes()


def promises_of(data: bytes) -> frozenset[Promise]:
    found = read_promises(io.BytesIO(data))
    assert not isinstance(found, str), found
    return found


def member(content: bytes, size: int | None = None) -> bytes:
    header = f"{'x/':16}{0:<12}{'':6}{'':6}{0:<8}{len(content) if size is None else size:<10}`\n"
    return header.encode() + content + bytes(len(content) % 2)


def promise(*names: str, kind: int = 1, number: int = 7, version: int = 0) -> bytes:
    text = b"".join(name.encode() + b"\0" for name in names)
    fields = (0, 0xFFFF, version, 0x8664, 0, len(text), number, kind << 2)
    return member(struct.pack("<4H2L2H", *fields) + text)


@pytest.mark.parametrize("name", sorted(stand_in_facts()))
def test_a_real_library_promises_what_its_dll_offers(name: str) -> None:
    facts = stand_in_facts()
    found = promises_of(library(name))

    assert {p.library for p in found} == {name}
    assert {p.machine for p in found} == {"x86_64"}
    assert {p.symbol for p in found} == facts[name].exports
    assert list(promise_faults({"a.lib": found}, facts)) == []


@pytest.mark.parametrize(
    ("data", "symbol"),
    [
        pytest.param(promise("f", "a.dll"), "f", id="as it is"),
        pytest.param(promise("f", "a.dll", kind=0), "#7", id="by number"),
        pytest.param(promise("_f@8", "a.dll", kind=2), "f@8", id="without a prefix"),
        pytest.param(promise("_f@8", "a.dll", kind=3), "f", id="undecorated"),
        pytest.param(promise("f", "a.dll", "g", kind=4), "g", id="exported as"),
    ],
)
def test_names(data: bytes, symbol: str) -> None:
    assert promises_of(HEADER + data) == {Promise("x86_64", "a.dll", symbol)}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="an empty archive"),
        pytest.param(member(b"\x64\x86" + bytes(60)), id="an object of a static library"),
        pytest.param(promise("f", "a.dll", version=2), id="an object of another kind"),
        pytest.param(member(b"odd"), id="a short member of odd length"),
    ],
)
def test_what_promises_nothing(data: bytes) -> None:
    assert promises_of(HEADER + data) == frozenset()


@pytest.mark.parametrize(
    ("data", "what"),
    [
        pytest.param(b"", "is not an import library", id="empty"),
        pytest.param(b"MZ" + bytes(99), "is not an import library", id="a DLL"),
        pytest.param(HEADER + member(b"xx")[:-1], "is damaged (its member at 8 lies", id="cut"),
        pytest.param(HEADER + b"x" * 60, "is damaged (no member begins at 8)", id="no header"),
        pytest.param(HEADER + b"x", "is damaged (bytes 8 to 68 lie beyond", id="cut header"),
        pytest.param(HEADER + member(b"", 10**9), "lies beyond its end", id="too long"),
        pytest.param(HEADER + promise("f"), "names of its member at 68 have no end", id="no DLL"),
    ],
)
def test_damage(data: bytes, what: str) -> None:
    found = read_promises(io.BytesIO(data))

    assert isinstance(found, str)
    assert what in found


@given(st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=8))
def test_no_mutation_raises(changes: list[tuple[int, int]]) -> None:
    data = bytearray(library(OPS))
    for offset, value in changes:
        data[offset % len(data)] = value

    assert isinstance(read_promises(io.BytesIO(bytes(data))), frozenset | str)


def test_a_library_of_another_build_is_named() -> None:
    facts = stand_in_facts()
    facts[OPS] = replace(facts[OPS], exports=facts[OPS].exports - {"cudnnCreate", "cudnnDestroy"})

    assert list(promise_faults({"lib/ops.lib": promises_of(library(OPS))}, facts)) == [
        Fault(
            "lib/ops.lib",
            f"promises cudnnCreate and 1 more, which {OPS} does not offer: "
            "they are of different builds",
        )
    ]


@pytest.mark.parametrize(
    ("promised", "what"),
    [
        pytest.param(Promise("arm64", "A.dll", "f"), "is for arm64, A.dll for x86_64", id="arm64"),
        pytest.param(
            Promise("x86_64", "cudnn_new64_8.dll", "f"),
            "leads to cudnn_new64_8.dll, which is not in the archive",
            id="an absent DLL",
        ),
        pytest.param(
            Promise("x86_64", "a.dll", "#9"), "promises #9, which a.dll does not offer", id="number"
        ),
        pytest.param(Promise("x86_64", "a.dll", "f"), None, id="kept"),
        pytest.param(Promise("x86_64", "a.dll", "#5"), None, id="a number kept"),
        pytest.param(Promise("x86_64", "zlibwapi.dll", "f"), None, id="a DLL that is no cuDNN"),
        pytest.param(Promise("x86_64", "cudnn64_8.dll", "f"), None, id="a DLL that is damaged"),
    ],
)
def test_promises(promised: Promise, what: str | None) -> None:
    facts = {"a.dll": replace(library_facts(exports=["f"]), ordinals=frozenset({"#5"}))}
    faults = promise_faults({"x.lib": frozenset({promised})}, facts, frozenset({"CUDNN64_8.dll"}))

    assert [fault.what.partition(":")[0] for fault in faults] == ([what] if what else [])
