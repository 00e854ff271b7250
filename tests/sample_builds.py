"""Running the main job on a sample archive, without smoke tests."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from bundler import ingest as flow
from bundler import pipeline
from bundler.artifacts import Artifact, ArtifactKind, ArtifactOptions
from bundler.lock import Lock
from bundler.progress import Progress
from bundler.release import ValidatedRelease
from tests.sample_archives import NAME, SampleArchive, sha256_of

DEFAULTS = ArtifactOptions()


@dataclass(frozen=True)
class SampleBuild:
    """One artifact of a sample archive, and what it was made from."""

    archive: Path
    artifact: Artifact
    lock: Lock


def ingest(archive: Path, scratch: Path) -> AbstractContextManager[ValidatedRelease]:
    """Validate an archive, with its own hash as the witness."""
    return flow.ingest(ingest_options(archive, scratch), Progress())


def ingest_options(archive: Path, scratch: Path) -> flow.IngestOptions:
    """Name an archive, with its own hash as the witness."""
    return flow.IngestOptions(archive, None, sha256_of(archive), scratch)


def build_archive(
    archive: Path, kind: ArtifactKind, output: Path, options: ArtifactOptions = DEFAULTS
) -> SampleBuild:
    """Build one artifact from an archive."""
    what = pipeline.BuildOptions(
        ingest=ingest_options(archive, output),
        output=output,
        kinds=(kind,),
        artifacts=options,
        smoke=False,
    )
    result = pipeline.build(what, {}, Progress())
    return SampleBuild(archive, result.artifacts[0], result.lock)


def build_sample(
    sample: SampleArchive,
    kind: ArtifactKind,
    folder: Path,
    options: ArtifactOptions = DEFAULTS,
) -> SampleBuild:
    """Write an archive under NVIDIA's name for it and build one artifact in a sub-folder."""
    folder.mkdir(parents=True, exist_ok=True)
    archive = sample.write(folder / NAME.replace("8.9.5.29", sample.version))
    return build_archive(archive, kind, folder / "out", options)
