"""Finding names of libraries in data, wherever they lie."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.run_time_names import linux_names, merged, scan

CHUNK = 1024 * 1024
LINUX_NAMES = {
    b"\0libcublas.so.12\0": {"libcublas.so.12"},
    b"\0libnvrtc.so.%d.%d\0": {"libnvrtc.so.%d.%d"},
    b"\0libnvrtc.so.%d\0libcuda.so\0": {"libnvrtc.so.%d", "libcuda.so"},
    b"libnvrtc-builtins.so.12.9": {"libnvrtc-builtins.so.12.9"},
    b"\0Could not open libcublas.so.12\0": set(),
    b"\0/usr/lib/libcuda.so.1\0": set(),
    b"\0libx.sox\0": set(),
    b"\0libx.so.conf\0": set(),
    b"\0.so\0": set(),
}


@pytest.mark.parametrize(("data", "expected"), LINUX_NAMES.items(), ids=map(repr, LINUX_NAMES))
def test_linux_names(data: bytes, expected: set[str]) -> None:
    assert set(scan(io.BytesIO(data), 0, len(data), linux_names)) == expected


@pytest.mark.parametrize("before", range(CHUNK - 20, CHUNK + 3))
def test_a_linux_name_across_chunks_is_found(before: int) -> None:
    data = bytes(before) + b"libcublas.so.12" + bytes(30)

    assert set(scan(io.BytesIO(data), 0, len(data), linux_names)) == {"libcublas.so.12"}


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([], []),
        ([(5, 0)], []),
        ([(4, 2), (0, 3)], [(0, 3), (4, 2)]),
        ([(0, 4), (4, 2)], [(0, 6)]),
        ([(0, 9), (2, 3), (8, 4)], [(0, 12)]),
    ],
)
def test_ranges_are_merged(ranges: list[tuple[int, int]], expected: list[tuple[int, int]]) -> None:
    assert list(merged(ranges)) == expected


def names(data: bytes, offset: int = 0, length: int | None = None) -> set[str]:
    return set(scan(io.BytesIO(data), offset, len(data) - offset if length is None else length))


def wide(text: str) -> bytes:
    return text.encode("utf-16-le")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"\0cublas64_11.dll\0", {"cublas64_11.dll"}, id="plain"),
        pytest.param(b"cublas64_11.dll\0", {"cublas64_11.dll"}, id="at the beginning"),
        pytest.param(b"\0cublas64_11.dll", {"cublas64_11.dll"}, id="at the end without a zero"),
        pytest.param(b"\xffcublas64_11.dll\0", {"cublas64_11.dll"}, id="after a byte of no text"),
        pytest.param(b"\0A.DLL\0", {"A.dll"}, id="upper-case ending"),
        pytest.param(b"\0CUBLAS64_11.DLL\0", {"CUBLAS64_11.dll"}, id="all upper case"),
        pytest.param(b"\0nvrtc64_%d_0.dll\0", {"nvrtc64_%d_0.dll"}, id="pattern"),
        pytest.param(b"\0nvrtc64_%d%d_0.dll\0", {"nvrtc64_%d%d_0.dll"}, id="pattern of two"),
        pytest.param(b"\0nvrtc-builtins64_%d%d.dll\0", {"nvrtc-builtins64_%d%d.dll"}, id="dash"),
        pytest.param(b"\0a.dll\0b.dll\0", {"a.dll", "b.dll"}, id="two in a row"),
        pytest.param(b"\0a.b.dll\0", {"a.b.dll"}, id="dot inside"),
        pytest.param(b"\0" + b"a" * 63 + b".dll\0", {"a" * 63 + ".dll"}, id="longest"),
        pytest.param(b"\0\0" + wide("zlibwapi.dll") + b"\0\0", {"zlibwapi.dll"}, id="wide"),
        pytest.param(wide("zlibwapi.dll") + b"\0\0", {"zlibwapi.dll"}, id="wide at the beginning"),
        pytest.param(b"\0\0" + wide("zlibwapi.dll"), {"zlibwapi.dll"}, id="wide at the end"),
        pytest.param(b"\0\0" + wide("A.DLL\0"), {"A.dll"}, id="wide upper-case ending"),
        pytest.param(wide("\0a.dll\0b.dll\0"), {"a.dll", "b.dll"}, id="two wide ones in a row"),
        pytest.param(b"\0\0\0" + wide("a_%d.dll\0"), {"a_%d.dll"}, id="wide at an odd offset"),
        pytest.param(b"x\0" + wide("\0a.dll\0"), {"a.dll"}, id="wide after narrow text"),
        pytest.param(b"", set(), id="nothing"),
        pytest.param(b"\0Could not load cublas64_11.dll\0", set(), id="in an error text"),
        pytest.param(b"\0cublas64_11.dll is missing\0", set(), id="begins an error text"),
        pytest.param(b"\0C:\\bin\\cublas64_11.dll\0", set(), id="in a path"),
        pytest.param(b"\0.dll\0", set(), id="ending only"),
        pytest.param(b"\0" + b"a" * 64 + b".dll\0", set(), id="too long for a name"),
        pytest.param(b"\0a.dllx\0", set(), id="longer ending"),
        pytest.param(b"\0a.dll.config\0", set(), id="another file's name"),
        pytest.param(wide("\0Cannot open a.dll\0"), set(), id="wide, in an error text"),
    ],
)  # fmt: skip
def test_names(data: bytes, expected: set[str]) -> None:
    assert names(data) == expected


ENCODINGS = {
    "narrow": b"\0cublas64_11.dll\0",
    "narrow, longest": b"\0" + b"cudnn" * 12 + b"64_.dll\0",
    "wide": wide("\0zlibwapi.dll\0"),
    "wide, longest": wide("\0" + "cudnn" * 12 + "64_.dll\0"),
}


@pytest.mark.parametrize("text", ENCODINGS.values(), ids=ENCODINGS.keys())
def test_names_across_a_chunk_border(text: bytes) -> None:
    """Every way in which the border can cut the name, and a good way around it."""
    (expected,) = names(text)
    for shift in range(-len(text) - 4, 5):
        before = b"\xff" * (CHUNK + shift)

        assert names(before + text + b"\xff" * 300) == {expected}, shift


@pytest.mark.parametrize("shift", range(-40, 3))
def test_an_error_text_across_a_border_is_no_name(shift: int) -> None:
    text = b"\xff" * (CHUNK + shift) + b"Could not load library cublas64_11.dll\0"

    assert names(text) == set()


@pytest.mark.parametrize("shift", range(-300, -200, 7))
def test_text_that_begins_before_the_overlap_is_no_name(shift: int) -> None:
    text = b"\xff" * (CHUNK + shift) + b"x" * 240 + b" cublas64_11.dll\0"

    assert names(text) == set()


def test_only_the_range_is_read() -> None:
    data = b"\0before.dll\0\0inside.dll\0\0after.dll\0"
    start = data.index(b"inside") - 1

    assert names(data, start, 12) == {"inside.dll"}


def test_last_bytes_of_a_section() -> None:
    """A section ends where its file bytes end; memory goes on with zeros."""
    data = b"\0\xffinside.dllafter"

    assert names(data, 0, data.index(b"after")) == {"inside.dll"}


def test_a_range_beyond_the_end_of_the_file_is_no_error() -> None:
    assert names(b"\0a.dll\0", 0, 10**9) == {"a.dll"}


ALPHABET = "abcXYZ0189_"


@given(
    st.lists(st.text(ALPHABET, min_size=1, max_size=20), min_size=1, max_size=5, unique=True),
    st.booleans(),
    st.binary(max_size=8),
)
def test_any_name_is_found(stems: list[str], is_wide: bool, junk: bytes) -> None:
    expected = {f"{stem}.dll" for stem in stems}
    text = "".join(f"\0{name}\0" for name in sorted(expected))
    data = junk + (b"\0\0" + wide(text) if is_wide else text.encode())

    assert names(data) == expected


@given(st.binary(max_size=400))
def test_any_bytes_are_read(data: bytes) -> None:
    for name in names(b".dll\0" + data + wide(".dll\0")):
        assert name.isascii()
        assert len(name) <= 67
