"""Validation: from unpacked files to a release that may be shipped.

`validate` is the only maker of a `ValidatedRelease`, and artifact writers accept nothing
else, so no artifact can be built from bytes that were not checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass
from pathlib import Path

from bundler.archive import Archive
from bundler.authenticode.child import examine as examine_signatures
from bundler.authenticode.libraries import Examiner, Library, read_signatures
from bundler.binary_facts import BinaryFacts
from bundler.errors import Fault, ReleaseError
from bundler.identity import Evidence, identify
from bundler.import_library import promise_faults
from bundler.inventory import inventory_faults, role_of
from bundler.library_reading import read_import_libraries, read_version_headers
from bundler.library_set import (
    expectation_warnings,
    library_faults,
    load_order,
    oddity_warnings,
)
from bundler.lock import (
    LibraryFacts,
    Lock,
    LockedArchive,
    LockedFile,
    LockedWitness,
    Role,
)
from bundler.names import ReleaseIdentity, Version
from bundler.needs import NeedRule, need_warnings, needs_of
from bundler.signature_policy import (
    DEFAULT_POLICY,
    Signature,
    SignaturePolicy,
    signature_faults,
    signature_warnings,
)
from bundler.staging import StagedFile
from bundler.trust import ArchiveDigest, TrustDecision

_SEAL = object()


@dataclass(frozen=True)
class PayloadFile:
    """A file that artifacts ship.

    Args:
        locked: its facts.
        staged: its bytes.
    """

    locked: LockedFile
    staged: StagedFile

    @property
    def name(self) -> str:
        """The base name."""
        return self.locked.name


@dataclass(frozen=True)
class ValidatedRelease:
    """A release whose every fact was checked; only `validate` makes one.

    Args:
        lock: all its facts.
        notes: what the archive's file name got wrong; not in the lock, which must not
            depend on what a user calls a file.
        archive: the open archive, whose streams zip artifacts copy.
        payload: the run-time libraries, sorted by name.
        licence: NVIDIA's licence text.
        scratch: a private folder on the output's disk, gone when the build ends.
    """

    lock: Lock
    notes: tuple[str, ...]
    archive: Archive
    payload: tuple[PayloadFile, ...]
    licence: PayloadFile
    scratch: Path
    # Not kept, so that `dataclasses.replace` cannot carry it over to a changed copy.
    seal: InitVar[object]

    def __post_init__(self, seal: object) -> None:
        if seal is not _SEAL:
            message = "a ValidatedRelease is made by release.validate only"
            raise TypeError(message)


@dataclass(frozen=True)
class Candidate:
    """An unpacked, trusted archive that is to be validated.

    Args:
        archive: the open archive.
        digest: its size and hashes.
        trust: who vouched for it.
        files: its members, unpacked.
        scratch: a private folder on the output's disk.
        policy: what is asked of the libraries' signatures.
        examiner: checks them.
    """

    archive: Archive
    digest: ArchiveDigest
    trust: TrustDecision
    files: tuple[StagedFile, ...]
    scratch: Path
    policy: SignaturePolicy = DEFAULT_POLICY
    examiner: Examiner = examine_signatures


@dataclass(frozen=True)
class ReleaseTables:
    """What is known about cuDNN beyond the archive at hand, from `recipes/`.

    Args:
        needs: what each run-time name means.
        expectations: per cuDNN major, the libraries seen in other archives.
    """

    needs: tuple[NeedRule, ...]
    expectations: Mapping[int, Mapping[str, Version | None]]


@dataclass(frozen=True)
class Examination:
    """What an archive holds, whoever vouches for it; nothing can be built from it.

    Args:
        lock: all facts.
        notes: what trust and the file's name leave to say.
    """

    lock: Lock
    notes: tuple[str, ...]


def validate(candidate: Candidate, tables: ReleaseTables) -> ValidatedRelease:
    """Check everything inside a trusted archive and lock it.

    Raises:
        ReleaseError: the release is not fit to ship; lists every fault.
        ValueError: nobody vouches for the archive; a caller skipped `trust.decide`.
    """
    if not candidate.trust.agreed:
        message = "an archive without a witness cannot become a release"
        raise ValueError(message)
    return _sealed(candidate, examine(candidate, tables))


def examine(candidate: Candidate, tables: ReleaseTables) -> Examination:
    """Check everything inside an archive.

    Raises:
        ReleaseError: the release is not fit to ship; lists every fault.
    """
    roles = {file.path: role_of(file.path) for file in candidate.files}
    libraries = [file for file in candidate.files if roles[file.path] is Role.RUNTIME]
    facts, faults = _read_libraries(libraries)
    readable = {
        file.path: Library(file.location, file.digest)
        for file in libraries
        if file.location.name in facts
    }
    signatures = read_signatures(readable, candidate.policy.roots, candidate.examiner)
    faults += signature_faults(signatures, required=candidate.policy.required)
    faults += inventory_faults(roles.items())
    promises, damage = read_import_libraries(
        file for file in candidate.files if roles[file.path] is Role.IMPORT_LIBRARY
    )
    faults += damage
    verdict = identify(
        Evidence(
            facts=facts,
            header=read_version_headers(candidate.files),
            archive_name=candidate.archive.name,
            entry=candidate.trust.entry,
        )
    )
    faults += verdict.faults
    if verdict.identity is not None:
        unreadable = frozenset(file.location.name for file in libraries) - facts.keys()
        faults += library_faults(facts, verdict.identity, unreadable)
        faults += promise_faults(promises, facts, unreadable)
    if faults or verdict.identity is None:
        raise _unfit(candidate.archive.name, faults)
    lock = _lock(candidate, verdict.identity, _Contents(roles, facts, signatures), tables)
    return Examination(lock, (*candidate.trust.warnings, *verdict.notes))


@dataclass(frozen=True)
class _Contents:
    roles: Mapping[str, Role]
    facts: Mapping[str, BinaryFacts]
    signatures: Mapping[str, Signature]


def _lock(
    candidate: Candidate, identity: ReleaseIdentity, contents: _Contents, tables: ReleaseTables
) -> Lock:
    files = tuple(_locked_file(file, contents) for file in candidate.files)
    payload = [file for file in files if file.role is Role.RUNTIME]
    needs = needs_of(payload, identity.version, tables.needs)
    entry = candidate.trust.entry
    return Lock(
        identity=identity,
        archive=LockedArchive(
            name=entry.file_name if entry else identity.archive_name,
            size=candidate.digest.size,
            sha256=candidate.digest.sha256,
            catalogued=entry is not None,
            witnesses=tuple(LockedWitness(w.kind, w.detail) for w in candidate.trust.agreed),
        ),
        files=files,
        load_order=load_order(contents.facts),
        needs=needs,
        warnings=(
            *expectation_warnings(contents.facts, identity, tables.expectations),
            *oddity_warnings(contents.facts, identity),
            *need_warnings(needs),
            *signature_warnings(contents.signatures),
        ),
    )


def _locked_file(file: StagedFile, contents: _Contents) -> LockedFile:
    return LockedFile(
        path=file.path,
        size=file.entry.size,
        sha256=file.sha256,
        role=contents.roles[file.path],
        library=_library_facts(
            contents.facts.get(file.location.name), contents.signatures.get(file.path)
        ),
    )


def _sealed(candidate: Candidate, examination: Examination) -> ValidatedRelease:
    lock = examination.lock
    staged = {file.path: file for file in candidate.files}
    pairs = [PayloadFile(file, staged[file.path]) for file in lock.files]
    payload = [pair for pair in pairs if pair.locked.role is Role.RUNTIME]
    licences = [pair for pair in pairs if pair.locked.role is Role.LICENCE]
    return ValidatedRelease(
        lock=lock,
        notes=examination.notes,
        archive=candidate.archive,
        payload=tuple(sorted(payload, key=lambda pair: pair.name)),
        licence=licences[0],
        scratch=candidate.scratch,
        seal=_SEAL,
    )


def _unfit(name: str, faults: Sequence[Fault]) -> ReleaseError:
    return ReleaseError(
        f"{name} is not fit to ship",
        next_step="nothing was written; use NVIDIA's own archive, complete and unmodified",
        faults=dict.fromkeys(faults),
    )


def _read_libraries(
    files: Sequence[StagedFile],
) -> tuple[dict[str, BinaryFacts], list[Fault]]:
    facts: dict[str, BinaryFacts] = {}
    faults: list[Fault] = []
    for file in files:
        if isinstance(file.facts, Fault):
            faults.append(Fault(file.path, file.facts.what))
        elif file.facts is not None:
            facts[file.location.name] = file.facts
    return facts, faults


def _library_facts(facts: BinaryFacts | None, signature: Signature | None) -> LibraryFacts | None:
    if facts is None:
        return None
    return LibraryFacts(
        machine=facts.machine,
        file_version=facts.file_version,
        imports=tuple(sorted(facts.imports)),
        run_time_names=facts.run_time_names,
        exports=len(facts.exports),
        # Of several, the one that Windows looks at.
        signer=signature[0] if isinstance(signature, tuple) and signature else None,
    )
