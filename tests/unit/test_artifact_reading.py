"""Finished artifacts are read as what comes from outside: with suspicion."""

from __future__ import annotations

import io
import random
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bundler.artifacts import ArtifactKind
from bundler.artifacts.conda_info import MAXIMUM_TEXT, read_conda_info
from bundler.artifacts.reading import kind_of, open_artifact, read_artifact_lock
from bundler.errors import ArchiveError, BundlerError, ReleaseError, UsageError
from bundler.lock import FILE_NAME
from bundler.pipeline import verify_artifact
from tests.fuzz.seeds import conda_package
from tests.sample_archives import SampleArchive, libraries
from tests.sample_builds import SampleBuild, build_sample

Change = Callable[[dict[str, bytes]], None]


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> dict[ArtifactKind, SampleBuild]:
    folder = tmp_path_factory.mktemp("artifacts")
    return {kind: build_sample(SampleArchive(), kind, folder / kind) for kind in ArtifactKind}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a-applocal.zip", ArtifactKind.APP_LOCAL),
        ("a.whl", ArtifactKind.WHEEL),
        ("a.conda", ArtifactKind.CONDA),
        ("cudnn-windows-x86_64-8.9.5.29_cuda11-archive.zip", None),
        ("a.tar.bz2", None),
    ],
)
def test_kinds_are_told_by_name(name: str, kind: ArtifactKind | None) -> None:
    assert kind_of(Path(name)) is kind


@pytest.mark.parametrize(
    ("name", "what"), [("absent.whl", "does not exist"), ("there.txt", "is not an artifact")]
)
def test_what_is_no_artifact_is_wrong_usage(name: str, what: str, tmp_path: Path) -> None:
    (tmp_path / "there.txt").write_bytes(b"")

    with pytest.raises(UsageError, match=what):
        open_artifact(tmp_path / name)


@pytest.mark.parametrize("kind", ArtifactKind)
@settings(max_examples=60, deadline=None, suppress_health_check=[
    HealthCheck.function_scoped_fixture])  # fmt: skip
@given(seed=st.integers(0, 2**32), cut=st.booleans())
def test_no_damage_raises_anything_but_ours(
    kind: ArtifactKind,
    artifacts: dict[ArtifactKind, SampleBuild],
    tmp_path: Path,
    seed: int,
    cut: bool,
) -> None:
    source = artifacts[kind].artifact.path
    data, dice = bytearray(source.read_bytes()), random.Random(seed)
    for _ in range(dice.randint(1, 8)):
        data[dice.randrange(len(data))] = dice.randrange(256)
    path = tmp_path / source.name
    path.write_bytes(data[: dice.randrange(len(data))] if cut else data)

    try:
        lock = verify_artifact(path, None)
    except (ArchiveError, ReleaseError):
        return
    assert not cut
    assert lock == artifacts[kind].lock


