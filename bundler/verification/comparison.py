"""The one comparison: files that lists expect against files that are there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from bundler.integrity import FoundFile
from bundler.inventory import CUDNN_LIBRARY
from bundler.verification import Expected, FaultKind, FileFault, FileSet, Plan, Unreadable

_LINUX_LIBRARY = re.compile(r"libcudnn[a-z0-9_]*\.so[.0-9]*")


def is_cudnn_library(path: str) -> bool:
    """Say whether a file is named as cuDNN's libraries are, on Windows or Linux."""
    name = path.rsplit("/", 1)[-1]
    return bool(CUDNN_LIBRARY.fullmatch(name) or _LINUX_LIBRARY.fullmatch(name))


def compare_files(files: FileSet, plan: Plan) -> tuple[FileFault, ...]:
    """List every difference between a file set and what it must be.

    Raises:
        ArchiveError: the file that holds the set is damaged.
    """
    wanted = _by_path(plan.expected)
    absent = [path for path in wanted if path not in files.sizes]
    spelt = _other_spellings(absent, files.sizes.keys() - wanted.keys())
    strays = set(_candidates([wanted[path][0] for path in absent], files, wanted.keys()))
    readable = {path for path in wanted if _is_worth_reading(files, path, wanted[path][0])}
    seen = _Seen(files, files.digests(readable | strays | set(spelt.values())))
    faults = [*plan.faults]
    for path, sources in wanted.items():
        faults += seen.faults_of(sources, spelt.get(path), strays - set(spelt.values()))
    explained = set(spelt.values()) | seen.misplaced
    unlisted = sorted(files.sizes.keys() - wanted.keys() - explained)
    faults += [_extra(path) for path in unlisted if plan.is_ours(path)]
    return tuple(dict.fromkeys(faults))


class _Seen:
    """What was read, and which strays turned out to be expected files in a wrong place."""

    def __init__(self, files: FileSet, found: Mapping[str, FoundFile | Unreadable]) -> None:
        self._files = files
        self._found = found
        self.misplaced: set[str] = set()

    def faults_of(
        self, sources: list[Expected], spelling: str | None, strays: Iterable[str]
    ) -> Iterator[FileFault]:
        """Yield what is wrong with one expected file.

        Args:
            sources: what the lists say of it.
            spelling: a path that differs from its own in case only.
            strays: files in no list that may be it.
        """
        expected = sources[0]
        blocked = self._blocked(expected.path)
        if blocked is not None:
            yield FileFault(expected.path, blocked.what, blocked.kind)
        if spelling is not None:
            what = f"is spelt {spelling} here, which only some systems take for the same"
            yield FileFault(expected.path, what, FaultKind.WRONG_CASE)
        place = spelling or expected.path
        if place in self._files.sizes:
            yield from self._content_faults(sources, place)
        elif blocked is None:
            yield self._absence(expected, sources, strays)

    def _blocked(self, path: str) -> FileFault | None:
        """Find what stands in the way: the file itself or a folder above it."""
        parts = path.split("/")
        above = ("/".join(parts[:length]) for length in range(len(parts), 0, -1))
        return next((self._files.blocked[p] for p in above if p in self._files.blocked), None)

    def _content_faults(self, sources: list[Expected], place: str) -> Iterator[FileFault]:
        expected, *others = sources
        found, size = self._found.get(place), self._files.sizes[place]
        if isinstance(found, Unreadable):
            what = f"is there and cannot be read: {found.reason}"
            yield FileFault(expected.path, what, FaultKind.UNREADABLE)
        elif isinstance(found, FoundFile) and found.sha256 != expected.sha256:
            yield FileFault(expected.path, _change(sources, found), FaultKind.CHANGED)
        elif found is None and size != expected.size:
            what = f"has {size:,} bytes instead of {expected.size:,} ({expected.source})"
            yield FileFault(expected.path, what, FaultKind.CHANGED)
        elif found is None:
            yield FileFault(expected.path, "vanished while it was read", FaultKind.VANISHED)
        else:
            yield from (_contradiction(expected, o) for o in others if o.sha256 != expected.sha256)

    def _absence(
        self, expected: Expected, sources: Iterable[Expected], strays: Iterable[str]
    ) -> FileFault:
        same = sorted(path for path in strays if self._is(path, expected))
        if same:
            self.misplaced.update(same)
            what = f"is not here; the same bytes lie at {', '.join(same)}"
            return FileFault(expected.path, what, FaultKind.MISPLACED)
        lists = [source.source for source in sources if source.recorded]
        if lists and not self._files.is_closed:
            what = f"was written, for {lists[0]} lists it, and is gone"
            return FileFault(expected.path, what, FaultKind.VANISHED)
        return FileFault(expected.path, "is missing", FaultKind.MISSING)

    def _is(self, path: str, expected: Expected) -> bool:
        found = self._found.get(path)
        return isinstance(found, FoundFile) and found.sha256 == expected.sha256


def _by_path(expected: Iterable[Expected]) -> dict[str, list[Expected]]:
    wanted: dict[str, list[Expected]] = {}
    for item in expected:
        wanted.setdefault(item.path, []).append(item)
    return wanted


def _other_spellings(absent: Iterable[str], unlisted: Iterable[str]) -> dict[str, str]:
    by_key = {path.casefold(): path for path in unlisted}
    return {path: by_key[path.casefold()] for path in absent if path.casefold() in by_key}


def _candidates(absent: Iterable[Expected], files: FileSet, listed: Iterable[str]) -> Iterator[str]:
    """Find files that may be absent ones elsewhere: of the same size, or of the same name."""
    wanted = list(absent)
    sizes = {item.size for item in wanted if item.size is not None}
    names = {_name(item.path) for item in wanted if item.size is None}
    for path in files.sizes.keys() - set(listed):
        if files.sizes[path] in sizes or _name(path) in names:
            yield path


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1].casefold()


def _is_worth_reading(files: FileSet, path: str, expected: Expected) -> bool:
    """Say whether to hash a file; in an artifact one of another length may be a bomb."""
    size = files.sizes.get(path)
    if size is None:
        return False
    return not files.is_closed or expected.size in {None, size}


def _contradiction(trusted: Expected, other: Expected) -> FileFault:
    what = (
        f"is what {trusted.source} says, but {other.source} says SHA-256 {other.sha256} "
        f"instead of {trusted.sha256}"
    )
    return FileFault(trusted.path, what, FaultKind.CONTRADICTED)


def _change(sources: list[Expected], found: FoundFile) -> str:
    expected, *others = sources
    if found.size == 0:
        return f"is empty; {expected.source} says SHA-256 {expected.sha256}"
    lengths = ""
    if expected.size is not None and expected.size != found.size:
        lengths = f"has {found.size:,} bytes instead of {expected.size:,}, "
    hashes = f"has SHA-256 {found.sha256} instead of {expected.sha256} ({expected.source})"
    agreeing = [other.source for other in others if other.sha256 == found.sha256]
    agreement = f"; {agreeing[0]} agrees with the file" if agreeing else ""
    return f"{lengths}{hashes}{agreement}"


def _extra(path: str) -> FileFault:
    what = "is in no list of what belongs here"
    if is_cudnn_library(path):
        what = "is not part of this release, and cuDNN may open it by name"
    return FileFault(path, what, FaultKind.EXTRA)
