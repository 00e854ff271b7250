"""The whole flow, one function per verb; each line calls one step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bundler.archive import ArchiveFile, open_file
from bundler.artifacts import Artifact, ArtifactKind, ArtifactOptions, app_local, conda, wheel
from bundler.artifacts.reading import open_artifact, read_artifact_files, read_artifact_lock
from bundler.errors import ArchiveError, ReleaseError, UsageError
from bundler.integrity import compare
from bundler.library_set import EXPECTED_TABLE, load_expectations
from bundler.lock import Lock
from bundler.lock_reading import parse_lock
from bundler.manifest import parse_manifest
from bundler.names import Platform
from bundler.needs import TABLE, load_rules
from bundler.progress import Progress
from bundler.recipe_data import builtin_catalogue, read_recipe
from bundler.release import (
    Candidate,
    Examination,
    ReleaseTables,
    ValidatedRelease,
    examine,
    validate,
)
from bundler.reproducible import write_bytes
from bundler.smoke.host import NotRun
from bundler.smoke.report import FILE_NAME, ArtifactReport, report_bytes
from bundler.smoke.smoke_test import SmokeOptions, smoke_test
from bundler.smoke.wine import find_host
from bundler.staging import stage, staging_folder
from bundler.trust import (
    GivenWitnesses,
    TrustDecision,
    decide,
    normalise_sha256,
)

BUILDERS = {
    ArtifactKind.APP_LOCAL: app_local.build,
    ArtifactKind.WHEEL: wheel.build,
    ArtifactKind.CONDA: conda.build,
}


@dataclass(frozen=True)
class IngestOptions:
    """What to read and who vouches for it.

    Args:
        archive: NVIDIA's archive.
        manifest: NVIDIA's manifest, as a witness for the archive's hash.
        sha256: the expected SHA-256 in hex, as a witness.
        scratch: a folder on a disk with room for the unpacked archive.
    """

    archive: Path
    manifest: Path | None
    sha256: str | None
    scratch: Path


@dataclass(frozen=True)
class BuildOptions:
    """What to build.

    Args:
        ingest: from what.
        output: the folder for artifacts.
        kinds: which artifacts.
        artifacts: what may differ between builds of one archive.
        smoke: whether to test them.
    """

    ingest: IngestOptions
    output: Path
    kinds: tuple[ArtifactKind, ...]
    artifacts: ArtifactOptions
    smoke: bool


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


@contextmanager
def ingest(options: IngestOptions, progress: Progress) -> Iterator[ValidatedRelease]:
    """Read, trust, unpack and validate an archive; everything unpacked is removed after.

    Raises:
        ArchiveError: it is not what it claims.
        ReleaseError: it is not fit to ship.
    """
    with _candidate(options, _trust, progress) as candidate:
        yield validate(candidate, release_tables())
        candidate.archive.check_unchanged()


def inspect_archive(options: IngestOptions, progress: Progress) -> Examination:
    """Say what an archive holds, whether or not anybody vouches for it.

    Raises:
        ArchiveError: it is damaged.
        ReleaseError: it is not fit to ship.
    """
    with _candidate(options, _trust_or_doubt, progress) as candidate:
        return examine(candidate, release_tables())


@contextmanager
def _candidate(options: IngestOptions, trust: _Trust, progress: Progress) -> Iterator[Candidate]:
    given = _given_witnesses(options)
    with ExitStack() as stack:
        progress(f"reading {options.archive.name}")
        file = stack.enter_context(open_file(options.archive))
        decision = trust(file, given)
        archive = file.structure(is_known=decision.entry is not None)
        scratch = stack.enter_context(staging_folder(options.scratch))
        progress(f"unpacking {len(archive.entries)} files")
        files = stage(archive, scratch / "archive")
        progress("validating")
        yield Candidate(archive, file.digest, decision, files, scratch)


_Trust = Callable[[ArchiveFile, GivenWitnesses], TrustDecision]


def _trust(file: ArchiveFile, given: GivenWitnesses) -> TrustDecision:
    try:
        return decide(file.digest, file.name, given, builtin_catalogue())
    except ArchiveError as distrust:
        raise _with_damage(distrust, file) from distrust


def _with_damage(distrust: ArchiveError, file: ArchiveFile) -> ArchiveError:
    """Add what is visibly wrong with the file, which is often why nobody vouches for it."""
    try:
        file.structure()
    except ArchiveError as damage:
        return ArchiveError(
            distrust.what,
            why="; ".join(filter(None, (distrust.why, damage.what))),
            next_step=damage.next_step,
            faults=(*distrust.faults, *damage.faults),
        )
    return distrust


def _trust_or_doubt(file: ArchiveFile, given: GivenWitnesses) -> TrustDecision:
    try:
        return _trust(file, given)
    except ArchiveError as error:
        return TrustDecision((), None, (str(error),))


def _given_witnesses(options: IngestOptions) -> GivenWitnesses:
    sha256 = normalise_sha256(options.sha256) if options.sha256 else None
    if options.manifest is None:
        return GivenWitnesses(sha256=sha256)
    manifest = parse_manifest(_read(options.manifest, "manifest"))
    name = options.manifest.name
    return GivenWitnesses(manifest=manifest, manifest_name=name, sha256=sha256)


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        message = f"cannot read the {what} {path}: {error.strerror}"
        raise UsageError(message, next_step=f"give the path of a {what} file") from error


def release_tables() -> ReleaseTables:
    """Load what `recipes/` knows about cuDNN."""
    return ReleaseTables(
        needs=load_rules(read_recipe(TABLE)),
        expectations=load_expectations(read_recipe(EXPECTED_TABLE)),
    )


def build(options: BuildOptions, environment: Mapping[str, str], progress: Progress) -> BuildResult:
    """Do the main job: validate, write the artifacts, test them.

    Args:
        options: what to build.
        environment: the caller's, for the smoke tests.
        progress: told of each step.

    Raises:
        BundlerError: any of the tree; nothing is left half-written at a final path.
    """
    with ingest(options.ingest, progress) as release:
        made = []
        for kind in options.kinds:
            progress(f"writing the {kind} artifact")
            made.append(BUILDERS[kind](release, options.artifacts, options.output))
        lock, notes = release.lock, release.notes
    lock_path = options.output / f"{lock.identity.stem}.lock.json"
    side_files = [write_bytes(lock_path, lock.to_bytes()).path]
    reports: tuple[ArtifactReport, ...] = ()
    if options.smoke:
        reports = smoke(tuple(made), options.output, environment, progress)
        side_files.append(write_bytes(options.output / FILE_NAME, report_bytes(reports)).path)
    return BuildResult(lock, notes, tuple(made), tuple(side_files), reports)


def smoke(
    made: tuple[Artifact, ...],
    scratch: Path,
    environment: Mapping[str, str],
    progress: Progress,
    poison: tuple[Path, ...] = (),
) -> tuple[ArtifactReport, ...]:
    """Test artifacts, each in a clean environment of its own.

    Args:
        made: artifacts of one platform.
        scratch: a folder on a disk with room for two unpacked payloads.
        environment: the caller's.
        progress: told of each step.
        poison: folders with other cuDNNs to put first on every search path.

    Raises:
        SmokeError: a test does not work here.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(staging_folder(scratch))
        host = find_host(platform_of(made[0]), environment)
        if not isinstance(host, NotRun):
            progress("starting the host for smoke tests")
            stack.enter_context(host)
        options = SmokeOptions(host, environment, folder, poison)
        reports = []
        for artifact in made:
            progress(f"smoke-testing the {artifact.kind} artifact")
            reports.append(smoke_test(artifact, options))
        return tuple(reports)


def platform_of(artifact: Artifact) -> Platform:
    """Tell what an artifact is for by the lock it carries."""
    return read_artifact_lock(artifact.kind, artifact.path).identity.platform


def verify_artifact(path: Path, lock_path: Path | None) -> Lock:
    """Compare an artifact's libraries with a lock, its own unless another is given.

    Raises:
        ArchiveError: the artifact is damaged.
        ReleaseError: its libraries differ from the lock; lists every difference.
    """
    artifact = open_artifact(path)
    lock = read_artifact_lock(artifact.kind, path)
    if lock_path is not None:
        lock = parse_lock(_read(lock_path, "lock"), lock_path.name)
    faults = compare(lock, read_artifact_files(artifact.kind, path))
    if faults:
        raise ReleaseError(
            f"{path.name} differs from its lock",
            next_step="do not ship it; build it again from the archive",
            faults=faults,
        )
    return lock
