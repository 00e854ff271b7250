"""Checking what somebody signed: the envelope, and the files it speaks of. No network."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bundler.artifacts.reading import kind_of, read_artifact_lock, recognise
from bundler.attestation import ENVELOPE, LOCK, PROVENANCE, SIDE_FILES, find_beside
from bundler.envelope import key_id, unseal
from bundler.errors import ArchiveError, Fault, UsageError
from bundler.ingest import read_input
from bundler.integrity import hash_file
from bundler.json_fields import SHA256, FieldReader
from bundler.names import Platform
from bundler.provenance import PREDICATE_TYPE, STATEMENT_TYPE
from bundler.signing_keys import read_public_key
from bundler.strict_json import JsonNode, read_json_object, shown

_BUILD_AGAIN = "do not ship it; get it again from whoever signed, or build and sign it again"


@dataclass(frozen=True)
class SignatureOptions:
    """Whose signature to ask for.

    Args:
        key: file of the public key, PEM.
        provenance: the envelope; nothing means that it lies beside the file.
    """

    key: Path
    provenance: Path | None = None


@dataclass(frozen=True)
class SignedProvenance:
    """An envelope whose signature was checked.

    Args:
        path: of the envelope.
        key_id: SHA-256 of the public key's DER form.
        payload: the statement's bytes.
        subjects: what it speaks of: SHA-256 by file name.
    """

    path: Path
    key_id: str
    payload: bytes
    subjects: Mapping[str, str]


@dataclass(frozen=True)
class SubjectCheck:
    """What an envelope's check came to.

    Args:
        provenance: the envelope.
        present: files that lie beside it and are as it says.
        absent: names it speaks of that do not lie there.
    """

    provenance: SignedProvenance
    present: tuple[Path, ...]
    absent: tuple[str, ...]


def can_be_signed_for(path: Path) -> bool:
    """Tell whether a file's name is that of something an envelope speaks of, or of one."""
    return kind_of(path) is not None or path.name.endswith(SIDE_FILES)


def check_signed_file(path: Path, options: SignatureOptions) -> SignedProvenance:
    """Make sure that somebody signed for an artifact or for a file that lies beside it.

    Args:
        path: of the artifact, lock, SBOM or provenance.
        options: whose signature, and where.

    Raises:
        UsageError: the key, the file or the envelope cannot be read.
        ArchiveError: the envelope is not signed by the key, or speaks of other bytes.
    """
    read_public_key(options.key)
    stem = _stem(path)
    envelope = options.provenance or _beside(path, stem + ENVELOPE)
    signed = open_provenance(envelope, options.key)
    found = _sha256(path)
    if path.name == stem + PROVENANCE:
        faults = _payload_faults(signed, path)
    else:
        faults = list(_subject_faults(signed, path.name, found))
    faults += _lock_faults(signed, path, stem)
    if faults:
        raise ArchiveError(
            f"{path.name} is not what {envelope.name} speaks of",
            next_step=_BUILD_AGAIN,
            faults=faults,
        )
    return signed


def check_envelope(path: Path, key: Path) -> SubjectCheck:
    """Make sure of an envelope's signature and of every file it names that lies beside it.

    Raises:
        UsageError: the key or the envelope cannot be read.
        ArchiveError: it is not signed by the key, or a file differs; lists every one.
    """
    signed = open_provenance(path, key)
    folders = [path.parent, *(path.parent / platform.conda_subdir for platform in Platform)]
    present: list[Path] = []
    faults: list[Fault] = []
    for name in sorted(signed.subjects):
        lying = [file for folder in dict.fromkeys(folders) if (file := folder / name).is_file()]
        present += lying
        for file in lying:
            faults += _subject_faults(signed, name, _sha256(file))
    statement = path.with_name(path.name.removesuffix(ENVELOPE) + PROVENANCE)
    if statement.is_file():
        faults += _payload_faults(signed, statement)
    if faults:
        raise ArchiveError(
            f"files beside {path.name} are not what it speaks of",
            next_step=_BUILD_AGAIN,
            faults=faults,
        )
    names = {file.name for file in present}
    return SubjectCheck(signed, tuple(present), tuple(sorted(signed.subjects.keys() - names)))


