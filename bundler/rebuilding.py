"""Making an artifact a second time, from the archive, to see whether the bytes are the same."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bundler.artifacts import Artifact, CondaEngine
from bundler.artifacts.reading import open_artifact, read_artifact_lock
from bundler.attestation import PROVENANCE, find_beside, tool_versions
from bundler.errors import ArchiveError, Fault, ReleaseError, UsageError
from bundler.ingest import IngestOptions, open_trusted, read_input
from bundler.making import Making, make
from bundler.progress import Progress
from bundler.provenance_reading import RecordedBuild, read_recorded_build
from bundler.staging import staging_folder


@dataclass(frozen=True)
class RebuildOptions:
    """What to make again, and from what.

    Args:
        artifact: a finished artifact.
        ingest: the archive and who vouches for it; its scratch folder takes the rebuilt file.
        provenance: how it was made; nothing means that it lies beside the artifact.
    """

    artifact: Path
    ingest: IngestOptions
    provenance: Path | None = None


@dataclass(frozen=True)
class Rebuilt:
    """An artifact that was made again with the same bytes.

    Args:
        artifact: the one that was given.
        recorded: how both were made.
    """

    artifact: Artifact
    recorded: RecordedBuild


def rebuild(options: RebuildOptions, progress: Progress) -> Rebuilt:
    """Make an artifact again as its provenance says, and compare all bytes.

    Raises:
        UsageError: a witness or the provenance is missing, or its engine is not reproducible.
        ArchiveError: the archive is not the one that the artifact was made from.
        ReleaseError: the bytes differ; lists the members that do.
    """
    artifact = open_artifact(options.artifact)
    recorded = _recorded(options, artifact)
    ingest = _same_witnesses(options.ingest, recorded)
    with (
        open_trusted(ingest, progress) as archive,
        staging_folder(ingest.scratch) as scratch,
    ):
        if archive.file.digest.sha256 != recorded.archive_sha256:
            raise ArchiveError(
                f"{artifact.path.name} was not made from {archive.file.name}",
                why=f"its provenance names the archive with sha256 {recorded.archive_sha256}, "
                f"this one has {archive.file.digest.sha256}",
                next_step="give the archive that it was made from",
            )
        making = Making(scratch / "rebuilt", (artifact.kind,), recorded.options, None)
        (again,) = make(archive, scratch, making, progress).artifacts
        if (again.size, again.sha256) != (artifact.size, artifact.sha256):
            raise _different(artifact, again, recorded)
    return Rebuilt(artifact, recorded)


def _recorded(options: RebuildOptions, artifact: Artifact) -> RecordedBuild:
    path = options.provenance or _beside(artifact)
    recorded = read_recorded_build(read_input(path, "provenance"), path.name)
    if recorded.options.conda_engine is not CondaEngine.NATIVE:
        raise UsageError(
            f"{artifact.path.name} was written by {recorded.options.conda_engine}",
            why="that engine takes the clock into its packages, so no two are equal",
            next_step="rebuild what `--conda-engine native` wrote",
        )
    return recorded


def _beside(artifact: Artifact) -> Path:
    lock = read_artifact_lock(artifact.kind, artifact.path)
    name = lock.identity.stem + PROVENANCE
    found = find_beside(artifact.path, name)
    if found is not None:
        return found
    raise UsageError(
        f"there is no {name} beside {artifact.path}",
        next_step="give --provenance FILE: it says with which options the artifact was made",
    )


def _same_witnesses(given: IngestOptions, recorded: RecordedBuild) -> IngestOptions:
    """Ask the witnesses of the first build: the lock, which all artifacts carry, names them."""
    if recorded.manifest is not None and given.manifest is None:
        raise UsageError(
            f"it was built with --manifest {recorded.manifest}",
            next_step="give the same manifest with --manifest",
        )
    manifest = given.manifest if recorded.manifest is not None else None
    sha256 = recorded.sha256 or (given.sha256 if manifest is None else None)
    return IngestOptions(given.archive, manifest, sha256, given.scratch, given.signatures)


def _different(artifact: Artifact, again: Artifact, recorded: RecordedBuild) -> ReleaseError:
    here = tool_versions((artifact.kind,))
    others = [
        f"{name} {there} made it, {here[name]} is here"
        for name, there in sorted(recorded.versions.items())
        if here.get(name, there) != there
    ]
    return ReleaseError(
        f"{artifact.path.name} is not what this tool makes of the archive",
        why="; ".join(others) or "the versions of everything that could change a byte are equal",
        next_step="install the versions that made it and try again; if they are equal, "
        "somebody altered the artifact: do not ship it",
        faults=[
            Fault(artifact.path.name, f"sha256 {artifact.sha256}, rebuilt {again.sha256}"),
            *_member_faults(artifact.path, again.path),
        ],
    )


def _member_faults(path: Path, again: Path) -> Iterator[Fault]:
    try:
        found, wanted = _members(path), _members(again)
    except (OSError, zipfile.BadZipFile, ValueError):
        return
    for name in sorted(found.keys() | wanted.keys()):
        if name not in wanted:
            yield Fault(name, "is more than the rebuilt one has")
        elif name not in found:
            yield Fault(name, "is missing; the rebuilt one has it")
        elif found[name] != wanted[name]:
            yield Fault(name, "differs from the rebuilt one")


def _members(path: Path) -> Mapping[str, tuple[object, ...]]:
    with zipfile.ZipFile(path) as members:
        return {
            info.filename: (info.CRC, info.file_size, info.date_time, info.external_attr)
            for info in members.infolist()
        }
