"""A tree that an archive was unpacked or copied into: its own folder, or a CUDA toolkit.

Such a tree carries no lock, so the user names one. Toolkits keep import libraries in
`lib/x64` whatever the archive did, and newer archives have one folder more than they.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from bundler.lock import Lock, LockedFile, Role
from bundler.verification import Expected, FileSet, GivenLock, IsOurs, Plan, Verification
from bundler.verification.comparison import compare_files, is_cudnn_library

_TOOLKIT = re.compile(
    r"version\.(json|txt)|bin/nvcc(\.exe)?|bin/(x64/)?cudart64_.*|nvvm/.+", re.IGNORECASE
)
_HEADER = re.compile(r"(include|include/x86_64)/cudnn[a-z0-9_]*\.h")
_IMPORT_LIBRARY = re.compile(r"lib/(x64/)?cudnn[a-z0-9_]*\.lib", re.IGNORECASE)
_INNER = frozenset({"bin", "include", "lib", "x64"})
"""Folders of the tree itself: `bin/bin` is a mistake, not a tree that begins in `bin`."""
_DEVELOPMENT = {Role.HEADER, Role.IMPORT_LIBRARY, Role.RUNTIME}


def is_toolkit(files: FileSet) -> bool:
    """Say whether a folder is a CUDA toolkit's."""
    return any(_TOOLKIT.fullmatch(path) for path in files.sizes)


def verify_tree(files: FileSet, place: str, given: GivenLock) -> Verification:
    """Compare every file of the archive with its place below a folder.

    Args:
        files: what lies below the folder.
        place: where it lies, for messages.
        given: the lock, which such a tree does not carry.
    """
    toolkit = is_toolkit(files)
    root = "" if toolkit else _root(files, given.lock)
    expected = tuple(_expected(files, given.lock, root, toolkit=toolkit))
    counts = ((role, _count(given.lock, role)) for role in Role)
    return Verification(
        what="CUDA toolkit" if toolkit else "unpacked archive",
        place=place,
        lock=given.lock,
        lock_origin=given.name,
        compared=tuple(
            f"{count} {role} files"
            for role, count in counts
            if count and (not toolkit or role in _DEVELOPMENT)
        ),
        faults=compare_files(files, Plan(expected, _is_ours(root))),
    )


def _root(files: FileSet, lock: Lock) -> str:
    """Find the folder that the archive's tree begins in, by most of its files."""
    paths = {file.path for file in lock.files}
    counts = Counter(
        found[: -len(path)]
        for path in paths
        for found in files.sizes
        if found == path or found.endswith(f"/{path}")
    )
    roots = [root for root in counts if root.rstrip("/").rpartition("/")[2] not in _INNER]
    return min(roots, key=lambda root: (-counts[root], len(root)), default="")


def _expected(files: FileSet, lock: Lock, root: str, *, toolkit: bool) -> Iterator[Expected]:
    for file in lock.files:
        if not toolkit or file.role in _DEVELOPMENT:
            path = _toolkit_path(files, file) if toolkit else root + file.path
            yield Expected(path, file.sha256, file.size, "the lock")


def _toolkit_path(files: FileSet, file: LockedFile) -> str:
    """Give the place where a toolkit has the file: where it lies, or where it belongs."""
    places = {
        Role.RUNTIME: ("bin/", "bin/x64/"),
        Role.HEADER: ("include/",),
        Role.IMPORT_LIBRARY: ("lib/x64/", "lib/"),
    }[file.role]
    paths = [place + file.name for place in places]
    return next((path for path in paths if path in files.sizes), paths[0])


def _is_ours(root: str) -> IsOurs:
    """Another cuDNN's files beside ours would be mixed with them."""

    def is_ours(path: str) -> bool:
        inside = path.removeprefix(root)
        in_search_path = inside.rpartition("/")[0] in {"bin", "bin/x64"}
        return bool(
            (in_search_path and is_cudnn_library(inside))
            or _HEADER.fullmatch(inside)
            or _IMPORT_LIBRARY.fullmatch(inside)
        )

    return is_ours


def _count(lock: Lock, role: Role) -> int:
    return sum(file.role is role for file in lock.files)
