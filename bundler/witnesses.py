"""What each single witness says about an archive; `bundler.trust` weighs their words.

Pure: records in, opinions out. The numbers in the docstrings are the rules of
`bundler.trust`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bundler.errors import Fault
from bundler.evidence import AgreedWitness, Case, Opinion
from bundler.manifest import Manifest, ManifestArchive, is_authentic, pinned_sha256
from bundler.names import ReleaseIdentity, parse_archive_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from bundler.catalogue import CatalogueEntry

_LISTED_AT_MOST = 6


def ask_sha256(case: Case) -> Opinion:
    """Rules 1 and 2."""
    wanted = case.given.sha256
    if wanted is None:
        return Opinion()
    if wanted == case.digest.sha256:
        return Opinion(AgreedWitness("sha256", wanted))
    text = _hashes_differ(case, wanted)
    names = [wrong.file_name for wrong in case.catalogue.known_wrong(wanted)]
    if names:
        text += f"; public recipes give that hash wrongly for {_shortened(names)}"
    return Opinion(faults=(Fault("--sha256", text),))


def ask_manifest(case: Case) -> Opinion:
    """Rules 3 to 9."""
    manifest, name = case.given.manifest, case.given.manifest_name
    if manifest is None:
        return Opinion()
    entries = _listed(case, manifest)
    if not entries:
        return Opinion(faults=(Fault(name, _not_listed(case, manifest)),))
    faults = [
        Fault(f"{name}: {entry.json_path}", text)
        for entry in entries
        for text in _mismatch(case, entry)
    ]
    contradictions = list(_contradictions(case, manifest, entries))
    authentic = is_authentic(manifest, case.catalogue.pins)
    if not authentic and contradictions and not _vouched_elsewhere(case):
        faults += [Fault(name, text) for text in contradictions]
    if faults:
        return Opinion(faults=tuple(faults))
    agreed = AgreedWitness("manifest", f"{name}: {entries[0].json_path}", authentic=authentic)
    notes = (*_listed_otherwise(case, entries[0]), *contradictions)
    warnings = (*_altered(case, manifest), *(f"{name} {text}" for text in notes))
    return Opinion(agreed, warnings=warnings)


def ask_catalogue(case: Case) -> Opinion:
    """Rules 10 and 11."""
    entry = case.catalogue.by_sha256(case.digest.sha256)
    if entry is None:
        return Opinion(faults=tuple(_unexpected_bytes(case)))
    mismatch = tuple(_mismatch(case, entry))
    if mismatch:
        return Opinion(faults=tuple(Fault("the catalogue", text) for text in mismatch))
    agreed = AgreedWitness("catalogue", entry.file_name, confidence=entry.confidence.value)
    return Opinion(agreed, warnings=tuple(_named_otherwise(case, entry)))


def expected_entries(case: Case) -> tuple[CatalogueEntry, ...]:
    """Find what the catalogue lists by the archive's name: exactly, else by what it claims."""
    exact = case.catalogue.by_file_name(case.archive_name)
    if exact is not None:
        return (exact,)
    return case.catalogue.by_identity(case.claim) if case.claim else ()


def _unexpected_bytes(case: Case) -> Iterator[Fault]:
    for entry in expected_entries(case):
        for text in _mismatch(case, entry):
            yield Fault(f"the catalogue ({entry.confidence}): {entry.file_name}", text)


def _named_otherwise(case: Case, entry: CatalogueEntry) -> Iterator[str]:
    if case.archive_name.lower() == entry.file_name.lower():
        return
    renamed = case.claim == entry.identity
    official = case.catalogue.by_file_name(case.archive_name) is not None
    if renamed and not official:
        return
    text = f"the file is called {case.archive_name}, but its bytes are {entry.file_name}"
    wrong = [w.file_name.lower() for w in case.catalogue.known_wrong(entry.sha256)]
    if case.archive_name.lower() in wrong:
        text += "; public recipes make the same mistake"
    yield text


def _listed(case: Case, manifest: Manifest) -> tuple[ManifestArchive, ...]:
    """Find the archive's entry by its hash, else its name, else what its name claims."""
    by_hash = tuple(a for a in manifest.archives if a.sha256 == case.digest.sha256)
    wanted = case.archive_name.lower()
    by_name = tuple(a for a in manifest.archives if a.file_name.lower() == wanted)
    claim = case.claim
    by_claim = tuple(a for a in manifest.archives if claim and _is_claimed(a.file_name, claim))
    return by_hash[:1] or by_name[:1] or by_claim