def open_provenance(path: Path, key: Path) -> SignedProvenance:
    """Check an envelope's signature and read what it says.

    Raises:
        UsageError: the key or the envelope cannot be read.
        ArchiveError: it is not signed by the key, or is no provenance.
    """
    public = read_public_key(key)
    payload = unseal(read_input(path, "provenance"), path.name, public)
    return SignedProvenance(path, key_id(public), payload, _subjects(payload, path.name))


def _subjects(payload: bytes, name: str) -> dict[str, str]:
    """Read the subjects of a statement that was signed, and may still be another tool's."""
    document = read_json_object(payload, f"the provenance in {name}")
    reader, top = FieldReader(document.faults), document.top
    for key, wanted in (("_type", STATEMENT_TYPE), ("predicateType", PREDICATE_TYPE)):
        if reader.text(top, key) != wanted:
            reader.fault(top.path(key), f"must be {wanted}")
    items = top.value.get("subject")
    found: dict[str, str] = {}
    for number, item in enumerate(items if isinstance(items, list) else ()):
        node = JsonNode(f"subject[{number}]", item if isinstance(item, dict) else {})
        digest = reader.child(node, "digest") if "digest" in node.value else None
        sha256 = reader.text(digest or JsonNode(node.path("digest"), {}), "sha256", SHA256)
        file_name = reader.text(node, "name")
        if file_name in found or file_name != Path(file_name).name:
            reader.fault(node.path("name"), f"{shown(file_name)} is given twice or is no file name")
        found[file_name] = sha256
    if not found:
        reader.fault("subject", "must be an array with one file at least")
    if reader.faults:
        raise ArchiveError(
            f"{name} does not hold a provenance",
            next_step="give the *.provenance.dsse.json that `build --sign` wrote",
            faults=dict.fromkeys(reader.faults),
        )
    return found


def _stem(path: Path) -> str:
    """Give the stem that the files beside an artifact begin with."""
    ending = next((ending for ending in SIDE_FILES if path.name.endswith(ending)), None)
    if ending is not None:
        return path.name.removesuffix(ending)
    return read_artifact_lock(recognise(path), path).identity.stem


def _beside(path: Path, name: str) -> Path:
    found = find_beside(path, name)
    if found is not None:
        return found
    raise UsageError(
        f"there is no {name} beside {path}",
        next_step="give --provenance FILE, or build it with --sign KEY",
    )


def _sha256(path: Path) -> str:
    try:
        return hash_file(path).sha256
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}"
        raise UsageError(message, next_step="give the path of a file") from error


def _subject_faults(signed: SignedProvenance, name: str, sha256: str) -> Iterable[Fault]:
    """Compare by content first: a renamed file is still the one that was signed."""
    if sha256 in signed.subjects.values():
        return ()
    if name in signed.subjects:
        return (Fault(name, f"signed was sha256 {signed.subjects[name]}, this one is {sha256}"),)
    names = ", ".join(sorted(signed.subjects))
    return (Fault(name, f"sha256 {sha256} is none of the files signed for: {names}"),)


def _payload_faults(signed: SignedProvenance, path: Path) -> list[Fault]:
    same = path.read_bytes() == signed.payload
    return [] if same else [Fault(path.name, "differs from the provenance that was signed")]


def _lock_faults(signed: SignedProvenance, path: Path, stem: str) -> Iterable[Fault]:
    """Compare the lock inside an artifact with the one that was signed."""
    kind = kind_of(path)
    if kind is None:
        return ()
    data = read_artifact_lock(kind, path).to_bytes()
    found, wanted = hashlib.sha256(data).hexdigest(), signed.subjects.get(stem + LOCK)
    if wanted is None:
        return (Fault(stem + LOCK, "nobody signed for the lock"),)
    if found != wanted:
        return (Fault("the lock inside", f"signed was sha256 {wanted}, this one is {found}"),)
    return ()
