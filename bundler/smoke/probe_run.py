"""Running a probe and reading its JSON: the same form from the program and the wheel."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bundler.errors import SmokeError
from bundler.smoke.host import CompletedRun, Host
from bundler.smoke.report import Level, LevelResult, Status

_LOAD_STAGES = ("library", "versions", "engines")
_COMPUTE_STAGES = ("create", "convolution")


@dataclass(frozen=True)
class LoadedModule:
    """A library that was in the probe's process.

    Args:
        name: its file name.
        path: as the host spells it.
    """

    name: str
    path: str

    def folder_is(self, folder: str) -> bool:
        """Say whether it lies directly in a folder, as the host spells folders."""
        directory = self.path[: -len(self.name) - 1]
        return directory.lower().rstrip("\\/") == folder.lower().rstrip("\\/")


@dataclass(frozen=True)
class ProbeOutcome:
    """What a probe reported.

    Args:
        stages: status and reason by stage name.
        modules: every cuDNN and CUDA library in its process.
        document: the whole report.
        failure: the first failing stage in words, or empty.
    """

    stages: Mapping[str, tuple[str, str]]
    modules: tuple[LoadedModule, ...]
    document: Mapping[str, Any]
    failure: str


def run_probe(
    host: Host, argv: Sequence[str | Path], *, environment: Mapping[str, str], cwd: Path
) -> ProbeOutcome:
    """Run a probe to its end and read its report.

    Args:
        host: where to run it.
        argv: program and arguments; paths of this machine are respelt for the host.
        environment: added to the host's clean one.
        cwd: working folder.

    Raises:
        SmokeError: it gave no report.
    """
    words = [host.path_argument(word) if isinstance(word, Path) else word for word in argv]
    run = host.run(words, environment=environment, cwd=cwd)
    try:
        document = json.loads(run.stdout)
        return _outcome(document)
    except (ValueError, KeyError, TypeError) as error:
        raise _no_report(run, words) from error


def _no_report(run: CompletedRun, words: Sequence[str]) -> SmokeError:
    tail = (run.stderr or run.stdout).strip()[-1500:]
    return SmokeError(
        f"the check gave no report (exit code {run.exit_code})",
        why=tail or "it printed nothing",
        next_step=f"run it by hand: {' '.join(words)}",
    )


def _outcome(document: Mapping[str, Any]) -> ProbeOutcome:
    stages = {stage["stage"]: stage for stage in document["stages"]}
    modules = stages.get("library", {}).get("facts", {}).get("modules", [])
    failure = document["first_failure"]
    return ProbeOutcome(
        stages={name: (stage["status"], stage["reason"]) for name, stage in stages.items()},
        modules=tuple(LoadedModule(module["name"], module["path"]) for module in modules),
        document=document,
        failure=_failure_text(failure) if failure else "",
    )


def _failure_text(failure: Mapping[str, str]) -> str:
    remedy = failure.get("remedy", "")
    return f"{failure['stage']}: {failure['reason']}" + (f" {remedy}" if remedy else "")


def load_result(outcome: ProbeOutcome, names: Sequence[str], folder: str) -> LevelResult:
    """Judge the load level: every library opened, right, and from inside the artifact.

    The paths are judged here again, whatever the probe says of them.

    Args:
        outcome: of a probe.
        names: payload file names that must be in the process.
        folder: where cuDNN's libraries must come from, as the host spells it.
    """
    loaded = {module.name.lower(): module for module in outcome.modules}
    outside = [
        module.path
        for module in outcome.modules
        if module.name.lower().startswith(("cudnn", "libcudnn")) and not module.folder_is(folder)
    ]
    absent = [name for name in names if name.lower() not in loaded]
    reason = ""
    if outside:
        reason = f"loaded from outside the artifact: {', '.join(outside)}"
    elif any(outcome.stages.get(stage, ("", ""))[0] == "failed" for stage in _LOAD_STAGES):
        reason = outcome.failure
    elif absent:
        reason = f"never loaded: {', '.join(absent)}"
    status = Status.FAILED if reason else Status.PASSED
    return LevelResult(Level.LOAD, status, reason, {"probe": outcome.document})


def convolution_result(outcome: ProbeOutcome) -> LevelResult:
    """Judge the convolution level; what was not run is said with its reason."""
    for stage in _COMPUTE_STAGES:
        status, reason = outcome.stages.get(stage, ("not-run", "the check has no such stage"))
        if status != "passed":
            result = Status.FAILED if status == "failed" else Status.NOT_RUN
            return LevelResult(Level.CONVOLUTION, result, reason)
    return LevelResult(Level.CONVOLUTION, Status.PASSED)
