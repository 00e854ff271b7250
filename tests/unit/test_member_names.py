"""Which member names are refused, which are accepted, and which fall on one file."""

from __future__ import annotations

import ntpath
import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.errors import Fault
from bundler.member_names import MAXIMUM_LENGTH, collisions, faults_of, normalise, shown

LONGEST = "a" * MAXIMUM_LENGTH


def row(identifier: str, *values: object) -> object:
    return pytest.param(*values, id=identifier)


REFUSED = [
    row("parent first", "../evil.dll", "leaves its folder"),
    row("parent inside", "bin/../../evil.dll", "leaves its folder"),
    row("parent last", "bin/..", "leaves its folder"),
    row("parent folder", "bin/../", "leaves its folder"),
    row("backslash parent", "..\\evil.dll", "leaves its folder"),
    row("backslash parent inside", "bin\\..\\..\\evil.dll", "leaves its folder"),
    row("dot", "./cudnn.dll", "leaves its folder or is ambiguous"),
    row("dot inside", "bin/./cudnn.dll", "ambiguous"),
    row("empty component", "bin//cudnn.dll", "ambiguous"),
    row("two final slashes", "bin//", "ambiguous"),
    row("empty", "", "is an empty name"),
    row("only a slash", "/", "absolute"),
    row("only a backslash", "\\", "absolute"),
    row("absolute", "/etc/passwd", "absolute"),
    row("absolute backslash", "\\Windows\\cudnn.dll", "absolute"),
    row("drive", "C:/Windows/cudnn.dll", "drive"),
    row("drive backslash", "C:\\Windows\\cudnn.dll", "drive"),
    row("drive-relative", "c:cudnn.dll", "drive"),
    row("UNC", "\\\\server\\share\\cudnn.dll", "absolute"),
    row("UNC slashes", "//server/share/cudnn.dll", "absolute"),
    row("device path", "\\\\?\\C:\\cudnn.dll", "absolute"),
    row("mixed slashes", "bin/x64\\cudnn.dll", "mixes backslashes and slashes"),
    row("mixed traversal", "bin/..\\..\\cudnn.dll", "mixes"),
    row("reserved with suffix", "bin/aux.dll", "reserved Windows name 'aux.dll'"),
    row("reserved upper case", "COM1.txt", "reserved"),
    row("reserved bare", "nul", "reserved"),
    row("reserved folder", "con/cudnn.dll", "reserved"),
    row("reserved two suffixes", "prn.tar.gz", "reserved"),
    row("reserved console", "CONIN$", "reserved"),
    row("reserved superscript", "com¹.dll", "reserved"),
    row("reserved zero", "lpt0", "reserved"),
    row("reserved, space before the suffix", "nul .txt", "reserved"),
    row("final dot", "cudnn.dll.", "ends with a dot or a space"),
    row("final space", "cudnn.dll ", "ends with a dot or a space"),
    row("final dot of a folder", "bin./cudnn.dll", "ends with a dot or a space"),
    row("three dots", ".../cudnn.dll", "ends with a dot or a space"),
    row("NUL", "cudnn.dll\0.txt", "holds the character '\\x00'"),
    row("newline", "cudnn\n.dll", "holds the character '\\n'"),
    row("escape", "\x1b[2Jcudnn.dll", "holds the character '\\x1b'"),
    row("delete", "cudnn\x7f.dll", "holds the character"),
    row("C1 control", "cudnn\x9b.dll", "holds the character"),
    row("right-to-left override", "cudnn\u202elld.exe", "holds the character '\\u202e'"),
    row("zero width", "cudnn\u200b.dll", "holds the character"),
    row("half a surrogate pair", "cudnn\ud800.dll", "holds the character"),
    row("alternate data stream", "cudnn.dll:evil", "holds the character ':'"),
    row("wildcard", "cudnn*.dll", "holds the character '*'"),
    row("question mark", "cudnn?.dll", "holds the character '?'"),
    row("pipe", "a|b", "holds the character '|'"),
    row("quote", 'a"b', "holds the character"),
    row("angle brackets", "<a>", "holds the character '<'"),
    row("too long", LONGEST + "a", f"longer than {MAXIMUM_LENGTH} bytes"),
    row("too long in bytes", "é" * (MAXIMUM_LENGTH // 2 + 1), "longer than"),
    row("too many components", "a/" * MAXIMUM_LENGTH + "a", "longer than"),
]  # fmt: skip

ACCEPTED = [
    row("plain", "bin/cudnn64_8.dll"),
    row("folder", "bin/x64/"),
    row("brackets, space, accents, Chinese", "br [x] é中/file.dll"),
    row("dots inside", "include/cudnn.v8.h"),
    row("two dots inside a word", "a..b/c"),
    row("leading dot", ".keep"),
    row("leading space", " a"),
    row("begins like a reserved name", "console.dll"),
    row("reserved name as a suffix", "cudnn.nul"),
    row("reserved number of two digits", "com10.dll"),
    row("longest", LONGEST),
    row("longest folder", LONGEST + "/"),
]


@pytest.mark.parametrize(("name", "words"), REFUSED)
def test_refused(name: str, words: str) -> None:
    (fault,) = faults_of(normalise(name))

    assert words in fault.what


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    assert list(faults_of(normalise(name))) == []


def test_every_component_is_named() -> None:
    faults = [fault.what for fault in faults_of("../aux/cudnn.")]

    assert len(faults) == 3


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        row("slashes stay", "bin/x64/a.dll", "bin/x64/a.dll"),
        row("backslashes turn", "bin\\x64\\a.dll", "bin/x64/a.dll"),
        row("backslash folder", "bin\\", "bin/"),
        row("a mixture stays", "bin/x64\\a.dll", "bin/x64\\a.dll"),
    ],
)
def test_normalise(name: str, expected: str) -> None:
    assert normalise(name) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        row("none", ["a/b.dll", "a/c.dll", "a/"], []),
        row("same folder twice", ["a/", "a/"], []),
        row("folders that differ by case", ["a/b.dll", "A/c.dll"], []),
        row("duplicate", ["a.dll", "a.dll"], [Fault("a.dll", "occurs twice")]),
        row(
            "three times",
            ["a.dll", "a.dll", "a.dll"],
            [Fault("a.dll", "occurs twice"), Fault("a.dll", "occurs twice")],
        ),
        row(
            "case",
            ["bin/Cudnn.dll", "BIN/cudnn.DLL"],
            [Fault("BIN/cudnn.DLL",
                   "would be the same file as bin/Cudnn.dll on Windows or macOS")],
        ),
        row(
            "composition",
            ["\u00e9.dll", "e\u0301.dll"],
            [Fault("e\u0301.dll", "would be the same file as \u00e9.dll on Windows or macOS")],
        ),
        row(
            "order of accents",
            ["\u03b1\u0345\u0301", "\u03b1\u0301\u0345"],
            [Fault("\u03b1\u0301\u0345",
                   "would be the same file as \u03b1\u0345\u0301 on Windows or macOS")],
        ),
        row(
            "file and folder of one name",
            ["a", "a/b.dll"],
            [Fault("a", "is a file, and a/b.dll needs a folder there")],
        ),
        row(
            "file and explicit folder, other case",
            ["x/A/", "X/a"],
            [Fault("X/a", "is a file, and x/A/ needs a folder there")],
        ),
        row(
            "file high above",
            ["a/b", "a/b/c/d/e.dll"],
            [Fault("a/b", "is a file, and a/b/c/d/e.dll needs a folder there")],
        ),
    ],
)  # fmt: skip
def test_collisions(names: list[str], expected: list[Fault]) -> None:
    assert list(collisions(names)) == expected


