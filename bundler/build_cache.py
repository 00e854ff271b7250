"""Finished builds, kept for the next time the same archive is built in the same way.

A kept build is found by everything that went into it: the archive's hash, its witnesses,
the options, and the tool itself. Every byte is hashed again before it is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from bundler.artifacts import Artifact, ArtifactKind
from bundler.errors import ArchiveError
from bundler.integrity import FoundFile, hash_file
from bundler.lock import Lock
from bundler.lock_reading import parse_lock
from bundler.outputs import Outputs
from bundler.reproducible import CHUNK, link_or_copy

LIMIT: Final = 8 * 1024**3
"""Bytes that all kept builds may take, about four of them."""

_ABANDONED_AFTER = 3600.0
_ENTRY, _LOCK = "build.json", "lock.json"
_UNFINISHED = ".unfinished-"


@dataclass(frozen=True)
class KeptBuild:
    """What is worth keeping of a build.

    Args:
        lock: the facts of the release.
        notes: what the archive's file name got wrong.
        artifacts: where they lie in the output folder.
    """

    lock: Lock
    notes: tuple[str, ...]
    artifacts: tuple[Artifact, ...]


def build_key(inputs: Mapping[str, object]) -> str:
    """Hash everything that a build depends on.

    Args:
        inputs: values of JSON, or records whose `repr` says all of them.

    Returns:
        lowercase hex SHA-256.
    """
    return hashlib.sha256(json.dumps(inputs, sort_keys=True, default=repr).encode()).hexdigest()


class BuildCache:
    """A folder of kept builds.

    Args:
        folder: made when first needed, for this user only.
        limit: bytes that all of them may take.
    """

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self._folder = folder
        self._limit = limit

    def restore(self, key: str, output: Path, scratch: Path) -> KeptBuild | None:
        """Put a kept build's artifacts where they belong.

        Files that are there already and are right stay as they are. A build that was
        damaged in the cache is removed from it.

        Args:
            key: from `build_key`.
            output: the folder for artifacts.
            scratch: a folder on its disk.

        Returns:
            The build, or nothing when none is kept.

        Raises:
            RefusedError: the output cannot be written.
        """
        place = self._folder / key
        if not self._is_ours() or not place.exists():
            return None
        try:
            build = _read_entry(place, output)
            with Outputs(output, scratch) as outputs, ThreadPoolExecutor() as pool:
                list(pool.map(lambda artifact: _restore(artifact, place, outputs), build.artifacts))
        except (_UnusableError, ArchiveError, ValueError, KeyError, TypeError):
            self._remove(place)
            return None
        with suppress(OSError):
            os.utime(place / _ENTRY)
        return build

    def keep(self, key: str, build: KeptBuild, output: Path) -> None:
        """Keep a build, unless the disk refuses; the oldest ones make room.

        Args:
            key: from `build_key`.
            build: just finished.
            output: the folder its artifacts lie in.
        """
        size = sum(artifact.size for artifact in build.artifacts)
        if size > self._limit or not self._is_ours():
            return
        with suppress(OSError):
            unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self._folder))
            try:
                _write_entry(unfinished, build, output)
                self._make_room(size)
                unfinished.rename(self._folder / key)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)

    def _is_ours(self) -> bool:
        """Make the folder, and see that no other user could have put something into it."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = self._folder.stat()
        except OSError:
            return False
        return sys.platform == "win32" or (
            status.st_uid == os.getuid() and not status.st_mode & 0o022
        )

    def _make_room(self, size: int) -> None:
        kept = sorted(self._kept(), key=lambda pair: pair[1].stat().st_mtime)
        sizes = {place: sum(file.stat().st_size for file in place.iterdir()) for place, _ in kept}
        for place, _ in kept:
            if sum(sizes.values()) + size <= self._limit:
                break
            self._remove(place)
            del sizes[place]

    def _kept(self) -> Iterator[tuple[Path, Path]]:
        """Yield each kept build with its description; what a killed run left is removed."""
        for place in self._folder.iterdir():
            if not place.name.startswith(_UNFINISHED):
                yield place, place / _ENTRY
            elif time.time() - place.stat().st_mtime > _ABANDONED_AFTER:
                shutil.rmtree(place, ignore_errors=True)

    def _remove(self, place: Path) -> None:
        # Out of sight first: a build whose files go one by one must not be found.
        unseen = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self._folder))
        with suppress(OSError):
            place.rename(unseen / "removed")
        shutil.rmtree(unseen, ignore_errors=True)


class _UnusableError(Exception):
    """A kept build is not there, or not what it was."""


def _restore(artifact: Artifact, place: Path, outputs: Outputs) -> None:
    expected = FoundFile(artifact.size, artifact.sha256)
    with suppress(OSError):
        if artifact.path.stat().st_size == artifact.size and hash_file(artifact.path) == expected:
            return
    try:
        stream = (place / artifact.kind).open("rb")
    except OSError as error:
        raise _UnusableError from error
    name = artifact.path.relative_to(outputs.folder).as_posix()
    with stream, outputs.open(name) as output:
        while chunk := stream.read(CHUNK):
            output.write(chunk)
    if FoundFile(output.size, output.sha256) != expected:
        raise _UnusableError


def _write_entry(place: Path, build: KeptBuild, output: Path) -> None:
    for artifact in build.artifacts:
        link_or_copy(artifact.path, place / artifact.kind)
    artifacts = [
        {
            "kind": artifact.kind,
            "name": artifact.path.relative_to(output).as_posix(),
            "size": artifact.size,
            "sha256": artifact.sha256,
        }
        for artifact in build.artifacts
    ]
    (place / _LOCK).write_bytes(build.lock.to_bytes())
    document = {"artifacts": artifacts, "notes": list(build.notes)}
    (place / _ENTRY).write_text(json.dumps(document, indent=1), encoding="utf-8")


def _read_entry(place: Path, output: Path) -> KeptBuild:
    try:
        document = json.loads((place / _ENTRY).read_bytes())
        lock = parse_lock((place / _LOCK).read_bytes(), _LOCK)
    except OSError as error:
        raise _UnusableError from error
    artifacts = [
        Artifact(
            ArtifactKind(fields["kind"]),
            output / _inside(fields["name"]),
            int(fields["size"]),
            str(fields["sha256"]),
        )
        for fields in document["artifacts"]
    ]
    return KeptBuild(lock, tuple(map(str, document["notes"])), tuple(artifacts))


def _inside(name: str) -> PurePosixPath:
    """Pass a path that stays below its folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name:
        raise _UnusableError
    return path
