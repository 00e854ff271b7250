"""Telling what a path is by its content, and comparing each thing that is found there."""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bundler.artifacts import ArtifactKind
from bundler.artifacts.conda_info import READ_FAILURES
from bundler.artifacts.reading import kind_of
from bundler.errors import ArchiveError, UsageError
from bundler.lock import FILE_NAME
from bundler.verification import GivenLock, Verification
from bundler.verification.app_local import SUMS, verify_app_local
from bundler.verification.archive_tree import is_toolkit, verify_tree
from bundler.verification.artifact_files import (
    ZipFiles,
    damaged_artifact,
    open_artifact_zip,
)
from bundler.verification.comparison import is_cudnn_library
from bundler.verification.conda import Prefix, verify_conda_package, verify_conda_prefix
from bundler.verification.conda_files import read_conda
from bundler.verification.folder_files import scan
from bundler.verification.listings import parse_prefix_record
from bundler.verification.wheel import WheelNames, find_wheels, verify_wheel
from bundler.zip_end import find_directory

LOOKED_FOR = (
    f"an unpacked app-local bundle (with its {FILE_NAME}), a site-packages folder or virtual "
    "environment with a cudnn_runtime_cu* wheel, a conda prefix or unpacked conda package with "
    "cuDNN from this tool, or, with --lock, a CUDA toolkit or an unpacked archive"
)
_SITE_PACKAGES = ("", "Lib/site-packages", "lib/python*/site-packages",
                  "lib64/python*/site-packages")  # fmt: skip


