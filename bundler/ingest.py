"""From a file on disk to a validated release: read, trust, unpack, validate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bundler.archive import ArchiveFile, open_file
from bundler.authenticode.waiting import WaitingExaminer
from bundler.errors import ArchiveError, UsageError
from bundler.library_set import EXPECTED_TABLE, load_expectations
from bundler.manifest import parse_manifest
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
from bundler.signature_policy import DEFAULT_POLICY, SignaturePolicy
from bundler.staging import stage, staging_folder
from bundler.trust import GivenWitnesses, TrustDecision, decide, normalise_sha256

_MAXIMUM_INPUT = 16 * 1024 * 1024
"""Bytes of a manifest or lock; real ones have less than a hundredth of it."""

_Trust = Callable[[ArchiveFile, GivenWitnesses], TrustDecision]


@dataclass(frozen=True)
class IngestOptions:
    """What to read and who vouches for it.

    Args:
        archive: NVIDIA's archive.
        manifest: NVIDIA's manifest, as a witness for the archive's hash.
        sha256: the expected SHA-256 in hex, as a witness.
        scratch: a folder on a disk with room for the unpacked archive.
        signatures: what is asked of the libraries' signatures.
    """

    archive: Path
    manifest: Path | None
    sha256: str | None
    scratch: Path
    signatures: SignaturePolicy = DEFAULT_POLICY


@dataclass(frozen=True)
class TrustedArchive:
    """An open archive that somebody vouches for, not yet looked into.

    Args:
        file: the open file.
        decision: who vouches for it.
        signatures: what is asked of its libraries' signatures.
    """

    file: ArchiveFile
    decision: TrustDecision
    signatures: SignaturePolicy


@contextmanager
def open_trusted(
    options: IngestOptions, progress: Progress, trust: _Trust | None = None
) -> Iterator[TrustedArchive]:
    """Hash an archive and ask its witnesses.

    Args:
        options: which, and who vouches for it.
        progress: told of each step.
        trust: asks the witnesses; an archive that nobody vouches for is refused unless
            another one is given.

    Raises:
        ArchiveError: it is not what it claims.
    """
    given = _given_witnesses(options)
    with_md5 = given.manifest is not None
    progress(f"reading {options.archive.name}", _size(options.archive) * (1 + with_md5))
    with open_file(options.archive, with_md5=with_md5, count=progress.advance) as file:
        yield TrustedArchive(file, (trust or _trust)(file, given), options.signatures)


@contextmanager
def ingest(options: IngestOptions, progress: Progress) -> Iterator[ValidatedRelease]:
    """Read, trust, unpack and validate an archive; everything unpacked is removed after.

    Raises:
        ArchiveError: it is not what it claims.
        ReleaseError: it is not fit to ship.
    """
    with (
        open_trusted(options, progress) as trusted,
        staging_folder(options.scratch) as scratch,
        unpack(trusted, scratch, progress) as release,
    ):
        yield release


@contextmanager
def unpack(
    trusted: TrustedArchive, scratch: Path, progress: Progress
) -> Iterator[ValidatedRelease]:
    """Unpack and validate an archive.

    Args:
        trusted: the archive.
        scratch: a private folder on a disk with room for the unpacked archive.
        progress: told of each step.

    Raises:
        ArchiveError: it is damaged.
        ReleaseError: it is not fit to ship.
    """
    with WaitingExaminer() as examiner:
        candidate = _candidate(trusted, scratch, examiner, progress)
        release = validate(candidate, release_tables())
    yield release
    candidate.archive.check_unchanged()


def inspect_archive(options: IngestOptions, progress: Progress) -> Examination:
    """Say what an archive holds, whether or not anybody vouches for it.

    Raises:
        ArchiveError: it is damaged.
        ReleaseError: it is not fit to ship.
    """
    with (
        open_trusted(options, progress, _trust_or_doubt) as trusted,
        staging_folder(options.scratch) as scratch,
        WaitingExaminer() as examiner,
    ):
        return examine(_candidate(trusted, scratch, examiner, progress), release_tables())


def _candidate(
    trusted: TrustedArchive, scratch: Path, examiner: WaitingExaminer, progress: Progress
) -> Candidate:
    file, decision = trusted.file, trusted.decision
    archive = file.structure(is_known=decision.entry is not None)
    total = sum(entry.compressed_size for entry in archive.entries)
    progress(f"unpacking {len(archive.entries)} files", total)
    files = stage(archive, scratch / "archive", examiner.start)
    progress("validating")
    policy = trusted.signatures
    return Candidate(archive, file.digest, decision, files, scratch, policy, examiner)


def _size(path: Path) -> int:
    """Look how large a file is, for the display; opening it will say what is wrong with it."""
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return 0


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
        known = builtin_catalogue().by_sha256(file.digest.sha256)
        return TrustDecision((), known, (error.what, *map(str, error.faults)))


def _given_witnesses(options: IngestOptions) -> GivenWitnesses:
    sha256 = normalise_sha256(options.sha256) if options.sha256 else None
    if options.manifest is None:
        return GivenWitnesses(sha256=sha256)
    manifest = parse_manifest(read_input(options.manifest, "manifest"))
    name = options.manifest.name
    return GivenWitnesses(manifest=manifest, manifest_name=name, sha256=sha256)


def release_tables() -> ReleaseTables:
    """Load what `recipes/` knows about cuDNN."""
    return ReleaseTables(
        needs=load_rules(read_recipe(TABLE)),
        expectations=load_expectations(read_recipe(EXPECTED_TABLE)),
    )


def read_input(path: Path, what: str) -> bytes:
    """Read a small file that the user named.

    Args:
        path: of the file.
        what: it is, in a word.

    Raises:
        UsageError: it cannot be read.
    """
    next_step = f"give the path of a {what} file"
    try:
        # Opening a pipe would wait for its other end.
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise UsageError(f"the {what} {path} is not a file", next_step=next_step)
        with path.open("rb") as stream:
            data = stream.read(_MAXIMUM_INPUT + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        message = f"cannot read the {what} {path}: {reason}"
        raise UsageError(message, next_step=next_step) from error
    if len(data) > _MAXIMUM_INPUT:
        message = f"the {what} {path} has more than {_MAXIMUM_INPUT:,} bytes"
        raise UsageError(message, next_step=next_step)
    return data
