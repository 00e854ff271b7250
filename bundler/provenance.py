"""The provenance: how artifacts were made, as an in-toto Statement with a SLSA v1 predicate.

It names what went in and what came out by hash, and neither clock nor machine, so the
same build gives the same statement, and the same signature, everywhere. Records in, bytes
out; no IO here.

Source: in-toto Attestation Framework, Statement v1; SLSA v1.0, Provenance.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from bundler.artifacts import ArtifactKind, ArtifactOptions
from bundler.lock import LockedArchive
from bundler.moment import Moment

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "https://slsa.dev/provenance/v1"
BUILD_TYPE: Final = "urn:cudnn-bundler:build:v1"
BUILDER: Final = "urn:cudnn-bundler:builder"
"""Who built it, unless `--builder-id` says something better."""


@dataclass(frozen=True)
class NamedDigest:
    """A file and its hash.

    Args:
        name: file name.
        sha256: lowercase hex SHA-256.
    """

    name: str
    sha256: str


@dataclass(frozen=True)
class BuildFacts:
    """What a build was told, what it used and what it made.

    Args:
        archive: what went in.
        archive_url: where NVIDIA offers it, where that is known.
        manifest: the one the user gave.
        expected_sha256: the hash the user gave for the archive, as written.
        kinds: which artifacts were asked for.
        options: what changes their bytes.
        subjects: what came out.
        builder: URI of whoever answers for the build.
        versions: of whatever can change a byte, by name.
    """

    archive: LockedArchive
    archive_url: str | None
    manifest: NamedDigest | None
    expected_sha256: str | None
    kinds: tuple[ArtifactKind, ...]
    options: ArtifactOptions
    subjects: tuple[NamedDigest, ...]
    builder: str = BUILDER
    versions: Mapping[str, str] = field(default_factory=dict)


def statement_bytes(facts: BuildFacts) -> bytes:
    """Write the statement as UTF-8 JSON with sorted keys and a final newline."""
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": _descriptors(facts.subjects),
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": _parameters(facts),
                "resolvedDependencies": _dependencies(facts),
            },
            "runDetails": {"builder": {"id": facts.builder, "version": dict(facts.versions)}},
        },
    }
    text = json.dumps(statement, indent=1, sort_keys=True, ensure_ascii=False)
    return (text + "\n").encode()


def _parameters(facts: BuildFacts) -> dict[str, object]:
    """List every option that changes a byte; what was not given is left out."""
    options = facts.options
    parameters: dict[str, object] = {
        "archive": facts.archive.name,
        "artifacts": sorted(facts.kinds),
    }
    if ArtifactKind.CONDA in facts.kinds:
        parameters |= {"condaEngine": options.conda_engine, "condaLevel": options.conda_level}
    if ArtifactKind.WHEEL in facts.kinds:
        parameters["cudaFrom"] = options.cuda_from
    if facts.manifest is not None:
        parameters["manifest"] = facts.manifest.name
    if facts.expected_sha256 is not None:
        parameters["sha256"] = facts.expected_sha256
    if options.moment != Moment():
        parameters["sourceDateEpoch"] = options.moment.seconds
    return parameters


def _dependencies(facts: BuildFacts) -> list[dict[str, object]]:
    archive = _descriptor(NamedDigest(facts.archive.name, facts.archive.sha256))
    if facts.archive_url is not None:
        archive["uri"] = facts.archive_url
    return [archive, *_descriptors([facts.manifest] if facts.manifest else [])]


def _descriptors(files: Iterable[NamedDigest]) -> list[dict[str, object]]:
    return [_descriptor(file) for file in sorted(files, key=lambda file: file.name)]


def _descriptor(file: NamedDigest) -> dict[str, object]:
    """Describe a file as a ResourceDescriptor."""
    return {"name": file.name, "digest": {"sha256": file.sha256}}
