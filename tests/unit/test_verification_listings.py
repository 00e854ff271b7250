"""Lists of files come from outside: hostile and broken ones are refused with all faults."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.errors import ArchiveError
from bundler.verification.listings import (
    ListedFile,
    parse_index,
    parse_paths,
    parse_prefix_record,
    parse_record,
    parse_sums,
)

EMPTY = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
HEX = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
PARSERS: tuple[Callable[[bytes, str], object], ...] = (
    parse_record, parse_sums, parse_paths, parse_prefix_record, parse_index,
)  # fmt: skip


def paths(*rows: object) -> bytes:
    return json.dumps({"paths": rows, "paths_version": 1}).encode()


def test_a_record() -> None:
    data = f'a/b.dll,sha256={EMPTY},0\r\n"a,b",sha256={EMPTY},\na/RECORD,,\n'.encode()

    assert parse_record(data, "RECORD") == (
        ListedFile("a/b.dll", HEX, 0),
        ListedFile("a,b", HEX, None),
        ListedFile("a/RECORD", None, None),
    )


def test_sums() -> None:
    data = f"{HEX}  a b.dll\n{HEX} *c.dll\n".encode()

    assert parse_sums(data, "SHA256SUMS") == (
        ListedFile("a b.dll", HEX, None),
        ListedFile("c.dll", HEX, None),
    )


def test_paths() -> None:
    rows = (
        {"_path": "a", "path_type": "hardlink", "sha256": HEX, "size_in_bytes": 3},
        {"_path": "d", "path_type": "directory"},
        {"_path": "t", "path_type": "hardlink", "sha256": "0" * 64, "sha256_in_prefix": HEX,
         "size_in_bytes": 3},
    )  # fmt: skip

    assert parse_paths(paths(*rows), "paths.json") == (
        ListedFile("a", HEX, 3),
        ListedFile("t", HEX, None),
    )


def test_a_prefix_record() -> None:
    document = {"name": "cudnn", "paths_data": {"paths": [{"_path": "a", "sha256": HEX}]}}

    record = parse_prefix_record(json.dumps(document).encode(), "cudnn-1.json")

    assert record.name == "cudnn"
    assert record.files == (ListedFile("a", HEX, None),)


WORTHLESS: dict[str, tuple[Callable[[bytes, str], object], bytes, str]] = {
    "RECORD leaves its folder": (parse_record, f"../../x,sha256={EMPTY},0\n".encode(), "leaves"),
    "RECORD is absolute": (parse_record, f"/x,sha256={EMPTY},0\n".encode(), "is an absolute path"),
    "RECORD names a drive": (parse_record, f"C:/x,sha256={EMPTY},0\n".encode(), "names a drive"),
    "RECORD lists twice": (parse_record, b"a,,\na,,\n", "a: occurs twice"),
    "RECORD lists two cases": (parse_record, b"a,,\nA,,\n", "would be the same file"),
    "RECORD with two fields": (parse_record, b"a,b\n", "has 2 fields instead of 3"),
    "RECORD with a weak hash": (parse_record, b"a,md5=AAAA,1\n", "of the kind 'md5'"),
    "RECORD with a short hash": (parse_record, b"a,sha256=AAAA,1\n", "a SHA-256 of 3 bytes"),
    "RECORD with no base64": (parse_record, b"a,sha256=A!,1\n", "not base64"),
    "RECORD with a size": (parse_record, f"a,sha256={EMPTY},-1\n".encode(), "'-1' as its size"),
    "RECORD with an open quote": (parse_record, b'"a,,\n', "RECORD is damaged"),
    "RECORD is binary": (parse_record, b"\xff\xfe", "RECORD is damaged"),
    "RECORD without end": (parse_record, b"a,,\n" * 10_001, "it lists 10,001 files"),
    "sums leave their folder": (parse_sums, f"{HEX}  ../x\n".encode(), "leaves its folder"),
    "sums of text": (parse_sums, b"hello\n", "holds the line 'hello'"),
    "sums are binary": (parse_sums, b"\xff", "is damaged"),
    "paths leave their folder": (parse_paths, paths({"_path": "../x", "sha256": HEX}), "leaves"),
    "paths are no list": (parse_paths, b'{"paths": 1}', "must be an array, not a number"),
    "paths of numbers": (parse_paths, paths(1), "holds a number where a path must be"),
    "paths without a name": (parse_paths, paths({"sha256": HEX}), "has null as its _path"),
    "paths with no hash": (parse_paths, paths({"_path": "a", "sha256": "x"}), "sha256 that is"),
    "paths with a size": (parse_paths, paths({"_path": "a", "size_in_bytes": True}), "size that"),
    "paths twice": (parse_paths, b'{"paths": [], "paths": []}', "given more than once"),
    "paths nested": (parse_paths, b'{"a":' * 9999 + b"1" + b"}" * 9999, "nested"),
    "a record of nothing": (parse_prefix_record, b'{"name": "cudnn"}', "it lists no paths"),
    "a record of a list": (parse_prefix_record, b'{"name": "a", "paths_data": []}', "an object"),
    "an index without a name": (parse_index, b"{}", "name: is missing"),
    "an index of numbers": (parse_index, b'{"version": 8}', "must be a string, not a number"),
}


@pytest.mark.parametrize(("parse", "data", "words"), WORTHLESS.values(), ids=WORTHLESS.keys())
def test_worthless_lists(parse: Callable[[bytes, str], object], data: bytes, words: str) -> None:
    name = "RECORD" if parse is parse_record else "list"

    with pytest.raises(ArchiveError) as caught:
        parse(data, name)

    assert words in str(caught.value)
    assert caught.value.next_step


def test_every_fault_of_a_list_is_named() -> None:
    with pytest.raises(ArchiveError) as caught:
        parse_record(b"a,b\n../x,,\nc,md5=A,1\n", "RECORD")

    assert len(caught.value.faults) == 3


@pytest.mark.parametrize("parse", PARSERS, ids=lambda parse: parse.__name__)
@given(
    data=st.binary(max_size=200) | st.text(alphabet='{}[]",:=/.\n a0', max_size=80).map(str.encode)
)
def test_no_bytes_raise_anything_but_ours(
    parse: Callable[[bytes, str], object], data: bytes
) -> None:
    with contextlib.suppress(ArchiveError):
        parse(data, "list")
