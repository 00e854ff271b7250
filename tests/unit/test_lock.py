"""The lock is written one way and read back whole."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.errors import ArchiveError
from bundler.lock import (
    SCHEMA,
    LibraryFacts,
    Lock,
    LockedArchive,
    LockedFile,
    LockedWitness,
    Need,
    NeedKind,
    Role,
    Signer,
)
from bundler.lock_reading import parse_lock
from bundler.names import Platform, ReleaseIdentity, Version

SIGNER = Signer("NVIDIA Corporation", "A CA", "0636af", "2023-09-07T07:12:54Z", "sha256")
FACTS = LibraryFacts("x86_64", "8.9.5.29", ("KERNEL32.dll",), ("cublas64_11.dll",), 3, SIGNER)
LOCK = Lock(
    identity=ReleaseIdentity(Version.parse("8.9.5.29"), "11", Platform.WINDOWS_X86_64),
    archive=LockedArchive("a.zip", 7, "1" * 64, True, (LockedWitness("sha256", "given"),)),
    files=(
        LockedFile("LICENSE", 1, "2" * 64, Role.LICENCE),
        LockedFile("bin/cudnn64_8.dll", 2, "3" * 64, Role.RUNTIME, FACTS),
    ),
    load_order=("cudnn64_8.dll",),
    needs=(Need("cublas64_11.dll", ("cudnn64_8.dll",), NeedKind.REQUIRED, "why", "libcublas"),),
    warnings=("a warning with \u00fc",),
)


def test_round_trip() -> None:
    assert parse_lock(LOCK.to_bytes(), "lock") == LOCK


TEXT = st.text(st.characters(codec="utf-8"), max_size=20)


@given(
    st.builds(
        replace,
        st.just(LOCK),
        warnings=st.lists(TEXT).map(tuple),
        files=st.lists(
            st.builds(
                LockedFile,
                path=TEXT,
                size=st.integers(0),
                sha256=TEXT,
                role=st.sampled_from(Role),
                library=st.none()
                | st.just(FACTS)
                | st.just(replace(FACTS, file_version=None, signer=None)),
            )
        ).map(tuple),
    ).map(lambda lock: replace(lock, load_order=tuple(f.name for f in lock.runtime_files)))
)
def test_any_lock_round_trips(lock: Lock) -> None:
    assert parse_lock(lock.to_bytes(), "lock") == lock


@pytest.mark.parametrize(
    "order", [(), ("cudnn64_8.dll", "cudnn_ops_infer64_8.dll"), ("LICENSE",)], ids=str
)
def test_a_load_order_that_is_none_is_refused(order: tuple[str, ...]) -> None:
    with pytest.raises(ArchiveError, match="load order"):
        parse_lock(replace(LOCK, load_order=order).to_bytes(), "lock")


def test_the_bytes_are_sorted_utf8_with_a_final_newline() -> None:
    data = LOCK.to_bytes()

    assert data.endswith(b"}\n")
    assert "\u00fc".encode() in data
    document = json.loads(data)
    assert list(document) == sorted(document)
    assert document["schema"] == SCHEMA


@pytest.mark.parametrize(
    ("changes", "closed"),
    [
        ({}, False),
        ({"satisfied_by": "artifact"}, True),
        ({"kind": NeedKind.DRIVER}, True),
        ({"kind": NeedKind.OPTIONAL}, False),
        ({"kind": NeedKind.UNKNOWN}, False),
    ],
)
def test_closed(changes: dict[str, Any], closed: bool) -> None:
    lock = replace(LOCK, needs=(replace(LOCK.needs[0], **changes),))

    assert lock.closed is closed
    assert json.loads(lock.to_bytes())["closed"] is closed


def test_run_time_files() -> None:
    assert [file.name for file in LOCK.runtime_files] == ["cudnn64_8.dll"]


@pytest.mark.parametrize("schema", [0, 1, 3, "2", None])
def test_another_schema_is_named(schema: object) -> None:
    document = json.loads(LOCK.to_bytes()) | {"schema": schema}

    with pytest.raises(ArchiveError, match="has lock schema") as caught:
        parse_lock(json.dumps(document).encode(), "lock")

    assert "version of this tool" in caught.value.next_step


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"null", b"[]", b"1", b'"text"', b"{}", b"\xff\xfe", b'{"schema": 2}', b"[" * 9999],
    ids=repr,
)
def test_garbage_is_an_error_of_ours(data: bytes) -> None:
    with pytest.raises(ArchiveError, match="lock is not a lock"):
        parse_lock(data, "lock")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param(b'"given"', b'"\\ud800"', "half a surrogate pair", id="half a character"),
        pytest.param(b'"schema": 2', b'"schema": 2, "schema": 2', "more than once", id="twice"),
        pytest.param(b'"exports": 3', b'"exports": NaN', "NaN", id="NaN"),
        pytest.param(b'"exports": 3', b'"exports": ' + b"9" * 5000, "too long", id="long number"),
        pytest.param(b'"schema": 2', b'"schema": ' + b"[" * 9 + b"]" * 9, "schema", id="nested"),
        pytest.param(b'"exports": 3', b'"exports": "' + b"9" * 5000 + b'"', "int", id="long text"),
    ],
)
def test_what_readers_would_read_differently_is_no_lock(old: bytes, new: bytes, words: str) -> None:
    """Nor what could not be written or shown again; the message stays short."""
    with pytest.raises(ArchiveError, match=words) as caught:
        parse_lock(LOCK.to_bytes().replace(old, new), "lock")

    assert len(str(caught.value)) < 500


WRONG = [None, 1, -1.5, True, "text", [], ["text"], {}, {"a": 1}]


def places(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List the paths of everything inside a document."""
    children: list[tuple[Any, object]] = []
    if isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list):
        children = list(enumerate(value))
    below = [place for key, child in children for place in places(child, (*path, key))]
    return ([path] if path else []) + below


@pytest.mark.parametrize("place", places(json.loads(LOCK.to_bytes())), ids=str)
def test_a_wrong_type_anywhere_is_an_error_of_ours_or_changes_nothing(
    place: tuple[Any, ...],
) -> None:
    for wrong in WRONG:
        document = json.loads(LOCK.to_bytes())
        target = document
        for key in place[:-1]:
            target = target[key]
        target[place[-1]] = wrong

        try:
            lock = parse_lock(json.dumps(document).encode(), "lock")
        except ArchiveError:
            continue
        # Whether it is closed follows from the needs, so it is written and never read.
        assert json.loads(lock.to_bytes()) | {"closed": 0} == document | {"closed": 0}
