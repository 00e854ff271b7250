"""What smoke reports amount to: nothing, or one error."""

from __future__ import annotations

from collections.abc import Sequence

from bundler.errors import BundlerError, Fault, MissingError, SmokeError
from bundler.smoke.report import ArtifactReport, Level, Result, Status


def smoke_verdict(reports: Sequence[ArtifactReport], *, require_gpu: bool) -> BundlerError | None:
    """Sum up reports.

    Args:
        reports: one for each artifact.
        require_gpu: an artifact that did not compute is a failure.
    """
    failed = [report for report in reports if report.result is Result.FAILED]
    if failed:
        return SmokeError(
            f"{len(failed)} of {len(reports)} artifacts failed the smoke test",
            faults=[Fault(report.file, report.summary) for report in failed],
            next_step="do not ship them; the report holds every detail",
        )
    without_gpu = [report for report in reports if report.result is not Result.PASSED]
    if require_gpu and without_gpu:
        return MissingError(
            "no GPU convolution was run, and --require-gpu asks for one",
            why="; ".join(sorted({_reason(report) for report in without_gpu})),
            next_step="run this on a machine with an NVIDIA GPU and driver",
        )
    return None


def _reason(report: ArtifactReport) -> str:
    return next(
        level.reason
        for level in report.levels
        if level.level is Level.CONVOLUTION and level.status is not Status.PASSED
    )
