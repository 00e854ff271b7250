"""The main job on the real 712 MB archive, rebuilt from NVIDIA's public wheel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from datetime import timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bundler.artifacts import Artifact, ArtifactKind
from bundler.artifacts.reading import open_artifact, read_artifact_lock
from bundler.pipeline import SmokeOptions, smoke
from bundler.progress import Progress
from bundler.smoke.report import ArtifactReport, Level, Result, Status
from tests.probe_facts import stage_facts
from tests.sample_archives import FIXTURES
from tests.signature_checks import refusing_clock, signature_of

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "demo"
ARCHIVE = DEMO / "cudnn-windows-x86_64-8.9.5.29_cuda11-archive.zip"
MANIFEST = DEMO / "redistrib_8.9.5.29_rebuilt.json"


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, *(str(argument) for argument in arguments)]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    made = run("scripts/demo_archive.py", "-o", DEMO)
    assert made.returncode == 0, made.stderr
    output = tmp_path_factory.mktemp("dist")
    job = run(
        "-m", "bundler", "build", ARCHIVE, "--manifest", MANIFEST, "-o", output,
        "--no-smoke", "--json",
    )  # fmt: skip
    assert job.returncode == 0, job.stderr
    document: dict[str, Any] = json.loads(job.stdout)
    return document


@pytest.fixture(scope="session")
def artifacts(built: dict[str, Any]) -> tuple[Artifact, ...]:
    return tuple(open_artifact(Path(artifact["path"])) for artifact in built["artifacts"])


@pytest.fixture(scope="session")
def reports(
    artifacts: tuple[Artifact, ...], tmp_path_factory: pytest.TempPathFactory
) -> dict[ArtifactKind, ArtifactReport]:
    """Test all three with an 8.5 set first on every search path."""
    poison = (FIXTURES / "cudnn8" / "8.5.0.96",)
    scratch = tmp_path_factory.mktemp("scratch")
    found = smoke(artifacts, SmokeOptions(scratch, poison), os.environ, Progress())
    return {report.kind: report for report in found}


def test_writes_the_three_artifacts(built: dict[str, Any]) -> None:
    names = [Path(artifact["path"]).name for artifact in built["artifacts"]]

    assert names[0] == "cudnn-8.9.5.29-cuda11-windows-x86_64-applocal.zip"
    assert names[1] == "cudnn_runtime_cu11-8.9.5.29-py3-none-win_amd64.whl"
    assert names[2].startswith("cudnn-8.9.5.29-cuda11_")


@pytest.mark.parametrize("kind", list(ArtifactKind))
def test_loads_from_inside_with_an_older_set_first_on_path(
    kind: ArtifactKind, reports: dict[ArtifactKind, ArtifactReport]
) -> None:
    report = reports[kind]

    assert report.result is Result.PASSED_WITHOUT_GPU, report.summary
    statuses = {level.level: level.status for level in report.levels}
    assert statuses[Level.INTEGRITY] is Status.PASSED
    assert statuses[Level.LOAD] is Status.PASSED
    assert statuses[Level.CONVOLUTION] is Status.NOT_RUN


@pytest.mark.parametrize("kind", list(ArtifactKind))
def test_all_seven_libraries_report_8905(
    kind: ArtifactKind, reports: dict[ArtifactKind, ArtifactReport]
) -> None:
    for versions in stage_facts(reports[kind], "versions"):
        assert versions["cudnnGetVersion"] == 8905
        assert [check["status"] for check in versions["checks"]] == [0] * 6
        assert {each["version"] for each in versions["file_versions"]} == {"8.9.5.29"}
        assert len(versions["file_versions"]) == 7


def test_nvidia_signed_all_seven(artifacts: tuple[Artifact, ...]) -> None:
    lock = read_artifact_lock(artifacts[0].kind, artifacts[0].path)

    signers = [file.library.signer for file in lock.runtime_files if file.library]
    assert len(signers) == 7
    assert {signer and signer.organisation for signer in signers} == {"NVIDIA Corporation"}
    assert {signer and signer.signed_at[:10] for signer in signers} == {"2023-09-07"}


@pytest.fixture
def main_library(artifacts: tuple[Artifact, ...]) -> bytes:
    with zipfile.ZipFile(artifacts[0].path) as bundle:
        return bundle.read("cudnn64_8.dll")


def test_every_year_has_the_same_verdict(
    main_library: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The certificates of signer and timestamp end in 2025 and 2029; nobody asks the clock."""
    clock = refusing_clock()
    monkeypatch.setattr("certvalidator.context.datetime", clock)
    monkeypatch.setattr(
        "signify.authenticode.trust_list.datetime",
        SimpleNamespace(datetime=clock, timezone=timezone),
    )

    found = signature_of(main_library, tmp_path, None)

    assert isinstance(found, tuple)
    assert [signer.signed_at for signer in found] == ["2023-09-07T07:12:54Z"]


def test_one_flipped_bit_is_seen(main_library: bytes, tmp_path: Path) -> None:
    changed = bytearray(main_library)
    changed[0x2000] ^= 1

    found = signature_of(bytes(changed), tmp_path, None)

    assert isinstance(found, str)
    assert "changed after it was signed" in found
