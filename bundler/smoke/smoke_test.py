"""The smoke test of one artifact: install it, compare it, load it, compute with it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from bundler.artifacts import Artifact, ArtifactKind
from bundler.errors import ArchiveError, SmokeError
from bundler.integrity import compare, find_files
from bundler.probe import PROBE_NAME, probe_executable
from bundler.smoke import app_local, conda, wheel
from bundler.smoke.host import Host, NotRun
from bundler.smoke.installation import Check, Installation, Installer, SmokeContext
from bundler.smoke.probe_run import (
    ProbeOutcome,
    convolution_result,
    load_result,
    run_probe,
)
from bundler.smoke.report import ArtifactReport, Level, LevelResult, Status
from bundler.smoke.trap import Trap, check_trap, lay_trap

INSTALLERS: Mapping[ArtifactKind, Installer] = {
    ArtifactKind.APP_LOCAL: app_local.install,
    ArtifactKind.WHEEL: wheel.install,
    ArtifactKind.CONDA: conda.install,
}


def smoke_test(artifact: Artifact, context: SmokeContext) -> ArtifactReport:
    """Test one artifact in a clean environment of its own.

    An artifact that cannot be installed or checked has failed; that is a result.

    Raises:
        SmokeError: the test's own trap does not work here.
    """
    with tempfile.TemporaryDirectory(prefix="smoke-", dir=context.scratch) as scratch:
        levels = _levels(artifact, replace(context, scratch=Path(scratch)))
    host = context.host
    return ArtifactReport(
        kind=artifact.kind,
        file=artifact.path.name,
        size=artifact.size,
        sha256=artifact.sha256,
        host=host.reason if isinstance(host, NotRun) else host.describe(),
        levels=tuple(levels),
    )


def _levels(artifact: Artifact, context: SmokeContext) -> list[LevelResult]:
    try:
        installation = INSTALLERS[artifact.kind](artifact.path, context)
    except (SmokeError, ArchiveError) as error:
        return [LevelResult(Level.INTEGRITY, Status.FAILED, str(error))]
    integrity = _integrity(installation)
    if integrity.status is not Status.PASSED:
        return [integrity]
    return [integrity, *_run_levels(installation, context)]


def _integrity(installation: Installation) -> LevelResult:
    faults = compare(installation.lock, find_files(installation.libraries))
    status = Status.FAILED if faults else Status.PASSED
    return LevelResult(Level.INTEGRITY, status, "; ".join(str(fault) for fault in faults))


def _run_levels(installation: Installation, context: SmokeContext) -> list[LevelResult]:
    host = context.host
    if isinstance(host, NotRun) or installation.not_run:
        levels = (Level.LOAD, Level.CONVOLUTION)
        return [LevelResult(level, Status.NOT_RUN, installation.not_run) for level in levels]
    trap = _trap(host, installation, context.scratch)
    folders = (*context.poison, trap.folder)
    try:
        outcomes = {
            name: _run_check(host, check, folders, context.scratch)
            for name, check in installation.checks.items()
        }
    except SmokeError as error:
        return [LevelResult(Level.LOAD, Status.FAILED, str(error))]
    return [_load(host, installation, outcomes), convolution_result(next(iter(outcomes.values())))]


def _trap(host: Host, installation: Installation, scratch: Path) -> Trap:
    lock = installation.lock
    names = [file.name for file in lock.runtime_files]
    trap = lay_trap(host, lock.identity.platform, names, scratch / "trap")
    alone = scratch / "probe alone" / PROBE_NAME[lock.identity.platform.is_windows]
    alone.parent.mkdir()
    alone.write_bytes(probe_executable(lock.identity))
    alone.chmod(0o755)
    check_trap(host, alone, trap)
    return trap


def _run_check(host: Host, check: Check, poison: tuple[Path, ...], cwd: Path) -> ProbeOutcome:
    environment = host.search_path([*check.search_first, *poison])
    return run_probe(host, check.argv, environment=environment, cwd=cwd)


def _load(
    host: Host, installation: Installation, outcomes: Mapping[str, ProbeOutcome]
) -> LevelResult:
    """Sum up the checks: the first that failed, with every check's report as facts."""
    inside = host.path_argument(installation.libraries)
    names = tuple(file.name for file in installation.lock.runtime_files)
    results = {
        name: load_result(outcome, names if installation.checks[name].every_library else (), inside)
        for name, outcome in outcomes.items()
    }
    failed = [
        f"{name}: {result.reason}"
        for name, result in results.items()
        if result.status is Status.FAILED
    ]
    facts = {name: result.facts["probe"] for name, result in results.items()}
    status = Status.FAILED if failed else Status.PASSED
    return LevelResult(Level.LOAD, status, "; ".join(failed), facts)