def rewrite(source: Path, path: Path, change: Change) -> Path:
    """Copy a zip with other members."""
    with zipfile.ZipFile(source) as bundle:
        members = {name: bundle.read(name) for name in bundle.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w") as bundle:
        for name, data in members.items():
            bundle.writestr(name, data)
    return path


def drop(ending: str) -> Change:
    def change(members: dict[str, bytes]) -> None:
        for name in [name for name in members if name.endswith(ending)]:
            del members[name]

    return change


def put(name: str, data: bytes) -> Change:
    return lambda members: members.update({name: data})


def swap(members: dict[str, bytes]) -> None:
    for name in members:
        if name.endswith("cudnn_cnn_train64_8.dll"):
            members[name] = libraries("8.5.0.96")["cudnn_cnn_train64_8.dll"]


REFUSED: dict[str, tuple[Change, type[BundlerError], str]] = {
    "no lock": (drop(FILE_NAME), ArchiveError, "was not made by this tool"),
    "a library is missing": (drop("cudnn_ops_train64_8.dll"), ReleaseError, "is missing"),
    "a library of another version": (swap, ReleaseError, "cudnn_cnn_train64_8.dll: has SHA-256"),
    "a cuDNN library more": (put("cudnn64_9.dll", b"1"), ReleaseError, "not part of this release"),
    "a library twice": (put("x/cudnn64_8.dll", b"1"), ReleaseError, "x/cudnn64_8.dll: is not part"),
    "anything more": (put("x/a.txt", b"1"), ReleaseError, "x/a.txt: is in no list"),
}


@pytest.mark.parametrize("kind", [ArtifactKind.APP_LOCAL, ArtifactKind.WHEEL])
@pytest.mark.parametrize("refused", REFUSED.values(), ids=REFUSED.keys())
def test_what_differs_from_the_lock_is_refused(
    kind: ArtifactKind,
    refused: tuple[Change, type[BundlerError], str],
    artifacts: dict[ArtifactKind, SampleBuild],
    tmp_path: Path,
) -> None:
    change, error, what = refused
    source = artifacts[kind].artifact.path
    path = rewrite(source, tmp_path / source.name, change)

    with pytest.raises(error) as caught:
        verify_artifact(path, None)

    assert what in str(caught.value)


@pytest.mark.parametrize("kind", ArtifactKind)
def test_a_zip_of_anything_else_carries_no_lock(kind: ArtifactKind, tmp_path: Path) -> None:
    path = tmp_path / "file"
    with zipfile.ZipFile(path, "w") as bundle:
        bundle.writestr("a", b"1")

    with pytest.raises(ArchiveError):
        read_artifact_lock(kind, path)


def test_a_lock_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a-applocal.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.writestr(FILE_NAME, b" " * (MAXIMUM_TEXT + 1))

    with pytest.raises(ArchiveError, match="longer than"):
        read_artifact_lock(ArtifactKind.APP_LOCAL, path)


@pytest.mark.parametrize("data", [b"", b"not zstd", b"\x28\xb5\x2f\xfd garbage"])
def test_a_conda_package_with_a_broken_inner_archive(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a-1-0.conda"
    with zipfile.ZipFile(path, "w") as package:
        package.writestr("info-a-1-0.tar.zst", data)
        package.writestr("pkg-a-1-0.tar.zst", data)

    with pytest.raises(ArchiveError):
        read_artifact_lock(ArtifactKind.CONDA, path)


def test_a_conda_package_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.conda"
    path.write_bytes(b"not a zip")

    with pytest.raises(ArchiveError, match="is not a conda package"):
        read_conda_info(path)


@pytest.mark.parametrize("kind", ArtifactKind)
def test_another_releases_lock_is_not_equalled(
    kind: ArtifactKind, artifacts: dict[ArtifactKind, SampleBuild], tmp_path: Path
) -> None:
    other = build_sample(SampleArchive(version="8.5.0.96"), kind, tmp_path)
    (tmp_path / "lock.json").write_bytes(other.lock.to_bytes())
    path = artifacts[kind].artifact.path

    with pytest.raises(ReleaseError, match="differs from its lock") as caught:
        verify_artifact(path, tmp_path / "lock.json")

    named = {fault.where.rsplit("/", 1)[-1] for fault in caught.value.faults}
    assert set(libraries()) <= named


def test_texts_that_fill_the_memory_are_refused(tmp_path: Path) -> None:
    """Each is small enough alone; a hundred of them, compressed, are a file of 10 kB."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for number in range(5):
            entry = tarfile.TarInfo(f"info/{number}")
            entry.size = MAXIMUM_TEXT // 4
            tar.addfile(entry, io.BytesIO(bytes(entry.size)))
    path = tmp_path / "a.conda"
    path.write_bytes(conda_package(info=stream.getvalue()))

    with pytest.raises(ArchiveError, match="its texts have more than 16,777,216 bytes in all"):
        read_conda_info(path)
