"""From an archive of any layout to a release that may be shipped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bundler.artifacts import ArtifactKind
from bundler.errors import ArchiveError, ReleaseError
from bundler.ingest import release_tables
from bundler.lock import Role
from bundler.names import Platform, ReleaseIdentity, Version
from bundler.pipeline import verify_artifact
from bundler.probe import decoy_library
from bundler.release import Candidate, ValidatedRelease, validate
from bundler.trust import ArchiveDigest, TrustDecision
from tests.sample_archives import (
    FIXTURES,
    HEADER,
    LICENCE,
    NAME,
    ArchiveLayout,
    SampleArchive,
    for_cuda_10,
    libraries,
)
from tests.sample_builds import build_archive, build_sample, ingest

IDENTITY = ReleaseIdentity(Version.parse("8.9.5.29"), "11", Platform.WINDOWS_X86_64)
LAYOUTS = {
    "7.6 to 8.3.0: cuda/ and NVIDIA_SLA": ArchiveLayout(
        root="cuda/", licence="NVIDIA_SLA_cuDNN_Support.txt"
    ),
    "8.3.1 to 8.6: archive's name, lib": ArchiveLayout(import_libraries="lib/"),
    "8.8 to 9.17: archive's name, lib/x64": ArchiveLayout(),
    "9.18 on: bin/x64": ArchiveLayout(libraries="bin/x64/"),
    "no root": ArchiveLayout(root=""),
    "another root": ArchiveLayout(root="cudnn/", licence="LICENSE.txt"),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_every_layout_is_understood(layout: ArchiveLayout, tmp_path: Path) -> None:
    archive = SampleArchive(layout=layout).write(tmp_path / NAME)

    with ingest(archive, tmp_path) as release:
        assert release.lock.identity == IDENTITY
        assert {file.name for file in release.payload} == libraries().keys()
        assert release.licence.staged.location.read_bytes() == LICENCE
        assert {file.name: file.role for file in release.lock.files if file.library is None} == {
            layout.licence: Role.LICENCE,
            "cudnn.h": Role.HEADER,
            "cudnn_version.h": Role.HEADER,
            "cudnn.lib": Role.IMPORT_LIBRARY,
        }
        for file in release.payload:
            assert file.staged.location.read_bytes() == libraries()[file.name]
            assert file.locked.path == layout.libraries + file.name

    assert [entry.name for entry in tmp_path.iterdir()] == [NAME]


def test_the_lock_holds_the_facts(tmp_path: Path) -> None:
    archive = SampleArchive().write(tmp_path / NAME)

    with ingest(archive, tmp_path) as release:
        lock = release.lock

    main = next(file for file in lock.files if file.name == "cudnn64_8.dll")
    assert main.library is not None
    assert (main.library.machine, main.library.file_version) == ("x86_64", "8.9.5.29")
    assert lock.archive.name == NAME
    assert not lock.archive.catalogued
    assert [witness.kind for witness in lock.archive.witnesses] == ["sha256"]
    assert lock.load_order[0] == "cudnn_ops_infer64_8.dll"
    assert lock.load_order[-1] == "cudnn64_8.dll"
    assert [need.name for need in lock.needs] == [
        "cublas64_11.dll",
        "cublasLt64_11.dll",
        "nvcuda.dll",
        "nvrtc64_%d_0.dll",
        "zlibwapi.dll",
    ]
    assert [file.path for file in lock.files] == sorted(file.path for file in lock.files)


def test_the_lock_does_not_depend_on_what_the_archive_is_called(tmp_path: Path) -> None:
    names = [NAME, "archive.zip", "cudnn (1).zip", "cudnn-10.2-windows10-x64-v7.6.5.32.zip"]
    locks, notes = set(), []
    for name in names:
        with ingest(SampleArchive().write(tmp_path / name), tmp_path) as release:
            locks.add(release.lock.to_bytes())
            notes.append(any("says version 7.6.5.32" in note for note in release.notes))

    assert len(locks) == 1
    assert notes == [False, False, False, True]


def test_no_release_is_made_by_hand(tmp_path: Path) -> None:
    archive = SampleArchive().write(tmp_path / NAME)

    with ingest(archive, tmp_path) as release:
        with pytest.raises(TypeError, match=r"release\.validate only"):
            ValidatedRelease(**vars(release), seal=object())
        with pytest.raises((TypeError, ValueError), match="seal"):
            replace(release, payload=())  # type: ignore[call-arg]  # mypy sees it too


def test_no_release_is_made_without_a_witness(tmp_path: Path) -> None:
    archive = SampleArchive().write(tmp_path / NAME)

    with ingest(archive, tmp_path) as release:
        digest = ArchiveDigest(size=1, sha256="0" * 64, md5="0" * 32)
        files = tuple(file.staged for file in release.payload)
        nobody = TrustDecision((), None, ())
        candidate = Candidate(release.archive, digest, nobody, files, tmp_path)
        with pytest.raises(ValueError, match="witness"):
            validate(candidate, release_tables())


def arm64() -> bytes:
    return (FIXTURES / "machines" / "arm64.dll").read_bytes()


UNFIT: dict[str, tuple[dict[str, bytes | None], str]] = {
    "a library is missing": ({"bin/cudnn_ops_train64_8.dll": None},
        "cudnn_ops_train64_8.dll: is missing"),
    "the main library is missing": ({"bin/cudnn64_8.dll": None}, "cudnn64_<major>.dll"),
    "two main libraries": ({"bin/cudnn64_9.dll": libraries()["cudnn64_8.dll"]},
        "more than one main library"),
    "another patch level": (
        {"bin/cudnn_adv_infer64_8.dll": libraries("8.5.0.96")["cudnn_adv_infer64_8.dll"]},
        "is version 8.5.0.96, the release is 8.9.5.29"),
    "another machine": ({"bin/cudnn_adv_infer64_8.dll": arm64()}, "is built for arm64"),
    "a damaged library": ({"bin/cudnn_adv_infer64_8.dll": b"MZ"},
        "bin/cudnn_adv_infer64_8.dll: is damaged"),
    "text instead of a library": ({"bin/cudnn_adv_infer64_8.dll": b"version https://git-lfs"},
        "is not a Windows library"),
    "no licence": ({"LICENSE": None}, "holds no licence text"),
    "a licence that is not at the top": ({"LICENSE": None, "doc/LICENSE": b"1"}, "no licence"),
    "the same name twice": ({"lib/cudnn64_8.dll": libraries()["cudnn64_8.dll"]},
        "second library of this name"),
    "a name that breaks lists of files": ({"bin/a,b.dll": arm64()}, "packages cannot carry"),
    "a name that is not ASCII": ({"bin/\u00e4.dll": arm64()}, "packages cannot carry"),
    "a name that is too long": ({f"bin/{'a' * 90}.dll": arm64()}, "packages cannot carry"),
    "the header contradicts": ({"include/cudnn_version.h": b"#define CUDNN_MAJOR 8\n"
        b"#define CUDNN_MINOR 9\n#define CUDNN_PATCHLEVEL 4\n"}, "says 8.9.4"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "what"), UNFIT.values(), ids=UNFIT.keys())
def test_what_is_unfit_is_said(changes: dict[str, bytes | None], what: str, tmp_path: Path) -> None:
    archive = SampleArchive(changes=changes).write(tmp_path / NAME)

    with pytest.raises(ReleaseError) as caught, ingest(archive, tmp_path):
        pass

    assert what in str(caught.value)
    assert caught.value.exit_code == 4
    assert [entry.name for entry in tmp_path.iterdir()] == [NAME]


def test_all_faults_are_listed_at_once(tmp_path: Path) -> None:
    changes = {"LICENSE": None, "bin/cudnn_ops_train64_8.dll": None, "bin/other.dll": b"text"}
    archive = SampleArchive(changes=changes).write(tmp_path / NAME)

    with pytest.raises(ReleaseError) as caught, ingest(archive, tmp_path):
        pass

    assert len(caught.value.faults) == 3


def test_an_archive_without_a_library_is_unfit(tmp_path: Path) -> None:
    changes = {f"bin/{name}": None for name in libraries()}
    archive = SampleArchive(changes=changes).write(tmp_path / NAME)

    with pytest.raises(ReleaseError, match="no library"), ingest(archive, tmp_path):
        pass


def test_a_library_nobody_knows_is_shipped_with_a_warning(tmp_path: Path) -> None:
    extra = libraries()["cudnn_adv_infer64_8.dll"]
    for encoding in ("ascii", "utf-16-le"):
        old, new = "cudnn_adv_infer64_8.dll", "cudnn_adv_extra64_8.dll"
        extra = extra.replace(old.encode(encoding), new.encode(encoding))
    archive = SampleArchive(changes={"bin/cudnn_adv_extra64_8.dll": extra}).write(tmp_path / NAME)

    with ingest(archive, tmp_path) as release:
        assert "cudnn_adv_extra64_8.dll" in {file.name for file in release.payload}
        assert any("cudnn_adv_extra64_8.dll is new" in text for text in release.lock.warnings)


@pytest.mark.parametrize(
    ("name", "cuda"),
    [
        ("cudnn-10.1-windows10-x64-v8.9.5.29.zip", "10.1"),
        ("cudnn-10.2-windows10-x64-v8.9.5.29.zip", "10.2"),
        ("archive.zip", "10"),
    ],
)
def test_cuda_10_is_narrowed_by_the_name(name: str, cuda: str, tmp_path: Path) -> None:
    archive = SampleArchive(changes=for_cuda_10()).write(tmp_path / name)

    with ingest(archive, tmp_path) as release:
        assert release.lock.identity == replace(IDENTITY, cuda=cuda)


def test_an_archive_changed_while_it_is_used_is_noticed(tmp_path: Path) -> None:
    archive = SampleArchive().write(tmp_path / NAME)

    with (
        pytest.raises(ArchiveError, match="changed while"),
        ingest(archive, tmp_path),
        archive.open("ab") as stream,
    ):
        stream.write(b"more")


@pytest.mark.parametrize("kind", ArtifactKind)
def test_a_release_that_is_unfit_leaves_nothing(kind: ArtifactKind, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError):
        build_sample(SampleArchive(changes={"LICENSE": None}), kind, tmp_path)

    assert list((tmp_path / "out").iterdir()) == []


def test_the_single_library_of_cudnn_7(tmp_path: Path) -> None:
    """Version and CUDA come from header and name: the library says neither."""
    layout = ArchiveLayout(root="cuda/", licence="NVIDIA_SLA_cuDNN_Support.txt")
    changes = dict.fromkeys((f"bin/{name}" for name in libraries()), None) | {
        "bin/cudnn64_7.dll": decoy_library(Platform.WINDOWS_X86_64),
        "include/cudnn_version.h": None,
        "include/cudnn.h": HEADER.format(7, 6, 5).encode(),
    }
    sample = SampleArchive(layout=layout, changes=changes)
    archive = sample.write(tmp_path / "cudnn-10.1-windows10-x64-v7.6.5.32.zip")

    with ingest(archive, tmp_path) as release:
        identity = release.lock.identity
    built = [build_archive(archive, kind, tmp_path / "out").artifact for kind in ArtifactKind]

    assert identity == ReleaseIdentity(Version.parse("7.6.5.32"), "10.1", Platform.WINDOWS_X86_64)
    assert [artifact.path.name for artifact in built[:2]] == [
        "cudnn-7.6.5.32-cuda10.1-windows-x86_64-applocal.zip",
        "cudnn_runtime_cu101-7.6.5.32-py3-none-win_amd64.whl",
    ]
    assert built[2].path.name.startswith("cudnn-7.6.5.32-cuda101_")
    for artifact in built:
        assert verify_artifact(artifact.path, None).identity == identity
