"""What verifications amount to: nothing, or one error with all faults and their remedies."""

from __future__ import annotations

from collections.abc import Sequence

from bundler.errors import ReleaseError
from bundler.verification import FaultKind, Verification

_REMEDIES = {
    FaultKind.MISSING: "install or unpack it again, whole",
    FaultKind.VANISHED: "files that were written and are gone were most often taken by an "
    "antivirus program: on Windows look into Windows Security, Protection history (or run "
    "`Get-MpThreatDetection` in PowerShell), restore them and allow the folder, or install again",
    FaultKind.CHANGED: "do not use what was changed; install it again, or build it again from "
    "the archive",
    FaultKind.EXTRA: "remove what does not belong here, above all another cuDNN's libraries",
    FaultKind.MISPLACED: "move what lies in the wrong place; libraries are not looked for in "
    "folders below the right one",
    FaultKind.WRONG_CASE: "give files their exact names",
    FaultKind.UNREADABLE: "close the programs that use the files, or run this as a user who may "
    "read them",
    FaultKind.LINK: "put real files where links lead out of the folder",
    FaultKind.CONTRADICTED: "the lists in it contradict each other, so somebody edited it: get "
    "it again from whoever built it",
}


def places_in_words(count: int) -> str:
    """Count differences."""
    return f"{count} places" if count > 1 else "one place"


def verdict(found: Sequence[Verification]) -> ReleaseError | None:
    """Sum up all faults, with a remedy for each kind of them."""
    faults = [fault for item in found for fault in item.faults]
    if not faults:
        return None
    kinds = {fault.kind for fault in faults}
    places = [item.place for item in found if item.faults]
    return ReleaseError(
        f"{', '.join(places)} differs from its lock in {places_in_words(len(faults))}",
        next_step="; ".join(remedy for kind, remedy in _REMEDIES.items() if kind in kinds),
        faults=faults,
    )
