"""Files on a disk against the lock they must equal."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from bundler.errors import Fault
from bundler.integrity import FoundFile, compare, find_files, hash_file
from bundler.lock import Lock, LockedFile, Role
from tests.unit.test_lock import LOCK

CONTENT = {"cudnn64_8.dll": b"main", "cudnn_ops_infer64_8.dll": b"part"}


def lock_of(content: dict[str, bytes]) -> Lock:
    files = [
        LockedFile(f"bin/{name}", len(data), hashlib.sha256(data).hexdigest(), Role.RUNTIME)
        for name, data in content.items()
    ]
    header = LockedFile("include/cudnn.h", 1, "0" * 64, Role.HEADER)
    return replace(LOCK, files=(*files, header))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, data in CONTENT.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


def faults_of(folder: Path) -> list[Fault]:
    return compare(lock_of(CONTENT), find_files(folder))


def test_equal_files_have_no_faults(folder: Path) -> None:
    assert faults_of(folder) == []


def test_an_applications_own_files_are_not_looked_at(folder: Path) -> None:
    (folder / "program.exe").write_bytes(b"1")
    (folder / "cublas64_11.dll").write_bytes(b"1")
    (folder / "cudnn64_9.dll").mkdir()

    assert faults_of(folder) == []


@pytest.mark.parametrize("name", CONTENT)
@pytest.mark.parametrize(
    ("data", "what"),
    [(None, "is missing"), (b"longer", "has 6 bytes instead of 4"), (b"evil", "has SHA-256 ")],
)
def test_every_difference_is_named(name: str, data: bytes | None, what: str, folder: Path) -> None:
    (folder / name).unlink()
    if data is not None:
        (folder / name).write_bytes(data)

    (fault,) = faults_of(folder)

    assert fault.where == name
    assert fault.what.startswith(what)


@pytest.mark.parametrize("name", ["cudnn64_9.dll", "cudnn_extra64_8.dll", "CUDNN64_7.DLL"])
def test_a_strange_cudnn_library_is_named(name: str, folder: Path) -> None:
    (folder / name).write_bytes(b"1")

    (fault,) = faults_of(folder)

    assert fault.where == name
    assert "not part of this release" in fault.what


def test_all_differences_are_listed_at_once(folder: Path) -> None:
    for name in CONTENT:
        (folder / name).write_bytes(b"")
    (folder / "cudnn64_9.dll").write_bytes(b"")

    assert [fault.where for fault in faults_of(folder)] == [*CONTENT, "cudnn64_9.dll"]


def test_a_file_is_hashed_whole(tmp_path: Path) -> None:
    data = bytes(range(256)) * 10_000
    (tmp_path / "file").write_bytes(data)

    assert hash_file(tmp_path / "file") == FoundFile(len(data), hashlib.sha256(data).hexdigest())
