"""Reading a lock back: bytes from outside in, a record of the right types out."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from bundler.errors import ArchiveError
from bundler.lock import (
    SCHEMA,
    LibraryFacts,
    Lock,
    LockedArchive,
    LockedFile,
    LockedWitness,
    Need,
    NeedKind,
    Role,
    Signer,
)
from bundler.names import Platform, ReleaseIdentity, Version
from bundler.strict_json import read_json_object

_Value = TypeVar("_Value")


def parse_lock(data: bytes, where: str) -> Lock:
    """Read a lock's bytes.

    Args:
        data: UTF-8 JSON.
        where: what to call it in messages.

    Raises:
        ArchiveError: it is not a lock of a schema this version reads.
    """
    document = _read_document(data, where)
    try:
        if document["schema"] != SCHEMA:
            raise ArchiveError(
                f"{where} has lock schema {document['schema']!r:.80}; this version reads {SCHEMA}",
                next_step="use the version of this tool that wrote it, or build again",
            )
        return _consistent(_lock(document))
    except (ValueError, KeyError, TypeError) as error:
        raise _no_lock(where, f"{type(error).__name__}: {error}") from error


def _read_document(data: bytes, where: str) -> dict[str, Any]:
    """Read JSON that every reader understands alike, and that can be written again."""
    try:
        document = read_json_object(data, where)
    except ArchiveError as error:
        raise _no_lock(where, error.why or error.what) from error
    if document.faults:
        raise _no_lock(where, "; ".join(str(fault) for fault in document.faults[:5]))
    return document.top.value


def _no_lock(where: str, reason: str) -> ArchiveError:
    return ArchiveError(
        f"{where} is not a lock ({reason})", next_step="build the artifact again from the archive"
    )


def _consistent(lock: Lock) -> Lock:
    if sorted(lock.load_order) != sorted(file.name for file in lock.runtime_files):
        message = "its load order is not an order of its run-time files"
        raise ValueError(message)
    return lock


def _lock(document: dict[str, Any]) -> Lock:
    identity, archive = document["identity"], document["archive"]
    return Lock(
        identity=ReleaseIdentity(
            Version.parse(identity["version"]),
            str(Version.parse(identity["cuda"])),
            Platform(identity["platform"]),
        ),
        archive=LockedArchive(
            name=_typed(archive["name"], str),
            size=_typed(archive["size"], int),
            sha256=_typed(archive["sha256"], str),
            catalogued=_typed(archive["catalogued"], bool),
            witnesses=tuple(_witness(item) for item in _typed(archive["witnesses"], list)),
        ),
        files=tuple(_locked_file(item) for item in _typed(document["files"], list)),
        load_order=_texts(document["load_order"]),
        needs=tuple(_need(item) for item in _typed(document["needs"], list)),
        warnings=_texts(document["warnings"]),
    )


def _witness(item: dict[str, Any]) -> LockedWitness:
    return LockedWitness(_typed(item["kind"], str), _typed(item["detail"], str))


def _locked_file(item: dict[str, Any]) -> LockedFile:
    return LockedFile(
        path=_typed(item["path"], str),
        size=_typed(item["size"], int),
        sha256=_typed(item["sha256"], str),
        role=Role(item["role"]),
        library=_library(item["library"]) if "library" in item else None,
    )


def _library(item: dict[str, Any]) -> LibraryFacts:
    return LibraryFacts(
        machine=_typed(item["machine"], str),
        file_version=_optional_text(item["file_version"]),
        imports=_texts(item["imports"]),
        run_time_names=_texts(item["run_time_names"]),
        exports=_typed(item["exports"], int),
        signer=None if item["signer"] is None else _signer(item["signer"]),
    )


def _signer(item: dict[str, Any]) -> Signer:
    return Signer(**{field.name: _typed(item[field.name], str) for field in fields(Signer)})


def _need(item: dict[str, Any]) -> Need:
    return Need(
        name=_typed(item["name"], str),
        needed_by=_texts(item["needed_by"]),
        kind=NeedKind(item["kind"]),
        reason=_typed(item["reason"], str),
        provider=_typed(item["provider"], str),
        satisfied_by=_optional_text(item["satisfied_by"]),
    )


def _typed(value: object, kind: type[_Value]) -> _Value:
    """Make sure of a value's type; true and false are no numbers here."""
    if type(value) is not kind:
        message = f"expected {kind.__name__}, not {value!r:.80}"
        raise TypeError(message)
    return value


def _optional_text(value: object) -> str | None:
    return None if value is None else _typed(value, str)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(_typed(item, str) for item in _typed(value, list))
