"""A conda package, packed or unpacked, and the prefix that it was installed into.

Source: the conda package format (CEP 35 for `.conda`), paths.json (CEP 34).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bundler.artifacts.conda_recipe import CondaFile, installed_folders, variables
from bundler.lock import FILE_NAME, Lock
from bundler.names import Platform
from bundler.verification import (
    Expected,
    FaultKind,
    FileFault,
    FileSet,
    GivenLock,
    IsOurs,
    Plan,
    Verification,
)
from bundler.verification.artifact_files import damaged_artifact
from bundler.verification.comparison import compare_files, is_cudnn_library
from bundler.verification.listings import ListedFile, parse_index, parse_paths
from bundler.verification.locks import choose_lock, expected_libraries, expected_licence

SHARES = tuple(dict.fromkeys(installed_folders(platform)[1] for platform in Platform))
"""Where our packages put their texts below a prefix, for each system."""

_LICENCE = "info/licenses/LICENSE"
_DESCRIBED = frozenset({
    "about.json", "files", "index.json", "paths.json", "run_exports.json", "hash_input.json",
    "repodata_record.json", "link.json", "git", FILE_NAME, "licenses/LICENSE",
})  # fmt: skip
_DESCRIBED_MORE = re.compile(r"(recipe|tests?|sboms)/.+|[^/]+\.(cdx|spdx)\.json")
"""What engines and software lists put into `info`, where no list vouches for it."""


def verify_conda_package(files: FileSet, place: str, given: GivenLock | None) -> Verification:
    """Compare libraries and licence with the lock, and what is installed with paths.json.

    Args:
        files: both inner archives, as they lie in a package cache.
        place: where it lies, for messages.
        given: the user's lock.

    Raises:
        ArchiveError: it is damaged, or no package of ours.
    """
    for needed in ("info/index.json", "info/paths.json"):
        if needed not in files.sizes:
            raise damaged_artifact(place, f"there is no {needed}")
    listed = parse_paths(files.read("info/paths.json"), "info/paths.json")
    choice = choose_lock(files, _lock_path(files, listed), given)
    if choice.lock is None:
        raise damaged_artifact(place, choice.problem)
    expected = _from_lock(choice.lock) + expected_licence(choice.lock, _LICENCE, "the lock")
    expected += _from_list(listed, "info/paths.json") + _twins(files, listed)
    unlisted = sorted(path for path in files.sizes if _is_described_only(path, expected))
    faults = (*_index_faults(files, choice.lock, listed), *_files_faults(files, listed))
    plan = Plan(expected, _is_ours(listed), faults)
    return Verification(
        what="conda package" if files.is_closed else "conda package, unpacked as in a cache",
        place=place,
        lock=choice.lock,
        lock_origin=choice.origin,
        compared=_compared(choice.lock, listed, "info/paths.json", licence=" and the licence"),
        faults=compare_files(files, plan),
        notes=(*choice.notes, *_unlisted_note(unlisted)),
    )


@dataclass(frozen=True)
class Prefix:
    """What a prefix remembers of our package.

    Args:
        record: posix path of the `conda-meta` file below the prefix.
        listed: what was linked into the prefix.
    """

    record: str
    listed: tuple[ListedFile, ...]

    @property
    def folders(self) -> tuple[str, ...]:
        """Name the folders of the prefix that the package has files in."""
        return tuple(sorted({file.path.rpartition("/")[0] for file in self.listed}))

    @property
    def lock_path(self) -> str | None:
        """Name the lock below the prefix; packages of others have none."""
        paths = {file.path for file in self.listed}
        return next((share + FILE_NAME for share in SHARES if share + FILE_NAME in paths), None)


def verify_conda_prefix(
    files: FileSet, prefix: Prefix, place: str, given: GivenLock | None
) -> Verification:
    """Compare an installed package with its lock and with what the installer noted.

    Args:
        files: those folders of the prefix that the package has files in.
        prefix: what the prefix remembers.
        place: where it lies, for messages.
        given: the user's lock.

    Raises:
        ArchiveError: its lock is unusable though nothing says that it was changed.
    """
    choice = choose_lock(files, prefix.lock_path or FILE_NAME, given)
    expected = _from_lock(choice.lock) if choice.lock else ()
    expected += _from_list(prefix.listed, prefix.record)
    faults = compare_files(files, Plan(expected, _is_ours_in_prefix(prefix)))
    if choice.lock is None and not faults:
        raise damaged_artifact(place, choice.problem)
    return Verification(
        what="conda prefix",
        place=place,
        lock=choice.lock,
        lock_origin=choice.origin,
        compared=_compared(choice.lock, prefix.listed, prefix.record, licence=""),
        faults=faults,
        notes=choice.notes,
    )


def _lock_path(files: FileSet, listed: tuple[ListedFile, ...]) -> str:
    if f"info/{FILE_NAME}" in files.sizes:
        return f"info/{FILE_NAME}"
    return Prefix("", listed).lock_path or f"info/{FILE_NAME}"


def _from_lock(lock: Lock) -> tuple[Expected, ...]:
    folder = installed_folders(lock.identity.platform)[0]
    return expected_libraries(lock, lambda file: folder + file.name, "the lock")


def _from_list(listed: tuple[ListedFile, ...], source: str) -> tuple[Expected, ...]:
    return tuple(
        Expected(file.path, file.sha256, file.size, source, recorded=True)
        for file in listed
        if file.sha256 is not None
    )


def _twins(files: FileSet, listed: tuple[ListedFile, ...]) -> tuple[Expected, ...]:
    """Expect a text of `info` to equal the one of its name that is installed."""
    texts = {file.path.rsplit("/", 1)[-1]: file for file in listed if "/share/" in f"/{file.path}"}
    return tuple(
        Expected(f"info/{name}", file.sha256, file.size, file.path)
        for name, file in texts.items()
        if f"info/{name}" in files.sizes and file.sha256 is not None
    )


def _is_described_only(path: str, expected: tuple[Expected, ...]) -> bool:
    inside = path.removeprefix("info/")
    if inside == path or path in {item.path for item in expected}:
        return False
    return bool(_DESCRIBED_MORE.fullmatch(inside))


def _unlisted_note(unlisted: list[str]) -> tuple[str, ...]:
    return (f"no list vouches for {', '.join(unlisted)}",) if unlisted else ()


def _is_ours(listed: tuple[ListedFile, ...]) -> IsOurs:
    known = {file.path for file in listed} | {f"info/{name}" for name in _DESCRIBED}

    def is_ours(path: str) -> bool:
        described = path.startswith("info/") and _DESCRIBED_MORE.fullmatch(path[5:])
        return path not in known and not described

    return is_ours


def _is_ours_in_prefix(prefix: Prefix) -> IsOurs:
    known = {file.path for file in prefix.listed}
    folders = {path.rpartition("/")[0] for path in known if is_cudnn_library(path)}

    def is_ours(path: str) -> bool:
        beside = path.rpartition("/")[0] in folders and is_cudnn_library(path)
        return path not in known and (beside or path.startswith(SHARES))

    return is_ours


def _index_faults(
    files: FileSet, lock: Lock, listed: tuple[ListedFile, ...]
) -> Iterator[FileFault]:
    """Compare what the package calls itself with the lock and with a digest of its files."""
    where = "info/index.json"
    found = parse_index(files.read(where), where)
    contents = sorted(listed, key=lambda file: file.path)
    digested = [CondaFile(f.path, f.size or 0, f.sha256 or "", b"") for f in contents]
    expected = {
        "name": "cudnn",
        "version": str(lock.identity.version),
        "build": variables(lock.identity, digested)["build_string"],
        "subdir": lock.identity.platform.conda_subdir,
    }
    for key, value in expected.items():
        if found[key] != value:
            what = f"says {key} {found[key]!r}, but lock and files make it {value!r}"
            yield FileFault(where, what, FaultKind.CONTRADICTED)
    stem = getattr(files, "stem", None)
    if stem not in {None, f"{found['name']}-{found['version']}-{found['build']}"}:
        what = f"names another package than the inner archives, which are {stem}"
        yield FileFault(where, what, FaultKind.CONTRADICTED)


def _files_faults(files: FileSet, listed: tuple[ListedFile, ...]) -> Iterator[FileFault]:
    if "info/files" not in files.sizes:
        return
    names = files.read("info/files").decode(errors="replace").split("\n")
    if sorted(filter(None, names)) != sorted(file.path for file in listed):
        what = "lists other files than info/paths.json"
        yield FileFault("info/files", what, FaultKind.CONTRADICTED)


def _compared(
    lock: Lock | None, listed: tuple[ListedFile, ...], source: str, *, licence: str
) -> tuple[str, ...]:
    libraries = (f"{len(lock.runtime_files)} libraries{licence}",) if lock else ()
    return (*libraries, f"{len(listed)} files of {source}")
