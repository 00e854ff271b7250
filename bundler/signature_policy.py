"""Which signatures a set of libraries must have.

All of NVIDIA's releases of a generation are signed, or none of their libraries is: one without
a signature among signed ones was put there by somebody else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from bundler.errors import Fault, ReleaseError
from bundler.lock import Lock, Signer

ORGANISATION = "NVIDIA Corporation"

Signature = tuple[Signer, ...] | str
"""The signers of a library, none when it is not signed; or why its signature is not sound."""


@dataclass(frozen=True)
class SignaturePolicy:
    """What is asked of signatures.

    Args:
        required: a set without any signature is a fault.
        roots: PEM of the certificates to trust, or nothing for Microsoft's root programme.
    """

    required: bool = False
    roots: bytes | None = None


DEFAULT_POLICY = SignaturePolicy()


def signature_faults(found: Mapping[str, Signature], *, required: bool) -> Iterator[Fault]:
    """List the libraries that NVIDIA did not sign as they are.

    Args:
        found: by path.
        required: a set without any signature is a fault.
    """
    for path, signature in found.items():
        if isinstance(signature, str):
            yield Fault(path, signature)
            continue
        if not signature and any(found.values()):
            yield Fault(path, "is not signed, though other libraries of this archive are")
        for signer in signature:
            if signer.organisation != ORGANISATION:
                who = signer.organisation or "somebody without an organisation"
                yield Fault(path, f"is signed by {who}, not by {ORGANISATION}")
    if required and found and not any(found.values()):
        yield Fault("", f"{_none_signed(len(found))}, and --require-signature asks for it")


def unsigned_error(locks: Iterable[Lock]) -> ReleaseError | None:
    """Say which artifacts' locks do not name NVIDIA as the signer of every library."""
    faults = [
        fault
        for lock in locks
        for fault in signature_faults(_locked_signatures(lock), required=True)
    ]
    if not faults:
        return None
    return ReleaseError(
        "what was verified is not signed as --require-signature asks",
        next_step="use a release whose libraries NVIDIA signed, or leave the option out",
        faults=faults,
    )


def _locked_signatures(lock: Lock) -> dict[str, Signature]:
    return {
        file.path: (file.library.signer,) if file.library and file.library.signer else ()
        for file in lock.runtime_files
        if file.name.lower().endswith(".dll")
    }


def signature_warnings(found: Mapping[str, Signature]) -> Iterator[str]:
    """Say that nothing is signed, where that is so.

    Args:
        found: by path.
    """
    if found and not any(found.values()):
        yield _none_signed(len(found))


def _none_signed(count: int) -> str:
    return f"none of the {count} libraries is signed"
