"""Recognising a finished artifact and reading the lock it carries."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from bundler.artifacts import Artifact, ArtifactKind
from bundler.artifacts.conda_info import MAXIMUM_TEXT, READ_FAILURES, read_conda_info
from bundler.artifacts.tar_members import tar_members
from bundler.compression import open_zstd_reader
from bundler.errors import ArchiveError, UsageError
from bundler.integrity import hash_file
from bundler.lock import FILE_NAME, Lock
from bundler.lock_reading import parse_lock

_ENDINGS = {
    "-applocal.zip": ArtifactKind.APP_LOCAL,
    ".whl": ArtifactKind.WHEEL,
    ".conda": ArtifactKind.CONDA,
}


def kind_of(path: Path) -> ArtifactKind | None:
    """Tell which artifact a file is by its name, or that it is none."""
    return next((kind for end, kind in _ENDINGS.items() if path.name.endswith(end)), None)


def recognise(path: Path) -> ArtifactKind:
    """Tell which artifact a file is by its name.

    Raises:
        UsageError: there is no such file, or it is no artifact.
    """
    kind = kind_of(path)
    try:
        if kind is not None and path.is_file():
            return kind
        what = "is not an artifact of this tool" if path.exists() else "does not exist"
    except OSError as error:
        what = f"cannot be opened: {error.strerror}"
    raise UsageError(
        f"{path} {what}",
        next_step="give a *-applocal.zip, a *.whl or a *.conda that `build` wrote",
    )


def open_artifact(path: Path) -> Artifact:
    """Recognise and hash an artifact.

    Raises:
        UsageError: there is no such file, or it is no artifact.
    """
    kind, found = recognise(path), hash_file(path)
    return Artifact(kind, path, found.size, found.sha256)


def read_artifact_lock(kind: ArtifactKind, path: Path) -> Lock:
    """Read the lock inside an artifact.

    Raises:
        ArchiveError: the file is damaged or carries none.
    """
    try:
        return parse_lock(_lock_bytes(kind, path), path.name)
    except READ_FAILURES as error:
        raise _damaged(path, str(error)) from error


def _damaged(path: Path, why: str) -> ArchiveError:
    return ArchiveError(
        f"{path.name} is damaged or was not made by this tool",
        why=why,
        next_step="build it again from the archive",
    )


def _lock_bytes(kind: ArtifactKind, path: Path) -> bytes:
    if kind is ArtifactKind.CONDA:
        return read_conda_info(path).get(FILE_NAME) or _installed_lock(path)
    import_name = path.name.split("-", 1)[0]
    inside = {ArtifactKind.APP_LOCAL: FILE_NAME, ArtifactKind.WHEEL: f"{import_name}/{FILE_NAME}"}
    with zipfile.ZipFile(path) as bundle, bundle.open(inside[kind]) as stream:
        return _bounded(stream)


def _installed_lock(path: Path) -> bytes:
    """Take the lock from the payload; only our own writer puts it into `info` too."""
    for name, stream in _conda_members(path):
        if name.endswith(f"share/cudnn/{FILE_NAME}"):
            return _bounded(stream)
    raise KeyError(FILE_NAME)


def _bounded(stream: IO[bytes]) -> bytes:
    data = stream.read(MAXIMUM_TEXT + 1)
    if len(data) > MAXIMUM_TEXT:
        message = f"its {FILE_NAME} is longer than {MAXIMUM_TEXT} bytes"
        raise ValueError(message)
    return data


def _conda_members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(path) as package:
        (name,) = (name for name in package.namelist() if name.startswith("pkg-"))
        with (
            package.open(name) as member,
            open_zstd_reader(member) as stream,
        ):
            for entry, content in tar_members(stream):
                yield entry.name, content
