"""Comparing what was built, unpacked or installed with the lists that say what it must be.

Everything that can be verified is a set of files with paths: inside a zip, inside a conda
package, or below a folder. One comparison serves them all; one module per kind of thing
says which files it must have. Nothing is ever written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from bundler.errors import Fault
from bundler.integrity import FoundFile
from bundler.lock import Lock

IsOurs = Callable[[str], bool]
"""Says whether a file that is in no list is a fault."""


class FaultKind(StrEnum):
    """The ways in which a file can be wrong; each has its own remedy."""

    MISSING = "missing"
    VANISHED = "vanished"
    CHANGED = "changed"
    EXTRA = "extra"
    MISPLACED = "misplaced"
    WRONG_CASE = "wrong-case"
    UNREADABLE = "unreadable"
    LINK = "link"
    CONTRADICTED = "contradicted"


@dataclass(frozen=True)
class FileFault(Fault):
    """One file that is wrong, and how.

    Args:
        kind: how.
    """

    kind: FaultKind


@dataclass(frozen=True)
class Unreadable:
    """A file that is there and cannot be read.

    Args:
        reason: the system's words.
    """

    reason: str


class FileSet(Protocol):
    """Files with posix paths, wherever they lie."""

    @property
    def is_closed(self) -> bool:
        """Say whether nothing but our own files may be here, as in an artifact."""
        ...

    @property
    def sizes(self) -> Mapping[str, int]:
        """Give every file, and its size in bytes."""
        ...

    @property
    def blocked(self) -> Mapping[str, FileFault]:
        """Give files and folders that lead elsewhere or cannot be looked into, and why."""
        ...

    def read(self, path: str) -> bytes:
        """Read one small file.

        Raises:
            ArchiveError: it is damaged, too long to be a text, or cannot be read.
        """
        ...

    def digests(self, paths: Collection[str]) -> dict[str, FoundFile | Unreadable]:
        """Hash files; those that are gone meanwhile are left out.

        Raises:
            ArchiveError: the file that holds them is damaged.
        """
        ...


@dataclass(frozen=True)
class Expected:
    """A file that a list says must be there.

    Args:
        path: posix path in the file set.
        sha256: lowercase hex SHA-256.
        size: bytes, where the list has it.
        source: the list, in words.
        recorded: the list was written when the files were, so a file that is not there
            was there once.
    """

    path: str
    sha256: str
    size: int | None
    source: str
    recorded: bool = False


@dataclass(frozen=True)
class Plan:
    """What a file set is compared with.

    Args:
        expected: what must be there; a file may be in several lists, the one that is
            trusted most first.
        is_ours: whether a file that is in no list is a fault.
        faults: what the lists themselves have wrong.
    """

    expected: tuple[Expected, ...]
    is_ours: IsOurs
    faults: tuple[FileFault, ...] = ()


@dataclass(frozen=True)
class Verification:
    """What one thing was recognised as, and what came of comparing it.

    Args:
        what: it is, in words.
        place: where it lies.
        lock: what it was compared with, unless its own cannot be read.
        lock_origin: where that lock came from, in words.
        compared: what was compared, in words such as `7 libraries`.
        faults: every difference.
        notes: what could not be compared, or is worth knowing.
        sha256: of an artifact's file, lowercase hex; a folder has none.
    """

    what: str
    place: str
    lock: Lock | None
    lock_origin: str
    compared: tuple[str, ...]
    faults: tuple[FileFault, ...]
    notes: tuple[str, ...] = ()
    sha256: str | None = None


@dataclass(frozen=True)
class GivenLock:
    """A lock that the user named, to be trusted instead of the one that a thing carries.

    Args:
        lock: what it says.
        name: of its file.
    """

    lock: Lock
    name: str
