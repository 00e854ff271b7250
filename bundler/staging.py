"""Unpacking an archive once into a private folder, hashing and examining on the way.

Every member is inflated exactly once, by as many threads as there are cores: inflating
and hashing release the interpreter's lock, so that one library is examined while another
is still unpacked.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bundler.archive import Archive
from bundler.authenticode.table import covered_digest
from bundler.binary import read_binary_facts
from bundler.binary_facts import BinaryFacts
from bundler.errors import ArchiveError, Fault, RefusedError
from bundler.folder_lock import FolderLock
from bundler.inventory import common_root, role_of
from bundler.lock import Role
from bundler.stopping import uninterrupted
from bundler.zip_directory import ZipEntry

_PREFIX, _LOCKED = ".cudnn-staging-", ".lock"


@dataclass(frozen=True)
class StagedFile:
    """One member, unpacked.

    Args:
        path: posix path inside the archive, without its root folder.
        entry: where the member lies in the archive, for copying its stream.
        location: where it was unpacked to.
        sha256: lowercase hex SHA-256 of the unpacked bytes.
        facts: what a run-time library says about itself, or why it is none.
        digest: the usual Authenticode digest of a run-time library that is signed.
    """

    path: str
    entry: ZipEntry
    location: Path
    sha256: str
    facts: BinaryFacts | Fault | None
    digest: bytes | None


@contextmanager
def staging_folder(output: Path) -> Iterator[Path]:
    """Make a private folder inside the output folder, and remove it whatever happens.

    Beside the output rather than in the system's temporary folder, which is often a
    small memory disk; the payload is more than a gigabyte. What a killed run left is
    removed first.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(output)
        descriptor, name = tempfile.mkstemp(_LOCKED, _PREFIX, output.absolute())
        os.close(descriptor)
        lock_path = Path(name)
        lock, folder = FolderLock(lock_path), lock_path.with_suffix("")
        lock.take()
        folder.mkdir()
    except OSError as error:
        raise RefusedError(
            f"cannot write to the folder {output}: {error.strerror}",
            next_step="choose another folder, or mend what is in the way: a file, rights, space",
        ) from error
    try:
        yield folder
    except OSError as error:
        if not str(error.filename or "").startswith(str(folder)):
            raise
        raise RefusedError(
            f"cannot use the working folder {folder}: {error.strerror}",
            why=f"another program changed it: {error.filename}",
            next_step=f"leave {output} alone while this runs, and run it again",
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        lock.close()
        _forget(lock_path, folder)


def _forget(lock_path: Path, folder: Path) -> None:
    """Remove a lock whose folder is gone; otherwise the next run finds both by it."""
    if not folder.exists():
        with suppress(OSError):
            lock_path.unlink(missing_ok=True)


def _remove_leftovers(output: Path) -> None:
    """Remove staging folders whose run has ended without doing so; a live one is locked."""
    for entry in list(os.scandir(output)):
        if not (entry.name.startswith(_PREFIX) and entry.name.endswith(_LOCKED)):
            continue
        path = Path(entry.path)
        lock = FolderLock(path)
        is_abandoned = lock.try_take()
        lock.close()
        if is_abandoned:
            shutil.rmtree(path.with_suffix(""), ignore_errors=True)
            _forget(path, path.with_suffix(""))


def stage(
    archive: Archive, folder: Path, met_signature: Callable[[], None]
) -> tuple[StagedFile, ...]:
    """Unpack and hash every member, and read the facts of every run-time library.

    Args:
        archive: structurally sound and trusted.
        folder: an empty folder of ours.
        met_signature: told, from any thread, of each library that is signed.

    Returns:
        the files, sorted by path.

    Raises:
        ArchiveError: members are damaged; lists all of them.
        RefusedError: the disk is full or the folder not writable.
    """
    root = common_root([entry.name for entry in archive.entries])

    def work(entry: ZipEntry) -> StagedFile | Fault:
        staged = _stage_one(archive, entry, entry.name.removeprefix(root), folder)
        if isinstance(staged, StagedFile) and staged.digest is not None:
            met_signature()
        return staged

    largest_first = sorted(archive.entries, key=lambda entry: -entry.compressed_size)
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        with uninterrupted():
            working = pool.map(work, largest_first)
        results = list(working)
    faults = [result for result in results if isinstance(result, Fault)]
    if faults:
        raise ArchiveError(
            f"{archive.name} is damaged",
            next_step="fetch it again; never repair it",
            faults=sorted(faults, key=str),
        )
    archive.check_unchanged()
    staged = [result for result in results if isinstance(result, StagedFile)]
    return tuple(sorted(staged, key=lambda file: file.path))


def _stage_one(archive: Archive, entry: ZipEntry, path: str, folder: Path) -> StagedFile | Fault:
    location = folder.joinpath(*path.split("/"))
    sha256 = hashlib.sha256()
    try:
        location.parent.mkdir(parents=True, exist_ok=True)
        with location.open("xb") as stream:
            for chunk in archive.read(entry):
                sha256.update(chunk)
                stream.write(chunk)
    except ArchiveError as error:
        return error.faults[0] if error.faults else Fault(path, error.what)
    except OSError as error:
        needed = sum(entry.size for entry in archive.entries)
        raise RefusedError(
            f"cannot unpack {path}: {error.strerror}",
            why=f"{folder.parent} is full or not writable",
            next_step=f"make room for {needed:,} bytes there, or choose a folder on another disk",
        ) from error
    if role_of(path) is not Role.RUNTIME:
        return StagedFile(path, entry, location, sha256.hexdigest(), None, None)
    digest = covered_digest(location) if path.lower().endswith(".dll") else None
    facts = read_binary_facts(location)
    return StagedFile(path, entry, location, sha256.hexdigest(), facts, digest)
