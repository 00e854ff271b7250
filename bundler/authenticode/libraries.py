"""The signatures of all libraries of an archive, each read once more and hashed in parallel."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bundler.authenticode import Examined
from bundler.authenticode.child import examine
from bundler.authenticode.table import (
    USUAL_ALGORITHM,
    CertificateTable,
    authenticode_digest,
    read_table,
)
from bundler.signature_policy import Signature

Examiner = Callable[[Sequence[bytes], bytes | None], list[Examined]]


@dataclass(frozen=True)
class _Signed:
    location: Path
    table: CertificateTable
    digest: bytes | None


@dataclass(frozen=True)
class Library:
    """An unpacked library.

    Args:
        location: where it lies.
        digest: its usual Authenticode digest, where somebody took it already.
    """

    location: Path
    digest: bytes | None = None


def read_signatures(
    libraries: Mapping[str, Library], roots: bytes | None, examiner: Examiner = examine
) -> dict[str, Signature]:
    """Check the signatures of libraries.

    The signatures are examined in a process of their own while threads hash the files.

    Args:
        libraries: by path in the archive; those of Linux carry no signatures and are left out.
        roots: PEM of the certificates to trust, or nothing for Microsoft's root programme.
        examiner: checks signatures in everything but their libraries' digests.

    Raises:
        MissingError: something is signed, and signatures cannot be examined here.
    """
    found: dict[str, Signature] = {}
    signed: dict[str, _Signed] = {}
    for path, library in libraries.items():
        location = library.location
        if not path.lower().endswith(".dll"):
            continue
        with location.open("rb") as stream:
            table = read_table(stream, location.stat().st_size)
        if isinstance(table, str):
            found[path] = table
        elif table.signatures:
            signed[path] = _Signed(location, table, library.digest)
        else:
            found[path] = ()
    if signed:
        found |= _checked(signed, lambda signatures: examiner(signatures, roots))
    return {path: found[path] for path in libraries if path in found}


def _checked(
    signed: Mapping[str, _Signed], examiner: Callable[[Sequence[bytes]], list[Examined]]
) -> dict[str, Signature]:
    largest_first = sorted(signed, key=lambda path: -signed[path].location.stat().st_size)
    files = [signed[path] for path in largest_first]
    signatures = [each for file in files for each in file.table.signatures]
    with ThreadPoolExecutor((os.cpu_count() or 1) + 1) as pool:
        answers = pool.submit(examiner, signatures)
        digests = list(pool.map(_usual_digest, files))
        examined = iter(answers.result())
    return {
        path: _judged(file, digest, [next(examined) for _ in file.table.signatures])
        for path, file, digest in zip(largest_first, files, digests, strict=True)
    }


def _usual_digest(file: _Signed) -> bytes:
    return file.digest or _digest(file, USUAL_ALGORITHM)


def _digest(file: _Signed, algorithm: str) -> bytes:
    with file.location.open("rb") as stream:
        return authenticode_digest(stream, file.table, algorithm)


def _judged(file: _Signed, usual: bytes, examined: list[Examined]) -> Signature:
    """Take signatures together: each must be sound, and of the library as it is."""
    signers = []
    for each in examined:
        if isinstance(each, str):
            return each
        for claim in each:
            algorithm = claim.signer.digest
            digest = usual if algorithm == USUAL_ALGORITHM else _digest(file, algorithm)
            if claim.digest != digest:
                return (
                    "was changed after it was signed: "
                    f"its digest is {digest.hex()}, the signed one {claim.digest.hex()}"
                )
            signers.append(claim.signer)
    return tuple(signers)
