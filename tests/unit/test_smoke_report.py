"""The verdict on an artifact, summed up from its levels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

import pytest

from bundler import pipeline
from bundler.artifacts import Artifact, ArtifactKind
from bundler.command_line import parse
from bundler.errors import UsageError
from bundler.progress import Progress
from bundler.smoke.host import NotRun
from bundler.smoke.report import (
    ArtifactReport,
    Level,
    LevelResult,
    Result,
    Status,
    report_bytes,
)
from tests.sample_archives import SampleArchive, sha256_of
from tests.sample_builds import build_sample

PASSED, FAILED, NOT_RUN = Status.PASSED, Status.FAILED, Status.NOT_RUN


def report(*statuses: Status) -> ArtifactReport:
    levels = tuple(
        LevelResult(level, status, "" if status is PASSED else "a reason")
        for level, status in zip(Level, statuses, strict=False)
    )
    return ArtifactReport(ArtifactKind.WHEEL, "a.whl", 1, "00", "a host", levels)


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ((PASSED, PASSED, PASSED), Result.PASSED),
        ((PASSED, PASSED, NOT_RUN), Result.PASSED_WITHOUT_GPU),
        ((PASSED, PASSED, FAILED), Result.FAILED),
        ((PASSED, FAILED, NOT_RUN), Result.FAILED),
        ((PASSED, NOT_RUN, NOT_RUN), Result.PASSED_WITHOUT_GPU),
        ((FAILED,), Result.FAILED),
        ((), Result.FAILED),
        ((NOT_RUN, NOT_RUN, NOT_RUN), Result.FAILED),
    ],
)
def test_result_is_never_better_than_what_was_tried(
    statuses: tuple[Status, ...], expected: Result
) -> None:
    assert report(*statuses).result is expected


def test_summary_says_what_was_not_run_and_why() -> None:
    text = report(PASSED, PASSED, NOT_RUN).summary

    assert text.startswith("passed-without-gpu: ")
    assert "convolution not-run (a reason)" in text


def test_report_is_sorted_json_without_a_clock() -> None:
    data = report_bytes([report(PASSED, PASSED, NOT_RUN)])

    assert data == report_bytes([report(PASSED, PASSED, NOT_RUN)])
    (artifact,) = json.loads(data)["artifacts"]
    assert artifact["result"] == "passed-without-gpu"
    assert [level["level"] for level in artifact["levels"]] == ["integrity", "load", "convolution"]


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Artifact:
    """Build a wheel where there is no host to test it on."""
    monkeypatch.setattr(pipeline, "find_host", lambda *_: NotRun("no Wine"))
    return build_sample(SampleArchive(), ArtifactKind.WHEEL, tmp_path / "build").artifact


def smoke(artifact: Artifact, scratch: Path, report_path: Path | None) -> None:
    options = pipeline.SmokeOptions(scratch, report=report_path)
    pipeline.smoke((artifact,), options, {}, Progress())


def test_report_is_written_where_it_is_asked_for(sample: Artifact, tmp_path: Path) -> None:
    asked = tmp_path / "proofs" / "smoke-report.json"

    smoke(sample, tmp_path, asked)

    (artifact,) = json.loads(asked.read_bytes())["artifacts"]
    assert artifact["file"] == sample.path.name
    assert artifact["sha256"] == sha256_of(sample.path)


def test_nothing_is_written_unless_it_is_asked_for(sample: Artifact, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))

    smoke(sample, tmp_path, None)

    assert sorted(tmp_path.rglob("*")) == before


def test_an_older_report_is_gone_when_the_test_is_stopped(
    sample: Artifact, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = tmp_path / "smoke-report.json"
    older.write_text("{}")

    def stop(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "smoke_test", stop)
    with pytest.raises(KeyboardInterrupt):
        smoke(sample, tmp_path, older)

    assert not older.exists()


def test_report_never_replaces_the_artifact(sample: Artifact, tmp_path: Path) -> None:
    before = sha256_of(sample.path)

    with pytest.raises(UsageError, match="would replace the artifact"):
        smoke(sample, tmp_path, sample.path)

    assert sha256_of(sample.path) == before


def test_command_line_names_the_report() -> None:
    assert parse(["smoke", "a.whl", "--report", "r.json"]).report == Path("r.json")
    assert parse(["smoke", "a.whl"]).report is None