def is_folder(path: Path) -> bool:
    """Tell whether a path is a folder; one that the system cannot even look up is none."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def artifact_kind(path: Path) -> ArtifactKind | None:
    """Tell which artifact a file is by its members, whatever it is called.

    A file that is no zip at all is what its name says, so that a damaged artifact is not
    taken for a damaged archive.
    """
    names = _member_names(path)
    if names is None:
        return kind_of(path)
    tops = {name.split("/", 1)[0] for name in names}
    if "metadata.json" in names and any(name.startswith("pkg-") for name in names):
        return ArtifactKind.CONDA
    if find_wheels(tops):
        return ArtifactKind.WHEEL
    if {FILE_NAME, SUMS} & set(names):
        return ArtifactKind.APP_LOCAL
    return kind_of(path)


def verify_artifact_file(kind: ArtifactKind, path: Path, given: GivenLock | None) -> Verification:
    """Compare everything in an artifact with what it must be.

    Raises:
        ArchiveError: it is damaged, hostile, or not of this tool's making.
    """
    with open_artifact_zip(path) as files:
        return replace(_verify_zip(kind, files, given), sha256=files.sha256)


def _verify_zip(kind: ArtifactKind, files: ZipFiles, given: GivenLock | None) -> Verification:
    name = files.archive.name
    match kind:
        case ArtifactKind.APP_LOCAL:
            return verify_app_local(files, name, given)
        case ArtifactKind.WHEEL:
            return verify_wheel(files, _wheel_names(files), name, given)
        case ArtifactKind.CONDA:
            return verify_conda_package(read_conda(files), name, given)


def verify_folder(folder: Path, given: GivenLock | None) -> tuple[Verification, ...]:
    """Compare everything that is recognised in a folder; there may be several wheels.

    Raises:
        UsageError: nothing is.
        ArchiveError: a list or lock in it is damaged.
    """
    found = list(_recognised(folder, given))
    if not found:
        for child in _children(folder):
            found += _recognised_here(child, given)
    if not found and given is not None:
        found += _with_given_lock(folder, given)
    if not found:
        raise _nothing(folder)
    return tuple(found)


def _member_names(path: Path) -> list[str] | None:
    """List the members of a zip of a sane number of them, without trusting it further."""
    try:
        # Opening a pipe would wait for somebody to write.
        if not path.is_file():
            return None
        with path.open("rb") as stream:

            def read_at(offset: int, length: int) -> bytes:
                stream.seek(offset)
                return stream.read(length)

            find_directory(read_at, stream.seek(0, os.SEEK_END))
            with zipfile.ZipFile(stream) as bundle:
                return bundle.namelist()
    except (ArchiveError, NotImplementedError, struct.error, *READ_FAILURES):
        return None


def _wheel_names(files: ZipFiles) -> WheelNames:
    names = find_wheels({path.split("/", 1)[0] for path in files.sizes})
    if len(names) != 1:
        raise damaged_artifact(files.archive.name, f"it holds {len(names)} wheels of cuDNN")
    return names[0]


def _recognised(folder: Path, given: GivenLock | None) -> Iterator[Verification]:
    yield from _prefixes(folder, given)
    yield from _wheels(folder, given)
    yield from _recognised_here(folder, given)


def _recognised_here(folder: Path, given: GivenLock | None) -> Iterator[Verification]:
    """Recognise what is a folder of its own: an unpacked package or bundle."""
    is_package = all((folder / "info" / name).is_file() for name in ("paths.json", "index.json"))
    has_lock = (folder / FILE_NAME).is_file() and not (folder / "__init__.py").is_file()
    if is_package:
        yield verify_conda_package(scan(folder), str(folder), given)
    elif has_lock or ((folder / SUMS).is_file() and _libraries(folder)):
        yield verify_app_local(scan(folder), str(folder), given)


def _prefixes(folder: Path, given: GivenLock | None) -> Iterator[Verification]:
    for path in sorted(folder.glob("conda-meta/cudnn-*.json")):
        where = f"conda-meta/{path.name}"
        files = scan(folder, ("conda-meta",))
        record = parse_prefix_record(files.read(where), where)
        prefix = Prefix(where, record.files)
        if record.name == "cudnn" and (prefix.lock_path or given):
            yield verify_conda_prefix(scan(folder, prefix.folders), prefix, str(folder), given)


def _wheels(folder: Path, given: GivenLock | None) -> Iterator[Verification]:
    """Find wheels in a folder, in the `site-packages` below it, or that it is a package of."""
    seen = set()
    for pattern in _SITE_PACKAGES:
        for place in sorted(folder.glob(pattern)) if pattern else (folder,):
            real = os.path.realpath(place)
            if real not in seen and place.is_dir():
                seen.add(real)
                for names in find_wheels(_names(place)):
                    yield _wheel(place, names, given)
    if (folder / FILE_NAME).is_file() and (folder / "__init__.py").is_file():
        parent = Path(os.path.realpath(folder)).parent
        mine = [names for names in find_wheels(_names(parent)) if names.package == folder.name]
        yield _wheel(parent, mine[0] if mine else WheelNames(folder.name, None), given)


def _wheel(place: Path, names: WheelNames, given: GivenLock | None) -> Verification:
    folders = (names.package, *([names.dist_info] if names.dist_info else []))
    return verify_wheel(scan(place, folders), names, str(place), given)


def _with_given_lock(folder: Path, given: GivenLock) -> Iterator[Verification]:
    """Recognise what carries no lock: libraries beside a program, a toolkit, an archive's tree."""
    if _libraries(folder):
        yield verify_app_local(scan(folder), str(folder), given)
        return
    files = scan(folder)
    if is_toolkit(files) or any(is_cudnn_library(path) for path in files.sizes):
        yield verify_tree(files, str(folder), given)


def _nothing(folder: Path) -> UsageError:
    files = scan(folder)
    libraries = sorted(path for path in files.sizes if is_cudnn_library(path))
    if libraries:
        return UsageError(
            f"{folder} is a folder with {len(libraries)} cuDNN libraries and no lock to compare "
            "them with",
            why=f"the first is {libraries[0]}; looked for {LOOKED_FOR}",
            next_step="give --lock FILE, the *.lock.json that `build` wrote beside the artifacts",
        )
    return UsageError(
        f"{folder} is a folder in which nothing is recognised",
        why=f"looked for {LOOKED_FOR}",
        next_step="give the folder that was installed into, or an archive or artifact",
    )


def _libraries(folder: Path) -> bool:
    return any(is_cudnn_library(name) for name in _names(folder))


def _children(folder: Path) -> list[Path]:
    return [folder / name for name in _names(folder) if (folder / name).is_dir()]


def _names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be looked into: {error.strerror}",
            next_step="run this as a user who may read it",
        ) from error
