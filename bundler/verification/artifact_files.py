"""An artifact as a set of files, hashed while it is inflated; nothing is unpacked.

The zip's directory is read as strictly as an archive's, and no member is inflated beyond
what it declares.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bundler.archive import Archive, open_archive
from bundler.artifacts.conda_info import MAXIMUM_TEXT
from bundler.errors import ArchiveError, Fault, MissingError
from bundler.integrity import FoundFile
from bundler.verification import FileFault, Unreadable
from bundler.zip_directory import ZipEntry


@dataclass(frozen=True)
class ZipFiles:
    """The members of a zip, as `FileSet` asks for them.

    Args:
        archive: the open zip.
        sha256: of the whole file, lowercase hex.
        entries: its members by name.
        sizes: what the members declare to unpack to.
    """

    archive: Archive
    sha256: str
    entries: Mapping[str, ZipEntry]
    sizes: Mapping[str, int]
    is_closed: bool = field(default=True, init=False)

    @property
    def blocked(self) -> Mapping[str, FileFault]:
        """Give nothing: the directory's reader refuses links and devices."""
        return {}

    def read(self, path: str) -> bytes:
        """Read one small member; see `FileSet`."""
        entry = self.entries[path]
        if entry.size > MAXIMUM_TEXT:
            raise damaged_artifact(self.archive.name, too_long(path))
        return b"".join(member_chunks(self.archive, entry))

    def digests(self, paths: Collection[str]) -> dict[str, FoundFile | Unreadable]:
        """Hash members on all cores; see `FileSet`."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = list(pool.map(lambda path: _digest(self.archive, self.entries[path]), paths))
        faults = [
            fault for item in found if isinstance(item, ArchiveError) for fault in item.faults
        ]
        if faults:
            raise damaged_artifact(self.archive.name, "", faults)
        pairs = zip(paths, found, strict=True)
        return {path: item for path, item in pairs if not isinstance(item, ArchiveError)}


@contextmanager
def open_artifact_zip(path: Path) -> Iterator[ZipFiles]:
    """Open an artifact's zip and hash it whole.

    Raises:
        UsageError: it cannot be opened.
        ArchiveError: it is damaged or hostile.
    """
    with ExitStack() as stack:
        try:
            archive, digest = stack.enter_context(open_archive(path))
        except (ArchiveError, MissingError) as error:
            why = "; ".join(filter(None, (error.what, error.why)))
            raise damaged_artifact(path.name, why, error.faults) from error
        entries = {entry.name: entry for entry in archive.entries}
        sizes = {entry.name: entry.size for entry in archive.entries}
        yield ZipFiles(archive, digest.sha256, entries, sizes)


def damaged_artifact(name: str, why: str, faults: Iterable[Fault] = ()) -> ArchiveError:
    """Say that an artifact's file cannot be what this tool wrote."""
    return ArchiveError(
        f"{name} is damaged or was not made by this tool",
        why=why,
        next_step="copy it again from where it was built, or build it again from the archive",
        faults=faults,
    )


def member_chunks(archive: Archive, entry: ZipEntry) -> Iterator[bytes]:
    """Inflate a member; damage is the artifact's, not an archive's."""
    try:
        yield from archive.read(entry)
    except ArchiveError as error:
        raise damaged_artifact(archive.name, error.why, error.faults) from error


def _digest(archive: Archive, entry: ZipEntry) -> FoundFile | ArchiveError:
    sha256, size = hashlib.sha256(), 0
    try:
        for chunk in member_chunks(archive, entry):
            sha256.update(chunk)
            size += len(chunk)
    except ArchiveError as error:
        return error
    return FoundFile(size, sha256.hexdigest())


def too_long(path: str) -> str:
    """Say that a text of an artifact is none."""
    return f"its {path} is longer than {MAXIMUM_TEXT:,} bytes"