def _listed_otherwise(case: Case, listed: ManifestArchive) -> Iterator[str]:
    """Rule 5: the bytes agree and the names need not."""
    known = case.catalogue.by_sha256(case.digest.sha256)
    if known is not None and known.file_name != listed.file_name:
        yield f"lists these bytes as {listed.file_name}, the catalogue as {known.file_name}"
    same_name = case.archive_name.lower() == listed.file_name.lower()
    renamed = case.claim is not None and _is_claimed(listed.file_name, case.claim)
    if known is None and not same_name and not renamed:
        yield f"lists the bytes of {case.archive_name} as {listed.file_name}"


def _is_claimed(file_name: str, claim: ReleaseIdentity) -> bool:
    name = parse_archive_name(file_name)
    return (
        name is not None
        and name.identity.platform == claim.platform
        and name.identity.cuda == claim.cuda
        and name.identity.version.agrees_with(claim.version)
    )


def _not_listed(case: Case, manifest: Manifest) -> str:
    platform = case.claim.platform if case.claim else None
    names = [a.file_name for a in manifest.archives if platform in (None, a.platform)]
    lists = _shortened(names or [archive.file_name for archive in manifest.archives])
    found = _with_owner(case, case.digest.sha256)
    return f"neither {case.archive_name} nor sha256 {found} is listed in it (it lists: {lists})"


def _contradictions(
    case: Case, manifest: Manifest, judged: Sequence[ManifestArchive]
) -> Iterator[str]:
    """Rules 7 and 8: compare the rest of the manifest with the catalogue."""
    names = {archive.file_name for archive in judged}
    for archive in manifest.archives:
        entry = case.catalogue.by_file_name(archive.file_name)
        if entry is None or archive.file_name in names or entry.sha256 == archive.sha256:
            continue
        listed = _with_owner(case, archive.sha256)
        yield (
            f"contradicts the catalogue ({entry.confidence}) at {archive.json_path}: "
            f"it gives {archive.file_name} sha256 {listed}, the catalogue {entry.sha256}"
        )


def _vouched_elsewhere(case: Case) -> bool:
    found = case.digest.sha256
    return case.given.sha256 == found or case.catalogue.by_sha256(found) is not None


def _altered(case: Case, manifest: Manifest) -> Iterator[str]:
    pin = pinned_sha256(manifest, case.catalogue.pins)
    if pin is not None and pin != manifest.sha256:
        yield (
            f"{case.given.manifest_name} is not byte for byte as NVIDIA serves it: its sha256 is "
            f"{manifest.sha256}, that of NVIDIA's own {pin}; saving it in an editor is enough"
        )


def _mismatch(case: Case, expected: CatalogueEntry | ManifestArchive) -> Iterator[str]:
    digest = case.digest
    same = digest.sha256 == expected.sha256
    size_agrees = expected.size in (None, digest.size)
    knows_md5 = None not in (expected.md5, digest.md5)
    if same:
        if not size_agrees:
            yield f"its sha256 agrees but it says {expected.size:,} bytes, not {digest.size:,}"
        if knows_md5 and expected.md5 != digest.md5:
            yield f"its sha256 agrees but it says MD5 {expected.md5}, not {digest.md5}"
        return
    text = _hashes_differ(case, expected.sha256)
    if case.catalogue.by_sha256(digest.sha256) is None and not size_agrees:
        text = f"{_size_differs(digest.size, expected.size or 0)}; {text}"
    elif knows_md5 and expected.md5 == digest.md5:
        text += (
            "; the MD5 agrees all the same, so the sha256 it says is wrong or the file is forged"
        )
    yield text


def _size_differs(found: int, expected: int) -> str:
    if found < expected:
        return f"incomplete download: {found:,} of {expected:,} bytes"
    return f"{found:,} bytes, {found - expected:,} more than the {expected:,} expected"


def _hashes_differ(case: Case, expected: str) -> str:
    found = _with_owner(case, case.digest.sha256)
    return f"expected sha256 {_with_owner(case, expected)}, found {found}"


def _with_owner(case: Case, sha256: str) -> str:
    entry = case.catalogue.by_sha256(sha256)
    return f"{sha256} (that is the hash of {entry.file_name})" if entry else sha256


def _shortened(names: Iterable[str]) -> str:
    listed = list(names)
    more = len(listed) - _LISTED_AT_MOST
    return ", ".join(listed[:_LISTED_AT_MOST]) + (f" and {more} more" if more > 0 else "")
