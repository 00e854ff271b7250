"""What a smoke test found, as records and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from bundler.artifacts import ArtifactKind

FILE_NAME = "smoke-report.json"
SCHEMA = 1


class Level(StrEnum):
    """How deep a test goes; each level stands on the one before."""

    INTEGRITY = "integrity"
    LOAD = "load"
    CONVOLUTION = "convolution"


class Status(StrEnum):
    """How one level ended. What could not be tried is never a pass."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not-run"


class Result(StrEnum):
    """The verdict on one artifact."""

    PASSED = "passed"
    PASSED_WITHOUT_GPU = "passed-without-gpu"
    FAILED = "failed"


@dataclass(frozen=True)
class LevelResult:
    """How one level ended.

    Args:
        level: which.
        status: how.
        reason: why it failed or was not run; empty when it passed.
        facts: what was seen, for the report.
    """

    level: Level
    status: Status
    reason: str = ""
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class ArtifactReport:
    """The test of one artifact.

    Args:
        kind: which of the three.
        file: its file name.
        size: bytes.
        sha256: lowercase hex SHA-256 of the tested file.
        host: where programs ran, in words.
        levels: in order.
    """

    kind: ArtifactKind
    file: str
    size: int
    sha256: str
    host: str
    levels: tuple[LevelResult, ...]

    @property
    def result(self) -> Result:
        """Sum the levels up."""
        statuses = {level.level: level.status for level in self.levels}
        if Status.FAILED in statuses.values():
            return Result.FAILED
        if statuses.get(Level.INTEGRITY) is not Status.PASSED:
            return Result.FAILED
        if statuses.get(Level.CONVOLUTION) is Status.PASSED:
            return Result.PASSED
        return Result.PASSED_WITHOUT_GPU

    @property
    def summary(self) -> str:
        """Say the result and, in words, what was not run."""
        parts = [
            f"{level.level} {level.status}{f' ({level.reason})' if level.reason else ''}"
            for level in self.levels
        ]
        return f"{self.result}: {', '.join(parts)}"


def report_document(reports: Sequence[ArtifactReport]) -> dict[str, object]:
    """Give a smoke report as JSON."""
    return {
        "schema": SCHEMA,
        "artifacts": [
            {
                **vars(report),
                "result": report.result,
                "levels": [vars(level) for level in report.levels],
            }
            for report in reports
        ],
    }


def report_bytes(reports: Sequence[ArtifactReport]) -> bytes:
    """Write a smoke report as UTF-8 JSON with sorted keys and a final newline."""
    return (json.dumps(report_document(reports), indent=1, sort_keys=True) + "\n").encode()
