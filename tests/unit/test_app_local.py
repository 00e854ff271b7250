"""The app-local bundle, from a sample archive."""

from __future__ import annotations

import hashlib
import shutil
import stat
import subprocess
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import pytest

from bundler.archive import open_archive
from bundler.artifacts import ArtifactKind
from bundler.artifacts.reading import open_artifact, read_artifact_lock
from bundler.names import Platform, ReleaseIdentity, Version
from bundler.pipeline import verify_artifact
from bundler.probe import probe_executable
from tests.sample_archives import LICENCE, ArchiveLayout, SampleArchive, libraries
from tests.sample_builds import SampleBuild, build_sample

ASSEMBLY = "{urn:schemas-microsoft-com:asm.v1}"
TEXTS = {
    "LICENSE", "README.txt", "SHA256SUMS", "cudnn.lock.json", "cudnn.sbom.cdx.json",
    "cudnn8.manifest",
}  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> SampleBuild:
    folder = tmp_path_factory.mktemp("app-local")
    return build_sample(SampleArchive(), ArtifactKind.APP_LOCAL, folder)


@pytest.fixture(scope="module")
def members(built: SampleBuild) -> dict[str, bytes]:
    with zipfile.ZipFile(built.artifact.path) as bundle:
        return {name: bundle.read(name) for name in bundle.namelist()}


def test_its_name(built: SampleBuild) -> None:
    assert built.artifact.path.name == "cudnn-8.9.5.29-cuda11-windows-x86_64-applocal.zip"


def test_it_holds_the_libraries_flat_and_nothing_superfluous(members: dict[str, bytes]) -> None:
    assert members.keys() == libraries().keys() | TEXTS | {"cudnn-check.exe"}


def test_the_libraries_are_the_archives_bytes(members: dict[str, bytes]) -> None:
    assert {name: members[name] for name in libraries()} == libraries()
    assert members["LICENSE"] == LICENCE


def test_the_compressed_streams_are_the_archives(built: SampleBuild) -> None:
    with open_archive(built.archive) as (source, _), open_archive(built.artifact.path) as (copy, _):
        streams = [
            {entry.name.rsplit("/", 1)[-1]: (entry.method, b"".join(archive.read_raw(entry)))
             for entry in archive.entries}
            for archive in (source, copy)
        ]  # fmt: skip
    for name in (*libraries(), "LICENSE"):
        assert streams[1][name] == streams[0][name]


def test_the_probe_is_the_committed_one_and_executable(
    built: SampleBuild, members: dict[str, bytes]
) -> None:
    identity = ReleaseIdentity(Version.parse("8.9.5.29"), "11", Platform.WINDOWS_X86_64)
    with zipfile.ZipFile(built.artifact.path) as bundle:
        mode = bundle.getinfo("cudnn-check.exe").external_attr >> 16

    assert members["cudnn-check.exe"] == probe_executable(identity)
    assert stat.S_IMODE(mode) == 0o755


def test_the_checksums_are_true_and_complete(members: dict[str, bytes]) -> None:
    lines = members["SHA256SUMS"].decode().splitlines()
    sums = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}

    others = {name: data for name, data in members.items() if name != "SHA256SUMS"}
    assert sums == {name: hashlib.sha256(data).hexdigest() for name, data in others.items()}
    assert list(sums) == sorted(sums)


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="sha256sum is not installed")
def test_sha256sum_reads_the_checksums(built: SampleBuild, tmp_path: Path) -> None:
    with zipfile.ZipFile(built.artifact.path) as bundle:
        bundle.extractall(tmp_path)
    command = ["sha256sum", "--strict", "-c", "SHA256SUMS"]

    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    (tmp_path / "cudnn64_8.dll").write_bytes(b"other")
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode == 1


def test_the_assembly_manifest_lists_the_libraries(members: dict[str, bytes]) -> None:
    root = ET.fromstring(members["cudnn8.manifest"])
    identity = root.find(f"{ASSEMBLY}assemblyIdentity")

    assert identity is not None
    assert identity.attrib == {
        "type": "win32",
        "name": "cudnn8",
        "version": "8.9.5.29",
        "processorArchitecture": "amd64",
    }
    assert {file.get("name") for file in root.findall(f"{ASSEMBLY}file")} == libraries().keys()


def test_the_readme_is_filled_in_and_made_for_windows(members: dict[str, bytes]) -> None:
    text = members["README.txt"].decode()

    assert "$" not in text
    assert text.count("\r\n") == text.count("\n")
    for words in ("8.9.5.29", "cublas64_11.dll", "NVIDIA display driver", "cudnn8.manifest"):
        assert words in text


def test_the_lock_inside_is_the_releases(built: SampleBuild, members: dict[str, bytes]) -> None:
    assert members["cudnn.lock.json"] == built.lock.to_bytes()
    assert read_artifact_lock(ArtifactKind.APP_LOCAL, built.artifact.path) == built.lock
    assert verify_artifact(built.artifact.path, None) == built.lock
    assert open_artifact(built.artifact.path) == built.artifact


def test_a_later_layout_gives_the_same_libraries_flat(tmp_path: Path) -> None:
    layout = ArchiveLayout("cuda/", "bin/x64/", licence="NVIDIA_SLA_cuDNN_Support.txt")
    built = build_sample(SampleArchive(layout=layout), ArtifactKind.APP_LOCAL, tmp_path)

    with zipfile.ZipFile(built.artifact.path) as bundle:
        assert bundle.namelist()[:7] == sorted(libraries())
        assert bundle.read("LICENSE") == LICENCE
