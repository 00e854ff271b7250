"""Reading a provenance back: how an artifact says that it was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from bundler.artifacts import ArtifactOptions, CondaEngine, CudaSource
from bundler.errors import ArchiveError
from bundler.json_fields import SHA256, FieldReader
from bundler.moment import Moment, moment_of
from bundler.provenance import BUILD_TYPE
from bundler.strict_json import JsonNode, read_json_object

_MOST_LEVELS = 22
_Choice = TypeVar("_Choice", CudaSource, CondaEngine)


@dataclass(frozen=True)
class RecordedBuild:
    """What has to be repeated to get the same bytes.

    Args:
        archive_sha256: of what went in, lowercase hex.
        manifest: file name of the manifest that vouched for it, or nothing.
        sha256: the hash that was given as a witness, or nothing.
        options: what changes bytes.
        versions: of whatever can change a byte, by name.
    """

    archive_sha256: str
    manifest: str | None
    sha256: str | None
    options: ArtifactOptions
    versions: Mapping[str, str]


def read_recorded_build(data: bytes, name: str) -> RecordedBuild:
    """Read an in-toto Statement that this tool wrote.

    Args:
        data: UTF-8 JSON.
        name: of the file, for messages.

    Raises:
        ArchiveError: it is none; lists every fault.
    """
    document = read_json_object(data, f"the provenance {name}")
    reader = FieldReader(document.faults)
    definition = _path(reader, document.top, "predicate", "buildDefinition")
    parameters = _path(reader, definition, "externalParameters")
    if reader.text(definition, "buildType") != BUILD_TYPE:
        reader.fault(definition.path("buildType"), f"must be {BUILD_TYPE}")
    builder = _path(reader, document.top, "predicate", "runDetails", "builder")
    recorded = RecordedBuild(
        archive_sha256=_archive_sha256(reader, definition),
        manifest=reader.optional_text(parameters, "manifest"),
        sha256=reader.optional_text(parameters, "sha256"),
        options=_options(reader, parameters),
        versions={
            key: value
            for key, value in _path(reader, builder, "version").value.items()
            if isinstance(value, str)
        },
    )
    if reader.faults:
        raise ArchiveError(
            f"{name} is not a provenance of this tool",
            next_step="give the *.provenance.json that `build` wrote beside the artifact",
            faults=dict.fromkeys(reader.faults),
        )
    return recorded


def _path(reader: FieldReader, node: JsonNode, *keys: str) -> JsonNode:
    """Go down into an object; what is not there is a fault, and empty."""
    for key in keys:
        child = reader.child(node, key) if key in node.value else None
        if key not in node.value:
            reader.fault(node.path(key), "is missing")
        node = child or JsonNode(node.path(key), {})
    return node


def _archive_sha256(reader: FieldReader, definition: JsonNode) -> str:
    items = definition.value.get("resolvedDependencies")
    first = items[0] if isinstance(items, list) and items else None
    where = definition.path("resolvedDependencies[0]")
    node = JsonNode(where, first if isinstance(first, dict) else {})
    return reader.text(_path(reader, node, "digest"), "sha256", SHA256)


def _options(reader: FieldReader, parameters: JsonNode) -> ArtifactOptions:
    usual = ArtifactOptions()
    level = parameters.value.get("condaLevel", usual.conda_level)
    if not isinstance(level, int) or not 1 <= level <= _MOST_LEVELS:
        reader.fault(parameters.path("condaLevel"), f"must be a zstd level, 1 to {_MOST_LEVELS}")
        level = usual.conda_level
    return ArtifactOptions(
        cuda_from=_choice(reader, parameters, "cudaFrom", usual.cuda_from),
        conda_level=level,
        conda_engine=_choice(reader, parameters, "condaEngine", usual.conda_engine),
        moment=_moment(reader, parameters),
    )


def _choice(reader: FieldReader, parameters: JsonNode, key: str, usual: _Choice) -> _Choice:
    text = reader.optional_text(parameters, key)
    known = {str(choice): choice for choice in type(usual)}
    if text is not None and text not in known:
        reader.fault(parameters.path(key), f"must be one of {', '.join(known)}")
    return known.get(text or "", usual)


def _moment(reader: FieldReader, parameters: JsonNode) -> Moment:
    seconds = parameters.value.get("sourceDateEpoch", 0)
    if not isinstance(seconds, int):
        reader.fault(parameters.path("sourceDateEpoch"), "must be a whole number of seconds")
        seconds = 0
    return moment_of(str(seconds))
