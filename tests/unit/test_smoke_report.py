"""The verdict on an artifact, summed up from its levels."""

from __future__ import annotations

import json

import pytest

from bundler.artifacts import ArtifactKind
from bundler.smoke.report import (
    ArtifactReport,
    Level,
    LevelResult,
    Result,
    Status,
    report_bytes,
)

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
