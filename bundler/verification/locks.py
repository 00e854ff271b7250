"""The lock that a thing carries, and what of it must be where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bundler.errors import ArchiveError
from bundler.lock import Lock, LockedFile, Role
from bundler.lock_reading import parse_lock
from bundler.names import ReleaseIdentity
from bundler.verification import Expected, FileSet, GivenLock


@dataclass(frozen=True)
class LockChoice:
    """The lock to compare with.

    Args:
        lock: the user's, or the one that the files carry.
        origin: where it came from, in words.
        problem: why there is none.
        carried: which release the files' own lock is for, where that is another one.
    """

    lock: Lock | None
    origin: str
    problem: str = ""
    carried: ReleaseIdentity | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Say why there is no lock, or that the user's is for something else."""
        if self.problem:
            return (f"compared without a lock: {self.problem}",)
        return (f"its own lock is for {self.carried}",) if self.carried else ()


def choose_lock(files: FileSet, path: str, given: GivenLock | None) -> LockChoice:
    """Take the user's lock, or the one that the files carry.

    A folder's own lock may itself be what vanished or was changed; then its other lists
    say so, and the comparison goes on without it.

    Args:
        files: what carries the lock.
        path: where.
        given: the user's.
    """
    own, problem = _own_lock(files, path)
    if given is None:
        return LockChoice(own, "its own lock" if own else "none", problem)
    carried = own.identity if own and own.identity != given.lock.identity else None
    return LockChoice(given.lock, given.name, carried=carried)


def _own_lock(files: FileSet, path: str) -> tuple[Lock | None, str]:
    if path not in files.sizes:
        return None, f"there is no {path}"
    try:
        return parse_lock(files.read(path), path), ""
    except ArchiveError as error:
        return None, error.why or error.what


def expected_libraries(
    lock: Lock, place: Callable[[LockedFile], str], source: str
) -> tuple[Expected, ...]:
    """Give the payload, each file where a kind of artifact has it."""
    return tuple(_expect(file, place(file), source) for file in lock.runtime_files)


def expected_licence(lock: Lock, path: str, source: str) -> tuple[Expected, ...]:
    """Give NVIDIA's licence text, as one file of a fixed name."""
    licences = [file for file in lock.files if file.role is Role.LICENCE]
    return tuple(_expect(file, path, source) for file in licences[:1])


def _expect(file: LockedFile, path: str, source: str) -> Expected:
    return Expected(path, file.sha256, file.size, source)