PIECES = st.sampled_from(
    ["..", ".", "", "/", "\\", "C:", "aux", "con.dll", "cudnn64_8.dll", "bin", " ", "\0", "~", "?"]
)
NAMES = st.text() | st.lists(PIECES | st.text(max_size=3), max_size=6).map("".join)


@given(NAMES)
def test_an_accepted_name_stays_inside_its_folder(name: str) -> None:
    plain = normalise(name)
    if any(faults_of(plain)):
        return

    for flavour, folder in ((posixpath, "/out/here"), (ntpath, "C:\\out\\here")):
        joined = flavour.normpath(flavour.join(folder, plain))

        assert flavour.commonpath([folder, joined]) == folder
        assert joined != folder


@given(st.text(st.characters()))
def test_any_text_gets_an_answer_that_can_be_printed(name: str) -> None:
    for fault in faults_of(normalise(name)):
        str(fault).encode()

        assert not set(str(fault)) & {"\x1b", "\n", "\r", "\0", "\u202e"}
        assert len(fault.where) < 1000


@given(st.lists(NAMES))
def test_collisions_find_every_duplicate(names: list[str]) -> None:
    files = [name for name in names if not any(faults_of(name)) and not name.endswith("/")]

    assert len(list(collisions(files))) >= len(files) - len(set(files))


def test_shown_shortens_and_escapes() -> None:
    assert shown("a\x1bb") == "a\\x1bb"
    assert shown("br [x] é中/<file>.dll") == "br [x] é中/<file>.dll"
    assert len(shown("a" * 70_000)) < 200
