"""The doors for bytes from outside, each as a function that takes any bytes.

A door may refuse with one of this tool's own errors, and may do nothing else: every other
exception is a fault, and so is an answer that contradicts itself.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bundler.archive import open_archive
from bundler.artifacts import ArtifactKind
from bundler.artifacts.conda_info import read_conda_index
from bundler.artifacts.reading import open_artifact
from bundler.binary import read_binary_facts
from bundler.errors import BundlerError
from bundler.lock_reading import parse_lock
from bundler.manifest import parse_manifest
from bundler.member_names import faults_of, normalise
from bundler.pipeline import verify_artifact
from bundler.presentation import lock_lines
from bundler.recipe_data import builtin_catalogue
from bundler.trust import ArchiveDigest, GivenWitnesses, decide
from tests.fuzz import json_lies, seeds
from tests.fuzz.zip_lies import zip_of


@dataclass(frozen=True)
class Target:
    """One door.

    Args:
        run: takes any bytes and a folder for files; raises `BundlerError` to refuse.
        seeds: makes sound inputs to begin from.
        words: what inputs of this kind are made of.
        longest: input to try, bytes.
    """

    run: Callable[[bytes, Path], None]
    seeds: Callable[[], Sequence[bytes]]
    words: tuple[bytes, ...] = ()
    longest: int = 4096


def read_archive(data: bytes, folder: Path) -> None:
    """Read a zip whole; whatever is accepted means the same to Python's own reader."""
    path = _written(folder / "archive.zip", data)
    with open_archive(path) as (archive, _):
        read = {entry.name: b"".join(archive.read(entry)) for entry in archive.entries}
    for name in read:
        assert not any(faults_of(name)), name
    assert len(read) == len(archive.entries)
    others = _read_leniently(path)
    assert others is None or others == read


def _read_leniently(path: Path) -> dict[str, bytes] | None:
    try:
        with zipfile.ZipFile(path) as archive:
            files = [info for info in archive.infolist() if normalise(info.filename)[-1] != "/"]
            return {normalise(info.filename): archive.read(info) for info in files}
    # What it cannot read it cannot read differently.
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError):
        return None


def read_lying_archive(data: bytes, folder: Path) -> None:
    """Read the zip that the bytes describe."""
    read_archive(zip_of(data), folder)


def read_manifest(data: bytes, _: Path) -> None:
    """Read a manifest, then ask it about each archive it lists and about a changed one."""
    manifest = parse_manifest(data)
    given = GivenWitnesses(manifest=manifest, manifest_name="redistrib_8.9.5.json")
    for archive in manifest.archives:
        for sha256 in (archive.sha256, "0" * 64):
            digest = ArchiveDigest(archive.size, sha256, archive.md5)
            with suppress(BundlerError):
                decide(digest, archive.file_name, given, _CATALOGUE)


def read_lock(data: bytes, _: Path) -> None:
    """Read a lock; whatever is accepted can be shown, and written and read again."""
    lock = parse_lock(data, "cudnn.lock.json")
    "\n".join(lock_lines(lock)).encode(errors="backslashreplace")
    assert parse_lock(lock.to_bytes(), "cudnn.lock.json") == lock


def read_lying_manifest(data: bytes, folder: Path) -> None:
    """Read a manifest that is sound but for what the bytes change."""
    document = json.loads(seeds.manifests()[data[0] % 3 if data else 0])
    read_manifest(json.dumps(json_lies.changed(document, data[1:])).encode(), folder)


def read_lying_lock(data: bytes, folder: Path) -> None:
    """Read a lock that is sound but for what the bytes change."""
    document = json.loads(seeds.LOCK.to_bytes())
    read_lock(json.dumps(json_lies.changed(document, data)).encode(), folder)


def read_library(data: bytes, folder: Path) -> None:
    """Read a library's facts; a fault is an answer like any other."""
    str(read_binary_facts(_written(folder / "cudnn64_8.dll", data))).encode()


