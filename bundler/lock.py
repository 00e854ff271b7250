"""The lock: all facts of a release, as a record and as the bytes every artifact embeds.

The bytes are sorted and hold no clock and no path of this machine: the same archive gives
the same lock everywhere.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum

from bundler.names import ReleaseIdentity

FILE_NAME = "cudnn.lock.json"
SCHEMA = 2


class Role(StrEnum):
    """What a file of an archive is for; only run-time files and the licence are shipped."""

    RUNTIME = "runtime"
    IMPORT_LIBRARY = "import-library"
    HEADER = "header"
    LICENCE = "licence"
    OTHER = "other"


@dataclass(frozen=True)
class Signer:
    """Whose Authenticode signature a library carries, and since when.

    Args:
        organisation: of the certificate's subject.
        issuer: the common name of the certificate's issuer.
        serial: of the certificate, in lowercase hex.
        signed_at: the timestamp's moment, such as `2023-09-07T07:12:54Z`.
        digest: the algorithm, such as `sha256`.
    """

    organisation: str
    issuer: str
    serial: str
    signed_at: str
    digest: str

    @property
    def in_words(self) -> str:
        """Say who signed it and when."""
        return f"signed by {self.organisation}, {self.signed_at[:10]}"


@dataclass(frozen=True)
class LibraryFacts:
    """What the lock keeps of a library's binary facts.

    Args:
        machine: `x86_64`, `arm64`, ...
        file_version: of the version resource, or nothing when it has none.
        imports: names of the libraries it links to, sorted.
        run_time_names: names and patterns it may open while running, sorted.
        exports: how many functions it offers.
        signer: who signed it, by a sound signature; nothing when it is not signed.
    """

    machine: str
    file_version: str | None
    imports: tuple[str, ...]
    run_time_names: tuple[str, ...]
    exports: int
    signer: Signer | None


@dataclass(frozen=True)
class LockedFile:
    """One file of the archive.

    Args:
        path: posix path inside the archive, without its root folder.
        size: bytes.
        sha256: lowercase hex SHA-256.
        role: what it is for.
        library: binary facts of a run-time file.
    """

    path: str
    size: int
    sha256: str
    role: Role
    library: LibraryFacts | None = None

    @property
    def name(self) -> str:
        """The last component of the path."""
        return self.path.rsplit("/", 1)[-1]


class NeedKind(StrEnum):
    """How much a run-time need matters."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    DRIVER = "driver"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Need:
    """A library that is opened by name while running and is not part of cuDNN.

    Args:
        name: a file name, or a pattern with `%d` in it.
        needed_by: names of the payload's libraries, sorted.
        kind: how much it matters.
        reason: what goes wrong without it.
        provider: where it usually comes from.
        satisfied_by: `artifact` when a companion brings it, else nothing.
    """

    name: str
    needed_by: tuple[str, ...]
    kind: NeedKind
    reason: str
    provider: str
    satisfied_by: str | None = None

    @property
    def in_words(self) -> str:
        """Say what it is, where it comes from and what goes wrong without it."""
        origin = f", from {self.provider}" if self.provider else ""
        return f"{self.name} ({self.kind}{origin}): {self.reason}"


@dataclass(frozen=True)
class LockedWitness:
    """Who vouched for the archive's hash.

    Args:
        kind: `catalogue`, `manifest` or `sha256`.
        detail: in words, without a path of this machine.
    """

    kind: str
    detail: str


@dataclass(frozen=True)
class LockedArchive:
    """The archive everything came from.

    Args:
        name: its official name, whatever the file was called.
        size: bytes.
        sha256: lowercase hex SHA-256.
        catalogued: the built-in catalogue lists these bytes; otherwise only the witnesses
            that the builder named vouch for them.
        witnesses: who vouched for the hash.
    """

    name: str
    size: int
    sha256: str
    catalogued: bool
    witnesses: tuple[LockedWitness, ...]


@dataclass(frozen=True)
class Lock:
    """All facts of a release.

    Args:
        identity: which cuDNN it is.
        archive: what it came from.
        files: every file of the archive, sorted by path.
        load_order: payload names, each after the libraries it links to.
        needs: run-time needs, sorted by name.
        warnings: what looked unusual and was let through, in words.
    """

    identity: ReleaseIdentity
    archive: LockedArchive
    files: tuple[LockedFile, ...]
    load_order: tuple[str, ...]
    needs: tuple[Need, ...]
    warnings: tuple[str, ...]

    @property
    def closed(self) -> bool:
        """Say whether the target needs nothing but the driver."""
        return all(need.satisfied_by or need.kind is NeedKind.DRIVER for need in self.needs)

    @property
    def target_requirements(self) -> tuple[str, ...]:
        """What the target machine must have, in words, most of it needs that nothing here meets."""
        unmet = (
            need
            for need in self.needs
            if need.satisfied_by is None and need.kind is not NeedKind.DRIVER
        )
        return (
            *(need.in_words for need in unmet),
            "an NVIDIA display driver for this CUDA version",
        )

    @property
    def runtime_files(self) -> tuple[LockedFile, ...]:
        """The payload, sorted by path."""
        return tuple(file for file in self.files if file.role is Role.RUNTIME)

    def to_bytes(self) -> bytes:
        """Write the lock as UTF-8 JSON with sorted keys and a final newline."""
        text = json.dumps(_document(self), indent=1, sort_keys=True, ensure_ascii=False)
        return (text + "\n").encode()


def _document(lock: Lock) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "identity": {
            "version": str(lock.identity.version),
            "cuda": lock.identity.cuda,
            "platform": str(lock.identity.platform),
        },
        "archive": {
            "name": lock.archive.name,
            "size": lock.archive.size,
            "sha256": lock.archive.sha256,
            "catalogued": lock.archive.catalogued,
            "witnesses": [vars(witness) for witness in lock.archive.witnesses],
        },
        "files": [_file_document(file) for file in lock.files],
        "load_order": list(lock.load_order),
        "needs": [vars(need) for need in lock.needs],
        "closed": lock.closed,
        "warnings": list(lock.warnings),
    }


def _file_document(file: LockedFile) -> dict[str, object]:
    document: dict[str, object] = {
        "path": file.path,
        "size": file.size,
        "sha256": file.sha256,
        "role": str(file.role),
    }
    if file.library is not None:
        document["library"] = asdict(file.library)
    return document
