"""The three artifacts of a stand-in archive, installed and loaded under Windows' rules."""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from bundler.artifacts import Artifact, ArtifactKind, ArtifactOptions
from bundler.artifacts.reading import open_artifact
from bundler.ingest import IngestOptions
from bundler.pipeline import BuildOptions, build
from bundler.progress import Progress
from bundler.smoke.host import Host, NotRun
from bundler.smoke.installation import SmokeContext
from bundler.smoke.report import ArtifactReport, Level, Result, Status
from bundler.smoke.smoke_test import smoke_test
from tests.probe_facts import stage_facts
from tests.sample_archives import FIXTURES, NAME, SampleArchive, libraries, sha256_of

OLDER = FIXTURES / "cudnn8" / "8.5.0.96"


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> dict[ArtifactKind, Artifact]:
    folder = tmp_path_factory.mktemp("artifacts")
    archive = SampleArchive().write(folder / NAME)
    output = folder / "dist"
    options = BuildOptions(
        ingest=IngestOptions(archive, None, sha256_of(archive), output),
        output=output,
        kinds=tuple(ArtifactKind),
        artifacts=ArtifactOptions(conda_level=1),
        smoke=False,
    )
    result = build(options, os.environ, Progress())
    return {artifact.kind: artifact for artifact in result.artifacts}


@pytest.fixture
def options(windows_host: Host, tmp_path: Path) -> SmokeContext:
    return SmokeContext(windows_host, tmp_path, os.environ, poison=(OLDER,))


def level(report: ArtifactReport, wanted: Level) -> tuple[Status, str]:
    found = next(level for level in report.levels if level.level is wanted)
    return found.status, found.reason


@pytest.mark.parametrize("kind", list(ArtifactKind))
def test_artifact_loads_from_inside_while_another_cudnn_lies_first_on_path(
    kind: ArtifactKind, artifacts: dict[ArtifactKind, Artifact], options: SmokeContext
) -> None:
    report = smoke_test(artifacts[kind], options)

    assert report.result is Result.PASSED_WITHOUT_GPU, report.summary
    assert level(report, Level.INTEGRITY) == (Status.PASSED, "")
    assert level(report, Level.LOAD) == (Status.PASSED, "")
    assert level(report, Level.CONVOLUTION)[0] is Status.NOT_RUN
    assert "driver" in level(report, Level.CONVOLUTION)[1]


@pytest.mark.parametrize("kind", list(ArtifactKind))
def test_every_library_reports_the_release(
    kind: ArtifactKind, artifacts: dict[ArtifactKind, Artifact], options: SmokeContext
) -> None:
    report = smoke_test(artifacts[kind], options)

    for versions in stage_facts(report, "versions"):
        assert versions["cudnnGetVersion"] == 8905
        assert [check["status"] for check in versions["checks"]] == [0] * 6
        assert {each["version"] for each in versions["file_versions"]} == {"8.9.5.29"}
        assert len(versions["file_versions"]) == 7


@dataclass(frozen=True)
class Damage:
    """How a bundle is broken, and what the test must say of it.

    Args:
        drop: members to leave out.
        replace: members to replace by an older release's.
        level: the level that fails.
        sentence: part of its reason.
    """

    drop: tuple[str, ...] = ()
    replace: tuple[str, ...] = ()
    level: Level = Level.INTEGRITY
    sentence: str = ""


DAMAGES = {
    "one library missing": Damage(
        drop=("cudnn_cnn_infer64_8.dll",), sentence="cudnn_cnn_infer64_8.dll: is missing"
    ),
    "one library of another version": Damage(
        replace=("cudnn_ops_infer64_8.dll",), sentence="cudnn_ops_infer64_8.dll: has "
    ),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_damaged_bundle_fails(
    damage: Damage,
    artifacts: dict[ArtifactKind, Artifact],
    options: SmokeContext,
    tmp_path: Path,
) -> None:
    whole = artifacts[ArtifactKind.APP_LOCAL]
    broken = rewrite(whole.path, tmp_path / whole.path.name, damage)

    report = smoke_test(open_artifact(broken), options)

    assert report.result is Result.FAILED
    status, reason = level(report, damage.level)
    assert status is Status.FAILED
    assert damage.sentence in reason


def rewrite(source: Path, target: Path, damage: Damage) -> Path:
    older = libraries("8.5.0.96")
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            if name not in damage.drop:
                new.writestr(name, older[name] if name in damage.replace else old.read(name))
    return target


def test_an_artifact_that_cannot_be_installed_has_failed(
    artifacts: dict[ArtifactKind, Artifact], options: SmokeContext, tmp_path: Path
) -> None:
    whole = artifacts[ArtifactKind.WHEEL]
    broken = tmp_path / whole.path.name
    broken.write_bytes(
        whole.path.read_bytes().replace(b"Wheel-Version: 1.0", b"Wheel-Version: 9.0")
    )

    report = smoke_test(open_artifact(broken), options)

    assert report.result is Result.FAILED
    assert "pip" in level(report, Level.INTEGRITY)[1]


def test_without_a_host_nothing_counts_as_passed_but_integrity(
    artifacts: dict[ArtifactKind, Artifact], tmp_path: Path
) -> None:
    options = SmokeContext(NotRun("no Wine: install wine64"), tmp_path, {})

    for artifact in artifacts.values():
        report = smoke_test(artifact, options)
        assert report.result is Result.PASSED_WITHOUT_GPU
        assert level(report, Level.LOAD) == (Status.NOT_RUN, "no Wine: install wine64")
