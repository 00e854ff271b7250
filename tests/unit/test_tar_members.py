"""Tars that ask for a gigabyte in a few bytes are refused before it is taken."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping

import pytest

from bundler.artifacts.tar_members import tar_members
from tests.fuzz.seeds import tars

END = bytes(1024)


def header(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.type, entry.size = kind, size
    return entry.tobuf(tarfile.GNU_FORMAT)


def with_pax_headers(headers: Mapping[str, str]) -> bytes:
    entry = tarfile.TarInfo("x")
    entry.pax_headers = dict(headers)
    return entry.tobuf(tarfile.PAX_FORMAT) + END


def read(data: bytes) -> dict[str, bytes]:
    return {entry.name: content.read() for entry, content in tar_members(io.BytesIO(data))}


@pytest.mark.parametrize("data", tars(), ids=["ustar", "GNU", "pax"])
def test_every_format_is_read(data: bytes) -> None:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        names = tar.getnames()

    assert list(read(data)) == names


def test_only_files_are_yielded() -> None:
    others = header("folder", tarfile.DIRTYPE) + header("link", tarfile.SYMTYPE)

    assert list(read(others + header("file") + END)) == ["file"]


GIGABYTE = 1 << 30
REALSIZE = {"GNU.sparse.realsize": str(1 << 60), "GNU.sparse.name": "x"}
REFUSED = {
    "pax header": (header("x", tarfile.XHDTYPE, GIGABYTE), "a header of 1,073,741,824 bytes"),
    "global pax header": (header("x", tarfile.XGLTYPE, GIGABYTE), "a header of"),
    "long name": (header("x", tarfile.GNUTYPE_LONGNAME, GIGABYTE), "a header of"),
    "long link": (header("x", tarfile.GNUTYPE_LONGLINK, GIGABYTE), "a header of"),
    "sparse": (header("x", tarfile.GNUTYPE_SPARSE), "a sparse file"),
    "sparse 0.0": (with_pax_headers({"GNU.sparse.size": "9"}), "a sparse file"),
    "sparse 0.1": (with_pax_headers({"GNU.sparse.map": "0,9"}), "a sparse file"),
    "sparse 1.0": (
        with_pax_headers({"GNU.sparse.major": "1", "GNU.sparse.minor": "0", **REALSIZE}),
        "a sparse file",
    ),
    "many": (header("x") * 20_001, "more than 20,000 members"),
}


@pytest.mark.parametrize(("data", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_asks_for_too_much_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read(data)
