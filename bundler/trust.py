"""Decide whether an archive's bytes may be used: witnesses in, a decision out. No IO here.

Three witnesses can vouch: the built-in catalogue (always asked), a manifest and a hash (when
given). The rules, first row that applies; *found* is the archive's own SHA-256:

A hash that was given (`--sha256`)
  1. equals found                                  -> agrees
  2. differs                                       -> error, both hashes and whose they are

A manifest that was given; its entry is sought by hash, then file name, then identity
  3. no entry                                      -> error, "not listed" (not "bad hash")
  4. entry has found, but another size or MD5      -> error, the manifest contradicts itself
  5. entry has found                               -> agrees; another name is a warning
  6. entry has another hash                        -> error; a smaller file is incomplete
  7. it is not known to be NVIDIA's own, its entries for *other* archives contradict the
     catalogue, and nobody else vouches            -> error, such a witness does not count
  8. as 7, but it is authentic, or the catalogue or
     a given hash vouches as well                  -> warning
  9. its release is pinned and its bytes differ    -> warning, it is not as NVIDIA serves it

The catalogue, by hash first and by name second
 10. knows found                                   -> agrees; another file name is a warning
 11. knows other bytes by that name, and no
     witness was given                             -> error, both hashes
 12. as 11, but an authentic manifest vouches      -> warning, the two disagree
 13. as 11, but another given witness vouches      -> warning, not NVIDIA's own archive
 14. knows nothing of it, a given witness vouches  -> warning, unless a manifest is authentic
 15. knows nothing of it, and none was given       -> error, the two ways to go on

All errors are raised together. Rule 13 lets a rebuilt archive through with its own manifest,
and says in words whose word that is; rule 7 stops at a manifest that is wrong elsewhere too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bundler.errors import ArchiveError, Fault, UsageError
from bundler.evidence import AgreedWitness, ArchiveDigest, Case, GivenWitnesses, Opinion
from bundler.manifest import Manifest, is_authentic
from bundler.witnesses import ask_catalogue, ask_manifest, ask_sha256, expected_entries

if TYPE_CHECKING:
    from bundler.catalogue import Catalogue, CatalogueEntry

__all__ = [
    "AgreedWitness",
    "ArchiveDigest",
    "GivenWitnesses",
    "TrustDecision",
    "decide",
    "normalise_sha256",
]


@dataclass(frozen=True)
class TrustDecision:
    """Who vouches for an archive, and what the user should know.

    Args:
        agreed: the witnesses that agree: catalogue, manifest, sha256; one at least.
        entry: the catalogue's row for these bytes, where it has one.
        warnings: whole sentences without a full stop.
    """

    agreed: tuple[AgreedWitness, ...]
    entry: CatalogueEntry | None
    warnings: tuple[str, ...]


def decide(
    digest: ArchiveDigest, archive_name: str, given: GivenWitnesses, catalogue: Catalogue
) -> TrustDecision:
    """Ask every witness about an archive.

    Args:
        digest: of the archive's bytes.
        archive_name: its file name, which claims something and proves nothing.
        given: the witnesses the user named.
        catalogue: what is known beforehand.

    Raises:
        ArchiveError: a witness disagrees, or none vouches; with every fault.
    """
    case = Case(digest, archive_name, given, catalogue)
    explicit = (ask_manifest(case), ask_sha256(case))
    built_in = ask_catalogue(case)
    faults = [fault for opinion in explicit for fault in opinion.faults]
    entry = catalogue.by_sha256(digest.sha256)
    if faults or (built_in.faults and (entry is not None or not given.any)):
        raise _disagreement(case, [*built_in.faults, *faults])
    agreed = tuple(o.agreed for o in (built_in, *explicit) if o.agreed is not None)
    if not agreed:
        raise _unknown(case)
    warnings = (
        *built_in.warnings,
        *_doubts(case, built_in, agreed),
        *(warning for opinion in explicit for warning in opinion.warnings),
    )
    return TrustDecision(agreed, entry, warnings)


def normalise_sha256(text: str) -> str:
    """Read a SHA-256 as people copy it: upper case, or with `sha256:` before it.

    Raises:
        UsageError: it is anything else.
    """
    plain = text.strip().lower().removeprefix("sha256:")
    if re.fullmatch(r"[0-9a-f]{64}", plain):
        return plain
    lengths = {32: "MD5", 40: "SHA-1", 96: "SHA-384", 128: "SHA-512"}
    other = lengths.get(len(plain)) if re.fullmatch(r"[0-9a-f]+", plain) else None
    raise UsageError(
        f"not a SHA-256: {text!r}",
        why=f"it has the length of an {other}" if other else f"it has {len(plain)} characters",
        next_step="give the 64 hexadecimal digits that `sha256sum FILE` or `Get-FileHash` prints",
    )


def _doubts(case: Case, built_in: Opinion, agreed: tuple[AgreedWitness, ...]) -> tuple[str, ...]:
    """Rules 12 to 14: say whose word is relied on when it is not the catalogue's."""
    if built_in.agreed is not None:
        return ()
    authentic = any(witness.authentic for witness in agreed)
    voucher = _vouchers(case.given.manifest, case.given.sha256)
    expected = expected_entries(case)
    if not expected:
        unknown = f"the catalogue does not know this archive; only {voucher} for it"
        return () if authentic else (unknown,)
    listed = " and ".join(f"sha256 {entry.sha256} for {entry.file_name}" for entry in expected)
    if authentic:
        doubt = (
            f"the catalogue ({expected[0].confidence}) lists {listed}, NVIDIA's own manifest "
            f"{case.given.manifest_name} lists {case.digest.sha256}; the manifest is followed"
        )
    else:
        doubt = (
            "these are not the bytes of NVIDIA's own archive: "
            f"the catalogue ({expected[0].confidence}) lists {listed}; only {voucher} for them"
        )
    return (doubt,)


def _vouchers(manifest: Manifest | None, sha256: str | None) -> str:
    if manifest is None:
        return "the --sha256 you gave vouches"
    if sha256 is None:
        return "the manifest you gave vouches"
    return "the manifest and the --sha256 you gave vouch"


def _disagreement(case: Case, faults: list[Fault]) -> ArchiveError:
    entry = case.catalogue.by_sha256(case.digest.sha256)
    manifest = case.given.manifest
    why = ""
    if entry is not None:
        why = f"the catalogue knows these bytes as {entry.file_name} ({entry.confidence})"
    elif manifest is not None and is_authentic(manifest, case.catalogue.pins):
        why = f"{case.given.manifest_name} is NVIDIA's own, byte for byte"
    return ArchiveError(
        f"{case.archive_name} is not what its witnesses say",
        why=why,
        next_step=_way_on(case, known=entry is not None),
        faults=faults,
    )


def _way_on(case: Case, *, known: bool) -> str:
    if known:
        return "take the archive you mean, or the witness that belongs to this one"
    again = "download the archive again and compare its size with the server's; "
    if case.given.any:
        return again + "or give the manifest or hash that belongs to this archive"
    return again + (
        "if these bytes are meant, give --manifest FILE or --sha256 HASH from a source you trust"
    )


def _unknown(case: Case) -> ArchiveError:
    digest = case.digest
    return ArchiveError(
        f"nothing vouches for {case.archive_name}",
        why=f"its sha256 is {digest.sha256} ({digest.size:,} bytes), which the built-in catalogue "
        f"of {len(case.catalogue.entries)} archives does not list",
        next_step="give --manifest FILE, the redistrib_*.json of this release from NVIDIA's redist "
        "folder, or --sha256 HASH, taken from a source you trust (not from this message)",
    )
