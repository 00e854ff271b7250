"""A wheel: the file, or what an installer made of it in a `site-packages` folder.

No installer checks RECORD while it installs, and none looks at the files again.

Source: recording installed projects (PEP 376, PEP 610), the binary distribution format
(PEP 427).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from bundler import __version__
from bundler.artifacts.wheel import library_folder
from bundler.lock import FILE_NAME, Lock
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
from bundler.verification.listings import ListedFile, parse_record
from bundler.verification.locks import LockChoice, choose_lock, expected_libraries, expected_licence
from bundler.verification.own_copies import in_words, package_files

DIST_INFO = re.compile(r"(cudnn_runtime_cu\d+)-([0-9.]+)\.dist-info")
PACKAGE = re.compile(r"cudnn_runtime_cu\d+")
_SIGNATURES = frozenset({"RECORD", "RECORD.jws", "RECORD.p7s"})
_INSTALLERS = frozenset({"INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json",
                         "uv_build.json"})  # fmt: skip


@dataclass(frozen=True)
class WheelNames:
    """The two folders of an installed wheel, without slashes.

    Args:
        package: the import package.
        dist_info: its metadata, or nothing where that is gone.
    """

    package: str
    dist_info: str | None

    @property
    def record(self) -> str:
        """Name the list of installed files."""
        return f"{self.dist_info}/RECORD"


def find_wheels(names: Iterable[str]) -> tuple[WheelNames, ...]:
    """Find our wheels among the names of a folder's or zip's top level."""
    there = set(names)
    packages = {name for name in there if PACKAGE.fullmatch(name)}
    infos = {match[1]: name for name in sorted(there) if (match := DIST_INFO.fullmatch(name))}
    return tuple(WheelNames(name, infos.get(name)) for name in sorted(packages | infos.keys()))


def verify_wheel(
    files: FileSet, names: WheelNames, place: str, given: GivenLock | None
) -> Verification:
    """Compare libraries and licence with the lock, and everything with RECORD.

    Args:
        files: the wheel's members, or those two folders of `site-packages`.
        names: of the folders.
        place: where it lies, for messages.
        given: the user's lock.

    Raises:
        ArchiveError: it is damaged, or carries neither lock nor RECORD.
    """
    choice = choose_lock(files, f"{names.package}/{FILE_NAME}", given)
    has_record = names.dist_info is not None and names.record in files.sizes
    if files.is_closed and not has_record:
        raise damaged_artifact(place, "there is no RECORD in it")
    if choice.problem and (files.is_closed or not has_record):
        raise damaged_artifact(place, choice.problem)
    listed = parse_record(files.read(names.record), names.record) if has_record else ()
    plan = Plan(
        expected=(
            *_from_lock(choice, names),
            *_own_copies(files, choice, names),
            *_from_record(listed),
        ),
        is_ours=_is_ours(files, names, listed),
        faults=(*_record_faults(files, names, listed), *_name_faults(choice, names)),
    )
    return Verification(
        what="wheel" if files.is_closed else "installed wheel",
        place=place,
        lock=choice.lock,
        lock_origin=choice.origin,
        compared=_compared(choice.lock, listed),
        faults=compare_files(files, plan),
        notes=tuple(filter(None, (*choice.notes, _foreign_copies(files, choice, names)))),
    )


def _from_lock(choice: LockChoice, names: WheelNames) -> tuple[Expected, ...]:
    lock, source = choice.lock, "the lock"
    if lock is None:
        return ()
    folder = library_folder(lock.identity).split("/", 1)[1]
    libraries = expected_libraries(
        lock, lambda file: f"{names.package}/{folder}{file.name}", source
    )
    if names.dist_info is None:
        return libraries
    return libraries + expected_licence(lock, f"{names.dist_info}/licenses/LICENSE", source)


def _from_record(listed: Iterable[ListedFile]) -> tuple[Expected, ...]:
    return tuple(
        Expected(file.path, file.sha256, file.size, "RECORD", recorded=True)
        for file in listed
        if file.sha256 is not None
    )


def _own_copies(files: FileSet, choice: LockChoice, names: WheelNames) -> tuple[Expected, ...]:
    """Expect this version's modules and probe in a wheel that says this version made it."""
    wheel = f"{names.dist_info}/WHEEL"
    if choice.lock is None or names.dist_info is None or wheel not in files.sizes:
        return ()
    generator = f"Generator: cudnn-bundler {__version__}".encode()
    if generator not in files.read(wheel).splitlines():
        return ()
    return package_files(choice.lock.identity, f"{names.package}/")


def _foreign_copies(files: FileSet, choice: LockChoice, names: WheelNames) -> str:
    if choice.lock is None or _own_copies(files, choice, names):
        return ""
    return in_words(files, package_files(choice.lock.identity, f"{names.package}/"))


def _is_ours(files: FileSet, names: WheelNames, listed: tuple[ListedFile, ...]) -> IsOurs:
    if not listed:
        return is_cudnn_library
    known = {file.path for file in listed} | {names.record}
    known |= {f"{names.dist_info}/{name}" for name in _SIGNATURES}
    if files.is_closed:
        return lambda path: path not in known
    known |= {f"{names.dist_info}/{name}" for name in _INSTALLERS}
    return lambda path: path not in known and "__pycache__" not in path.split("/")


def _record_faults(
    files: FileSet, names: WheelNames, listed: Iterable[ListedFile]
) -> Iterable[FileFault]:
    """Find files that RECORD lists without saying what they must be."""
    may_lack = {f"{names.dist_info}/{name}" for name in _SIGNATURES}
    for file in listed:
        compiled = not files.is_closed and file.path.endswith(".pyc")
        if file.sha256 is None and file.path not in may_lack and not compiled:
            what = "is listed in RECORD without a hash, so anything could stand there"
            yield FileFault(file.path, what, FaultKind.CONTRADICTED)
    if names.dist_info is None or (names.record not in files.sizes and not files.is_closed):
        where = names.record if names.dist_info else names.package
        what = "has no RECORD; only what the lock lists was compared"
        yield FileFault(where, what, FaultKind.MISSING)


def _name_faults(choice: LockChoice, names: WheelNames) -> Iterable[FileFault]:
    if choice.lock is None:
        return
    identity = choice.lock.identity
    expected = f"{identity.import_name}-{identity.version}.dist-info"
    if names.dist_info not in {None, expected}:
        what = f"is named so, yet the lock is that of {identity}"
        yield FileFault(f"{names.dist_info}", what, FaultKind.CONTRADICTED)


def _compared(lock: Lock | None, listed: tuple[ListedFile, ...]) -> tuple[str, ...]:
    phrases = []
    if lock is not None:
        phrases.append(f"{len(lock.runtime_files)} libraries and the licence")
    hashed = sum(file.sha256 is not None for file in listed)
    return (*phrases, f"{hashed} files of RECORD") if hashed else tuple(phrases)
