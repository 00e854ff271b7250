"""An app-local bundle: the zip, or its files beside an application's own."""

from __future__ import annotations

from bundler.lock import FILE_NAME
from bundler.verification import Expected, FileSet, GivenLock, IsOurs, Plan, Verification
from bundler.verification.artifact_files import damaged_artifact
from bundler.verification.comparison import compare_files, is_cudnn_library
from bundler.verification.listings import parse_sums
from bundler.verification.locks import choose_lock, expected_libraries, expected_licence
from bundler.verification.own_copies import in_words, probe_file

SUMS = "SHA256SUMS"


def verify_app_local(files: FileSet, place: str, given: GivenLock | None) -> Verification:
    """Compare libraries and licence with the lock, and everything with SHA256SUMS.

    Without SHA256SUMS, as where only the libraries were dropped beside a program, the
    libraries alone are compared.

    Raises:
        ArchiveError: it is damaged, or carries no lock and none was given.
    """
    choice = choose_lock(files, FILE_NAME, given)
    if files.is_closed and SUMS not in files.sizes:
        raise damaged_artifact(place, f"there is no {SUMS} in it")
    sums = _sums(files)
    if choice.problem and (files.is_closed or not sums):
        raise damaged_artifact(place, choice.problem)
    lock, source, notes = choice.lock, "the lock", [*choice.notes]
    expected: tuple[Expected, ...] = ()
    if lock is not None:
        expected = expected_libraries(lock, lambda file: file.name, source)
        expected += expected_licence(lock, "LICENSE", source) if sums else ()
        probe = probe_file(lock.identity, "")
        notes += [in_words(files, probe)] if probe and probe[0].path in files.sizes else []
    libraries = len(lock.runtime_files) if lock else 0
    faults = compare_files(files, Plan(expected + sums, _is_ours(files)))
    return Verification(
        what="app-local bundle" if files.is_closed else _folder_words(files, sums),
        place=place,
        lock=lock,
        lock_origin=choice.origin,
        compared=_compared(libraries, len(sums)),
        faults=faults,
        notes=tuple(filter(None, notes)),
    )


def _sums(files: FileSet) -> tuple[Expected, ...]:
    if SUMS not in files.sizes:
        return ()
    return tuple(
        Expected(file.path, file.sha256 or "", file.size, SUMS, recorded=True)
        for file in parse_sums(files.read(SUMS), SUMS)
    )


def _is_ours(files: FileSet) -> IsOurs:
    """An application has its own files beside the bundle; another cuDNN is none of them."""
    if files.is_closed:
        return lambda path: path != SUMS
    return lambda path: "/" not in path and is_cudnn_library(path)


def _folder_words(files: FileSet, sums: tuple[Expected, ...]) -> str:
    if not sums:
        return "folder with the libraries of an app-local bundle"
    own = {item.path for item in sums} | {SUMS}
    beside = len(files.sizes.keys() - own)
    return f"app-local bundle, unpacked{' beside other files' if beside else ''}"


def _compared(libraries: int, sums: int) -> tuple[str, ...]:
    if not sums:
        return (f"{libraries} libraries",)
    return (f"{libraries} libraries and the licence", f"{sums} files of {SUMS}")
