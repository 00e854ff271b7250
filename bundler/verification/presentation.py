"""Verifications in words, and as a JSON document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bundler.presentation import error_document
from bundler.verification import Verification
from bundler.verification.verdict import places_in_words, verdict


def verification_lines(found: Sequence[Verification]) -> Iterator[str]:
    """Say what was recognised, what it was compared with, and what was compared."""
    for item in found:
        differs = f"differs in {places_in_words(len(item.faults))}"
        yield f"{differs if item.faults else 'verified'}: {item.place}"
        yield f"  is      {item.what}{f', {item.lock.identity}' if item.lock else ''}"
        if item.sha256 is not None:
            yield f"  SHA-256 {item.sha256}"
        yield f"  against {item.lock_origin}"
        yield (
            f"  equal   {', '.join(item.compared)}"
            if not item.faults
            else (f"  of      {', '.join(item.compared)}")
        )
        yield from (f"  note    {note}" for note in item.notes)


def verification_document(found: Sequence[Verification]) -> dict[str, object]:
    """Give everything as one JSON document, whatever came of it."""
    error = verdict(found)
    document: dict[str, object] = {
        "verified": error is None,
        "found": [_item_document(item) for item in found],
    }
    return document if error is None else {**error_document(error), **document}


def _item_document(item: Verification) -> dict[str, object]:
    identity = item.lock.identity if item.lock else None
    return {
        "what": item.what,
        "place": item.place,
        "identity": identity
        and {
            "version": str(identity.version),
            "cuda": identity.cuda,
            "platform": str(identity.platform),
        },
        "sha256": item.sha256,
        "lock": item.lock_origin,
        "compared": list(item.compared),
        "faults": [vars(fault) for fault in item.faults],
        "notes": list(item.notes),
    }