def read_linux_library(data: bytes, folder: Path) -> None:
    """Read a Linux library's facts."""
    str(read_binary_facts(_written(folder / "libcudnn.so.9", data))).encode()


def read_zip_artifact(data: bytes, folder: Path) -> None:
    """Verify the bytes as an app-local bundle and as a wheel."""
    for name in ("a-applocal.zip", "cudnn_runtime_cu11-8.9.5.29-py3-none-win_amd64.whl"):
        path = _written(folder / name, data)
        assert open_artifact(path).size == len(data)
        with suppress(BundlerError):
            verify_artifact(path, None)


def read_conda_package(data: bytes, folder: Path) -> None:
    """Verify the bytes as a conda package, and read what it says of itself."""
    path = _written(folder / "cudnn-8-0.conda", data)
    assert open_artifact(path).kind is ArtifactKind.CONDA
    with suppress(BundlerError):
        read_conda_index(path)
    verify_artifact(path, None)


def read_conda_tar(data: bytes, folder: Path) -> None:
    """Verify a conda package whose payload is this tar."""
    read_conda_package(seeds.conda_package(payload=data), folder)


def read_conda_info_tar(data: bytes, folder: Path) -> None:
    """Verify a conda package that says of itself what is in this tar."""
    read_conda_package(seeds.conda_package(info=data), folder)


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


_CATALOGUE = builtin_catalogue()
_JSON = (
    b"{",
    b"}",
    b"[",
    b"]",
    b'":"',
    b",",
    b"null",
    b"true",
    b"NaN",
    b"-1",
    b"1e999",
    b"\\ud800",
)
_ZIP = (b"PK\1\2", b"PK\3\4", b"PK\5\6", b"PK\6\6", b"PK\6\7", b"PK\7\10", b"\xff\xff\xff\xff")
_MANIFEST = (
    b'"release_date"', b'"release_label"', b'"release_product"', b'"relative_path"', b'"sha256"',
    b'"md5"', b'"size"', b'"version"', b'"license"', b'"license_path"', b'"name"',
    b'"cuda_variant"', b'"cuda11"', b'"cuda12"', b'"windows-x86_64"', b'"source"', b'"cudnn"',
)  # fmt: skip
_LOCK = (
    b'"schema"', b'"identity"', b'"files"', b'"needs"', b'"load_order"', b'"library"', b'"role"',
    b'"runtime"', b'"licence"', b'"path"', b'"witnesses"', b'"catalogued"', b'"satisfied_by"',
)  # fmt: skip
_TAR = (b"ustar\000", b"ustar  \0", b"GNU.sparse.major=1", b"GNU.sparse.realsize=", b"path=")

TARGETS = {
    "archive": Target(read_archive, seeds.zips, _ZIP),
    "archive-lies": Target(read_lying_archive, seeds.nothing_much, _ZIP, 1024),
    "manifest": Target(read_manifest, seeds.manifests, _JSON + _MANIFEST),
    "manifest-lies": Target(read_lying_manifest, seeds.nothing_much, _MANIFEST, 512),
    "lock": Target(read_lock, seeds.locks, _JSON + _LOCK),
    "lock-lies": Target(read_lying_lock, seeds.nothing_much, _LOCK, 512),
    "zip-artifact": Target(read_zip_artifact, seeds.zip_artifacts, _ZIP + _LOCK),
    "conda-package": Target(read_conda_package, seeds.conda_packages, _ZIP),
    "conda-tar": Target(read_conda_tar, seeds.tars, _TAR, 16384),
    "conda-info": Target(read_conda_info_tar, seeds.info_tars, _TAR + _JSON, 16384),
    "library": Target(read_library, seeds.libraries, (b"MZ", b"PE\0\0", b".dll\0"), 8192),
    "linux-library": Target(read_linux_library, seeds.linux_libraries, (b"\x7fELF", b".so"), 8192),
}
