"""An artifact is made again from the archive, and a difference is named."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bundler.__main__ import main
from tests.sample_archives import NAME, SampleArchive, sha256_of
from tests.unit.manifest_bytes import WINDOWS, archive_fields, manifest_object


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return SampleArchive().write(tmp_path / NAME)


def build(archive: Path, kind: str, *words: str) -> Path:
    """Build one artifact and give its path."""
    output = archive.parent / "out"
    command = ["build", str(archive), "-o", str(output), "--no-smoke", "--only", kind, *words]
    if "--manifest" not in words:
        command += ["--sha256", sha256_of(archive)]
    assert main(command) == 0
    (found,) = (p for p in output.rglob("*") if p.suffix in {".whl", ".conda", ".zip"})
    return found


def listing(archive: bytes) -> bytes:
    """Make a manifest that lists an archive."""
    fields = archive_fields(WINDOWS, "11", content=archive)
    return json.dumps(manifest_object({WINDOWS: {"cuda11": fields}})).encode()


def provenance_of(artifact: Path) -> Path:
    (found,) = artifact.parents[artifact.suffix == ".conda"].glob("*.provenance.json")
    return found


WORDS = {
    "app-local": (),
    "wheel": ("--cuda-from", "pypi"),
    "conda": ("--conda-level", "5"),
}


@pytest.mark.parametrize(("kind", "words"), WORDS.items(), ids=WORDS.keys())
def test_the_same_bytes(
    kind: str,
    words: tuple[str, ...],
    archive: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    artifact = build(archive, kind, *words)
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    capsys.readouterr()

    assert main(["verify", str(artifact), "--rebuild", str(archive), "--json"]) == 0

    document = json.loads(capsys.readouterr().out)
    assert document["rebuilt"]["sha256"] == sha256_of(artifact)
    assert document["archive_sha256"] == sha256_of(archive)
    assert "cudnn-bundler" in document["versions"]


def rewrite(path: Path, change: Callable[[str, bytes], bytes | None]) -> None:
    """Write a zip anew, each member changed or (by None) dropped."""
    with zipfile.ZipFile(path) as source:
        members = [(info, source.read(info)) for info in source.infolist()]
    with zipfile.ZipFile(path, "w") as target:
        for info, data in members:
            changed = change(info.filename, data)
            if changed is not None:
                target.writestr(info, changed)


ALTERED: dict[str, tuple[Callable[[str, bytes], bytes | None], str]] = {
    "a text changed": (
        lambda name, data: data + b" " if name == "README.txt" else data,
        "README.txt: differs from the rebuilt one",
    ),
    "a member gone": (
        lambda name, data: None if name == "LICENSE" else data,
        "LICENSE: is missing; the rebuilt one has it",
    ),
}


@pytest.mark.parametrize(("change", "words"), ALTERED.values(), ids=ALTERED.keys())
def test_an_altered_artifact_is_named(
    change: Callable[[str, bytes], bytes | None],
    words: str,
    archive: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    artifact = build(archive, "app-local")
    rewrite(artifact, change)

    assert main(["verify", str(artifact), "--rebuild", str(archive)]) == 4

    message = capsys.readouterr().err
    assert "is not what this tool makes of the archive" in message
    assert "somebody altered the artifact" in message
    assert words in message


def test_a_member_more_is_named(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifact = build(archive, "app-local")
    with zipfile.ZipFile(artifact, "a") as members:
        members.writestr("cudnn64_9.dll", b"")

    assert main(["verify", str(artifact), "--rebuild", str(archive)]) == 4
    assert "cudnn64_9.dll: is more than the rebuilt one has" in capsys.readouterr().err


def test_equal_members_are_not_equal_bytes(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    artifact = build(archive, "app-local")
    with zipfile.ZipFile(artifact, "a") as members:
        members.comment = b"a word more"

    assert main(["verify", str(artifact), "--rebuild", str(archive)]) == 4
    assert f"sha256 {sha256_of(artifact)}, rebuilt " in capsys.readouterr().err


def edit(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    document = json.loads(path.read_bytes())
    change(document["predicate"])
    path.write_text(json.dumps(document))


def test_another_compressor_is_named(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifact = build(archive, "conda", "--conda-level", "5")

    def older(predicate: dict[str, Any]) -> None:
        predicate["runDetails"]["builder"]["version"]["libzstd"] = "1.4.0"
        predicate["buildDefinition"]["externalParameters"]["condaLevel"] = 19

    edit(provenance_of(artifact), older)

    assert main(["verify", str(artifact), "--rebuild", str(archive)]) == 4
    assert "libzstd 1.4.0 made it, 1.5" in capsys.readouterr().err


def test_another_archive_is_told(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifact = build(archive, "wheel")
    other = SampleArchive("8.5.0.96").write(archive.parent / "other.zip")

    assert main(["verify", str(artifact), "--rebuild", str(other)]) == 3
    assert sha256_of(archive) in capsys.readouterr().err


def test_the_manifest_is_asked_for_again(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = archive.parent / "redistrib.json"
    manifest.write_bytes(listing(archive.read_bytes()))
    artifact = build(archive, "wheel", "--manifest", str(manifest))
    words = ["verify", str(artifact), "--rebuild", str(archive)]

    assert main(words) == 2
    assert "it was built with --manifest redistrib.json" in capsys.readouterr().err
    assert main([*words, "--manifest", str(manifest)]) == 0


def test_a_provenance_elsewhere(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifact = build(archive, "wheel")
    elsewhere = archive.parent / "elsewhere.json"
    shutil.move(provenance_of(artifact), elsewhere)
    words = ["verify", str(artifact), "--rebuild", str(archive)]

    assert main(words) == 2
    assert "give --provenance FILE" in capsys.readouterr().err
    assert main([*words, "--provenance", str(elsewhere)]) == 0


def test_what_another_engine_wrote_cannot_be_compared(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    artifact = build(archive, "conda", "--conda-engine", "rattler-build")

    assert main(["verify", str(artifact), "--rebuild", str(archive)]) == 2
    assert "written by rattler-build" in capsys.readouterr().err


def parameters(predicate: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = predicate["buildDefinition"]["externalParameters"]
    return found


BROKEN: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "no definition": (lambda p: p.pop("buildDefinition"), "predicate.buildDefinition: is missing"),
    "no builder": (lambda p: p["runDetails"].clear(), "predicate.runDetails.builder: is missing"),
    "another build type": (
        lambda p: p["buildDefinition"].update(buildType="urn:another"),
        "must be urn:cudnn-bundler:build:v1",
    ),
    "no archive": (
        lambda p: p["buildDefinition"].update(resolvedDependencies=[]),
        "digest.sha256: is missing",
    ),
    "a level of text": (lambda p: parameters(p).update(condaLevel="3"), "must be a zstd level"),
    "a level too high": (lambda p: parameters(p).update(condaLevel=99), "must be a zstd level"),
    "an unknown engine": (
        lambda p: parameters(p).update(condaEngine="boa"),
        "must be one of native, rattler-build, conda-build",
    ),
    "a moment of text": (
        lambda p: parameters(p).update(sourceDateEpoch="now"),
        "must be a whole number of seconds",
    ),
    "parameters that are none": (
        lambda p: p["buildDefinition"].update(externalParameters=[]),
        "externalParameters: must be an object",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "words"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_provenance_is_told(
    change: Callable[[dict[str, Any]], object],
    words: str,
    archive: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    artifact = build(archive, "app-local")
    edit(provenance_of(artifact), change)

    assert main(["verify", str(artifact), "--rebuild", str(archive)]) == 3
    assert words in capsys.readouterr().err
