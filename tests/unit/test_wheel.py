"""The wheel, from a sample archive."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from installer.sources import WheelFile
from packaging.metadata import Metadata
from packaging.utils import parse_wheel_filename

from bundler.archive import open_archive
from bundler.artifacts import ArtifactKind, ArtifactOptions, CudaSource
from bundler.artifacts.reading import read_artifact_lock
from bundler.errors import UsageError
from bundler.pipeline import verify_artifact
from bundler.resources import activation_sources
from tests.sample_archives import LICENCE, SampleArchive, for_cuda_10, libraries
from tests.sample_builds import SampleBuild, build_sample

PACKAGE = "cudnn_runtime_cu11/"
INFO = "cudnn_runtime_cu11-8.9.5.29.dist-info/"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> SampleBuild:
    return build_sample(SampleArchive(), ArtifactKind.WHEEL, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def members(built: SampleBuild) -> dict[str, bytes]:
    return members_of(built)


def members_of(built: SampleBuild) -> dict[str, bytes]:
    with zipfile.ZipFile(built.artifact.path) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist()}


def metadata_of(members: dict[str, bytes]) -> Metadata:
    return Metadata.from_email(members[f"{INFO}METADATA"], validate=True)


def test_its_name(built: SampleBuild) -> None:
    name = "cudnn_runtime_cu11-8.9.5.29-py3-none-win_amd64.whl"

    assert built.artifact.path.name == name
    distribution, version, build, tags = parse_wheel_filename(name)
    assert (distribution, str(version), build) == ("cudnn-runtime-cu11", "8.9.5.29", ())
    assert [str(tag) for tag in tags] == ["py3-none-win_amd64"]


def test_it_holds_what_it_should_and_nothing_else(members: dict[str, bytes]) -> None:
    assert members.keys() == {
        *(PACKAGE + name for name in activation_sources()),
        *(f"{PACKAGE}bin/{name}" for name in libraries()),
        f"{PACKAGE}cudnn.lock.json",
        f"{PACKAGE}cudnn-check.dll",
        *(INFO + name for name in (
            "METADATA", "WHEEL", "RECORD", "licenses/LICENSE", "sboms/cudnn.sbom.cdx.json",
        )),
    }  # fmt: skip
    assert not [name for name in members if name.startswith("nvidia/")]


def test_the_bytes_are_the_archives(members: dict[str, bytes]) -> None:
    assert {name: members[f"{PACKAGE}bin/{name}"] for name in libraries()} == libraries()
    assert members[f"{INFO}licenses/LICENSE"] == LICENCE


def test_the_compressed_streams_are_the_archives(built: SampleBuild) -> None:
    with open_archive(built.archive) as (source, _), open_archive(built.artifact.path) as (copy, _):
        streams = [
            {entry.name.rsplit("/", 1)[-1]: (entry.method, b"".join(archive.read_raw(entry)))
             for entry in archive.entries}
            for archive in (source, copy)
        ]  # fmt: skip
    for name in (*libraries(), "LICENSE"):
        assert streams[1][name] == streams[0][name]


def test_record_is_true_complete_and_in_order(members: dict[str, bytes]) -> None:
    rows = list(csv.reader(io.StringIO(members[f"{INFO}RECORD"].decode())))

    assert [name for name, _, _ in rows] == list(members)
    assert rows.pop() == [f"{INFO}RECORD", "", ""]
    for name, digest, size in rows:
        expected = base64.urlsafe_b64encode(hashlib.sha256(members[name]).digest())
        assert digest == f"sha256={expected.rstrip(b'=').decode()}"
        assert size == str(len(members[name]))


def test_the_installer_library_validates_record(built: SampleBuild) -> None:
    with WheelFile.open(built.artifact.path) as wheel:
        wheel.validate_record(validate_contents=True)
        assert wheel.dist_info_dir == INFO.rstrip("/")


def test_metadata_is_valid(members: dict[str, bytes]) -> None:
    metadata = metadata_of(members)

    assert (metadata.name, str(metadata.version)) == ("cudnn-runtime-cu11", "8.9.5.29")
    assert metadata.metadata_version == "2.4"
    assert metadata.license_expression == "LicenseRef-NVIDIA-cuDNN"
    assert metadata.license_files == ["LICENSE"]
    assert str(metadata.requires_python) == ">=3.8"
    assert metadata.requires_dist is None
    assert metadata.description is not None
    assert "$" not in metadata.description
    assert "cublas64_11.dll" in metadata.description
    assert "`CUDNN_RUNTIME_CU11=off`" in metadata.description


def test_the_wheel_file_agrees_with_the_name(members: dict[str, bytes]) -> None:
    lines = members[f"{INFO}WHEEL"].decode().splitlines()

    assert "Tag: py3-none-win_amd64" in lines
    assert "Root-Is-Purelib: false" in lines
    assert "Wheel-Version: 1.0" in lines


def test_nvidias_wheels_become_dependencies_when_asked_for(tmp_path: Path) -> None:
    options = ArtifactOptions(cuda_from=CudaSource.PYPI)
    built = build_sample(SampleArchive(), ArtifactKind.WHEEL, tmp_path, options)

    requires = metadata_of(members_of(built)).requires_dist
    assert [str(requirement) for requirement in requires or ()] == [
        "nvidia-cublas-cu11<12,>=11",
        "nvidia-cuda-nvrtc-cu11<12,>=11",
    ]


def test_there_are_no_wheels_of_nvidia_for_cuda_10(tmp_path: Path) -> None:
    sample = SampleArchive(changes=for_cuda_10())
    options = ArtifactOptions(cuda_from=CudaSource.PYPI)

    with pytest.raises(UsageError, match=r"no wheels of cuBLAS for CUDA 10") as caught:
        build_sample(sample, ArtifactKind.WHEEL, tmp_path, options)

    assert caught.value.exit_code == 2
    assert list((tmp_path / "out").iterdir()) == []


def test_cuda_10_gives_a_wheel_without_dependencies(tmp_path: Path) -> None:
    built = build_sample(SampleArchive(changes=for_cuda_10()), ArtifactKind.WHEEL, tmp_path)

    assert built.artifact.path.name == "cudnn_runtime_cu10-8.9.5.29-py3-none-win_amd64.whl"


def test_the_lock_inside_is_the_releases(built: SampleBuild, members: dict[str, bytes]) -> None:
    assert members[f"{PACKAGE}cudnn.lock.json"] == built.lock.to_bytes()
    assert read_artifact_lock(ArtifactKind.WHEEL, built.artifact.path) == built.lock
    assert verify_artifact(built.artifact.path, None) == built.lock


def run_module(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_check_wheel_contents_has_no_complaint(built: SampleBuild) -> None:
    result = run_module("check_wheel_contents", str(built.artifact.path))

    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there it would be installed")
def test_pip_refuses_it_on_another_system(built: SampleBuild, tmp_path: Path) -> None:
    result = run_module(
        "pip", "install", "--no-index", "--no-deps", "--disable-pip-version-check",
        "--target", str(tmp_path), str(built.artifact.path),
    )  # fmt: skip

    assert result.returncode == 1
    assert "is not a supported wheel on this platform" in result.stderr


def test_pip_finds_it_for_windows(built: SampleBuild, tmp_path: Path) -> None:
    result = run_module(
        "pip", "download", "--no-index", "-f", str(built.artifact.path.parent),
        "--platform", "win_amd64", "--only-binary=:all:", "--disable-pip-version-check",
        "-d", str(tmp_path), "cudnn-runtime-cu11==8.9.5.29",
    )  # fmt: skip

    assert result.returncode == 0, result.stderr
    (downloaded,) = tmp_path.iterdir()
    assert downloaded.read_bytes() == built.artifact.path.read_bytes()
