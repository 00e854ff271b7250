"""A folder as a set of files: names first, contents only where a comparison asks for them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from bundler.artifacts.conda_info import MAXIMUM_TEXT
from bundler.errors import ArchiveError, UsageError
from bundler.integrity import FoundFile, hash_file
from bundler.verification import FaultKind, FileFault, Unreadable

MAXIMUM_ENTRIES = 200_000


@dataclass(frozen=True)
class FolderFiles:
    """What lies below a folder, as `FileSet` asks for it.

    Args:
        root: the folder, without links in its own path.
        sizes: bytes by posix path below it.
        blocked: what leads out of the folder or cannot be looked into.
    """

    root: Path
    sizes: Mapping[str, int]
    blocked: Mapping[str, FileFault]
    is_closed: bool = field(default=False, init=False)

    def read(self, path: str) -> bytes:
        """Read one small file; see `FileSet`."""
        try:
            with (self.root / path).open("rb") as stream:
                data = stream.read(MAXIMUM_TEXT + 1)
        except OSError as error:
            raise _unreadable(self.root / path, error.strerror or str(error)) from error
        if len(data) > MAXIMUM_TEXT:
            raise _unreadable(self.root / path, f"it is longer than {MAXIMUM_TEXT:,} bytes")
        return data

    def digests(self, paths: Collection[str]) -> dict[str, FoundFile | Unreadable]:
        """Hash files on all cores with constant memory; see `FileSet`."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = pool.map(self._digest, paths)
            return {path: item for path, item in zip(paths, found, strict=True) if item}

    def _digest(self, path: str) -> FoundFile | Unreadable | None:
        try:
            return hash_file(self.root / path)
        except FileNotFoundError:
            return None
        except OSError as error:
            return Unreadable(error.strerror or str(error))


def scan(root: Path, folders: Iterable[str] = ("",)) -> FolderFiles:
    """List what lies below a folder; links are followed only while they stay inside.

    Args:
        root: the folder.
        folders: posix paths below it to look into, all of it unless they are given.

    Raises:
        UsageError: there is far more than any bundle could be part of.
    """
    scanner = _Scanner(Path(os.path.realpath(root)))
    for folder in folders:
        scanner.enter(folder)
    return FolderFiles(scanner.root, scanner.sizes, scanner.blocked)


class _Scanner:
    """Walks folders without recursion and without walking any of them twice."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sizes: dict[str, int] = {}
        self.blocked: dict[str, FileFault] = {}
        self._entered: set[Path] = set()
        self._entries = 0

    def enter(self, folder: str) -> None:
        """Walk one folder below the root, and those below it."""
        pending = [folder]
        while pending:
            pending += self._walk(pending.pop())

    def _walk(self, folder: str) -> list[str]:
        """Note the files of one folder and give its folders."""
        real = Path(os.path.realpath(self.root / folder))
        if real in self._entered or not real.is_dir():
            return []
        self._entered.add(real)
        try:
            with os.scandir(real) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self._block(folder, f"cannot be read: {error.strerror}", FaultKind.UNREADABLE)
            return []
        self._entries += len(found)
        if self._entries > MAXIMUM_ENTRIES:
            raise UsageError(
                f"{self.root} holds more than {MAXIMUM_ENTRIES:,} files",
                next_step="give the folder that the libraries lie in",
            )
        prefix = f"{folder}/" if folder else ""
        return [prefix + entry.name for entry in found if self._is_folder(entry, prefix)]

    def _is_folder(self, entry: os.DirEntry[str], prefix: str) -> bool:
        """Note a file, or say that it is a folder to walk."""
        path = prefix + entry.name
        try:
            if self._leads_out(entry, path):
                return False
            if entry.is_dir():
                return True
            if entry.is_file():
                self.sizes[path] = entry.stat().st_size
            else:
                what = "is no regular file" if not entry.is_symlink() else "is a broken link"
                self._block(path, what, FaultKind.UNREADABLE)
        except OSError as error:
            self._block(path, f"cannot be read: {error.strerror}", FaultKind.UNREADABLE)
        return False

    def _leads_out(self, entry: os.DirEntry[str], path: str) -> bool:
        """Note a link that leaves the root, whose target may change unseen."""
        is_junction = getattr(entry, "is_junction", lambda: False)
        if not entry.is_symlink() and not is_junction():
            return False
        target = Path(os.path.realpath(entry.path))
        if target.is_relative_to(self.root):
            return False
        self._block(path, f"is a link to {target}, outside {self.root}", FaultKind.LINK)
        if target.is_file():
            self.sizes[path] = target.stat().st_size
        return True

    def _block(self, path: str, what: str, kind: FaultKind) -> None:
        self.blocked[path] = FileFault(path, what, kind)


def _unreadable(path: Path, why: str) -> ArchiveError:
    return ArchiveError(
        f"{path} cannot be read",
        why=why,
        next_step="close the programs that use it, or run this as a user who may read it",
    )
