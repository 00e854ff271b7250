"""The whole flow, one function per verb; each line calls one step."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bundler.artifacts import (
    Artifact,
    ArtifactKind,
    ArtifactOptions,
    CondaEngine,
)
from bundler.artifacts.conda_engines import conda_build_program
from bundler.artifacts.reading import read_artifact_lock, recognise
from bundler.attestation import Attestor, FinishedBuild, write_side_files
from bundler.build_cache import BuildCache
from bundler.errors import UsageError
from bundler.ingest import IngestOptions, open_trusted, read_input
from bundler.lock import Lock
from bundler.lock_reading import parse_lock
from bundler.making import Making, make
from bundler.names import Platform
from bundler.progress import Progress
from bundler.reproducible import refusing_to_write, write_bytes
from bundler.smoke.host import NotRun
from bundler.smoke.hosts import find_host
from bundler.smoke.installation import SmokeContext
from bundler.smoke.report import FILE_NAME, ArtifactReport, report_bytes
from bundler.smoke.smoke_test import smoke_test
from bundler.staging import staging_folder
from bundler.verification import GivenLock, Verification
from bundler.verification.recognition import (
    artifact_kind,
    is_folder,
    verify_artifact_file,
    verify_folder,
)
from bundler.verification.verdict import verdict


@dataclass(frozen=True)
class BuildOptions:
    """What to build.

    Args:
        ingest: from what.
        output: the folder for artifacts.
        kinds: which artifacts.
        artifacts: what may differ between builds of one archive.
        smoke: whether to test them.
        cache: where finished builds are kept; none are when there is none.
        attestor: who speaks for them.
    """

    ingest: IngestOptions
    output: Path
    kinds: tuple[ArtifactKind, ...]
    artifacts: ArtifactOptions
    smoke: bool
    cache: BuildCache | None = None
    attestor: Attestor = field(default_factory=Attestor)


@dataclass(frozen=True)
class BuildResult:
    """What a build made.

    Args:
        lock: the facts of the release.
        notes: what the archive's file name got wrong.
        artifacts: in the order they were asked for.
        side_files: what lies beside them.
        reports: the smoke tests; empty when they were not asked for.
    """

    lock: Lock
    notes: tuple[str, ...]
    artifacts: tuple[Artifact, ...]
    side_files: tuple[Path, ...]
    reports: tuple[ArtifactReport, ...]


@dataclass(frozen=True)
class SmokeOptions:
    """Where to test, and against what.

    Args:
        scratch: a folder on a disk with room for two unpacked payloads.
        poison: folders with other cuDNNs to put first on every search path.
        report: the file for the smoke report, replaced if there is one.
    """

    scratch: Path
    poison: tuple[Path, ...] = ()
    report: Path | None = None


def build(options: BuildOptions, environment: Mapping[str, str], progress: Progress) -> BuildResult:
    """Do the main job: validate, write the artifacts, test them.

    Args:
        options: what to build.
        environment: the caller's, for the smoke tests.
        progress: told of each step.

    Raises:
        BundlerError: any of the tree; nothing is left half-written at a final path.
    """
    if options.artifacts.conda_engine is CondaEngine.CONDA_BUILD:
        # Asked before a minute of work, not after it.
        conda_build_program()
    report_path = options.output / FILE_NAME
    with (
        open_trusted(options.ingest, progress) as archive,
        staging_folder(options.output) as scratch,
    ):
        # An older report would speak of these files: equal inputs give equal hashes.
        report_path.unlink(missing_ok=True)
        making = Making(options.output, options.kinds, options.artifacts, options.cache)
        made = make(archive, scratch, making, progress)
    finished = FinishedBuild(made.lock, made.artifacts, options.ingest, options.artifacts)
    side_files = write_side_files(finished, options.attestor, options.output)
    reports: tuple[ArtifactReport, ...] = ()
    if options.smoke:
        smoke_options = SmokeOptions(options.output, report=report_path)
        reports = smoke(made.artifacts, smoke_options, environment, progress)
        side_files += (report_path,)
    return BuildResult(made.lock, made.notes, made.artifacts, side_files, reports)


def smoke(
    made: tuple[Artifact, ...],
    options: SmokeOptions,
    environment: Mapping[str, str],
    progress: Progress,
) -> tuple[ArtifactReport, ...]:
    """Test artifacts, each in a clean environment of its own.

    Args:
        made: artifacts of one platform.
        options: where and against what.
        environment: the caller's.
        progress: told of each step.

    Raises:
        UsageError: the artifacts are for several platforms, or the report would replace one.
        SmokeError: the test's own trap does not work here.
        RefusedError: the report cannot be written.
    """
    platform = _one_platform(made)
    if options.report is not None:
        _make_way(options.report, made)
    with ExitStack() as stack:
        folder = stack.enter_context(staging_folder(options.scratch))
        host = find_host(platform, environment)
        if not isinstance(host, NotRun):
            progress("starting the host for smoke tests")
            stack.enter_context(host)
        context = SmokeContext(host, folder, environment, options.poison)
        reports = []
        for artifact in made:
            progress(f"smoke-testing the {artifact.kind} artifact")
            reports.append(smoke_test(artifact, context))
    if options.report is not None:
        write_bytes(options.report, report_bytes(reports))
    return tuple(reports)


def _make_way(report: Path, made: tuple[Artifact, ...]) -> None:
    """Remove an older report: if the test is stopped, it must not speak for these files."""
    if report.exists() and any(report.samefile(artifact.path) for artifact in made):
        raise UsageError(
            f"the report would replace the artifact {report}",
            next_step=f"give --report another name, such as {FILE_NAME}",
        )
    with refusing_to_write(report):
        report.unlink(missing_ok=True)


def _one_platform(made: tuple[Artifact, ...]) -> Platform:
    platforms = {read_artifact_lock(a.kind, a.path).identity.platform for a in made}
    if len(platforms) > 1:
        raise UsageError(
            f"these artifacts are for several platforms: {', '.join(sorted(platforms))}",
            next_step="test those of one platform at a time",
        )
    return platforms.pop()


def verify(path: Path, lock_path: Path | None) -> tuple[Verification, ...]:
    """Compare an artifact, or everything recognised in a folder, with what it must be.

    Nothing is unpacked and nothing is written.

    Args:
        path: an artifact by whatever name, or a folder.
        lock_path: the lock to compare with, instead of the one that is carried.

    Returns:
        one for each thing that was found, with its faults.

    Raises:
        UsageError: it is nothing that can be recognised.
        ArchiveError: it is damaged, or hostile.
    """
    given = None
    if lock_path is not None:
        lock = parse_lock(read_input(lock_path, "lock"), lock_path.name)
        given = GivenLock(lock, lock_path.name)
    if is_folder(path):
        return verify_folder(path, given)
    kind = artifact_kind(path) or recognise(path)
    return (verify_artifact_file(kind, path, given),)


def verify_artifact(path: Path, lock_path: Path | None) -> Lock:
    """Insist that an artifact is what it must be, and give its lock; see `verify`.

    Raises:
        UsageError: it is no artifact.
        ArchiveError: it is damaged, or hostile.
        ReleaseError: it differs from its lock; lists every difference.
    """
    found = verify(path, lock_path)
    error = verdict(found)
    if error is not None:
        raise error
    return next(item.lock for item in found if item.lock is not None)
