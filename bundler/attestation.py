"""What lies beside the artifacts and speaks for them: lock, SBOM, provenance, signature."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from bundler import __version__
from bundler.artifacts import Artifact, ArtifactKind, ArtifactOptions
from bundler.catalogue import download_url
from bundler.compression import LIBRARY
from bundler.envelope import read_envelope, seal
from bundler.errors import ArchiveError
from bundler.ingest import IngestOptions, read_input
from bundler.lock import Lock
from bundler.provenance import BUILDER, BuildFacts, NamedDigest, statement_bytes
from bundler.recipe_data import builtin_catalogue
from bundler.reproducible import refusing_to_write, write_bytes
from bundler.sbom import sbom_bytes

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

LOCK, SBOM = ".lock.json", ".sbom.cdx.json"
PROVENANCE, ENVELOPE = ".provenance.json", ".provenance.dsse.json"
SIDE_FILES = (ENVELOPE, PROVENANCE, SBOM, LOCK)
"""What follows the release's stem in their names."""


@dataclass(frozen=True)
class Attestor:
    """Who speaks for a build.

    Args:
        builder: URI of whoever answers for it.
        key: to sign the provenance with, or nothing.
    """

    builder: str = BUILDER
    key: Ed25519PrivateKey | None = None


@dataclass(frozen=True)
class FinishedBuild:
    """What was made, and from what.

    Args:
        lock: the facts of the release.
        artifacts: those that were made, finished.
        ingest: what they were made from.
        options: what changes their bytes.
    """

    lock: Lock
    artifacts: tuple[Artifact, ...]
    ingest: IngestOptions
    options: ArtifactOptions


def find_beside(artifact: Path, name: str) -> Path | None:
    """Find a side file beside an artifact, or beside the channel folder that it is in."""
    folders = (artifact.parent, artifact.absolute().parent.parent)
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def write_side_files(build: FinishedBuild, attestor: Attestor, folder: Path) -> tuple[Path, ...]:
    """Write lock, SBOM and provenance, and with a key the signed envelope.

    An envelope of an earlier build goes when it does not speak of this one.

    Args:
        build: what to speak for.
        attestor: who speaks.
        folder: where they go.

    Returns:
        their final paths.

    Raises:
        RefusedError: they cannot be written.
        UsageError: the manifest can no longer be read.
    """
    stem = build.lock.identity.stem
    files = {stem + LOCK: build.lock.to_bytes(), stem + SBOM: sbom_bytes(build.lock)}
    statement = statement_bytes(_facts(build, files, attestor.builder))
    files[stem + PROVENANCE] = statement
    if attestor.key is not None:
        files[stem + ENVELOPE] = seal(statement, attestor.key)
    else:
        _remove_other(folder / (stem + ENVELOPE), statement)
    return tuple(write_bytes(folder / name, data).path for name, data in files.items())


def _facts(build: FinishedBuild, files: dict[str, bytes], builder: str) -> BuildFacts:
    made = [NamedDigest(artifact.path.name, artifact.sha256) for artifact in build.artifacts]
    beside = [_digest(name, data) for name, data in files.items()]
    kinds = tuple(artifact.kind for artifact in build.artifacts)
    manifest = build.ingest.manifest
    given = None
    if manifest is not None:
        given = _digest(manifest.name, read_input(manifest, "manifest"))
    return BuildFacts(
        archive=build.lock.archive,
        archive_url=download_url(builtin_catalogue(), build.lock.archive.sha256),
        manifest=given,
        expected_sha256=build.ingest.sha256,
        kinds=kinds,
        options=build.options,
        subjects=(*made, *beside),
        builder=builder,
        versions=tool_versions(kinds),
    )


def tool_versions(kinds: Iterable[ArtifactKind]) -> dict[str, str]:
    """Name what can change a byte, and its version here; Python is not among them.

    Args:
        kinds: of the artifacts.
    """
    return dict(_versions(tuple(kinds)))


def _versions(kinds: Iterable[ArtifactKind]) -> Iterator[tuple[str, str]]:
    yield "cudnn-bundler", __version__
    yield "cyclonedx-python-lib", version("cyclonedx-python-lib")
    if ArtifactKind.CONDA in kinds:
        name, number = LIBRARY.split(" ")
        yield name, number
        yield "py-rattler-build", version("py-rattler-build")


def _digest(name: str, data: bytes) -> NamedDigest:
    return NamedDigest(name, hashlib.sha256(data).hexdigest())


def _remove_other(path: Path, statement: bytes) -> None:
    """Keep an envelope that says the same: equal builds are equal, and so it is still true."""
    with refusing_to_write(path):
        if not path.exists():
            return
        with suppress(ArchiveError):
            if read_envelope(path.read_bytes(), path.name).payload == statement:
                return
        path.unlink()
