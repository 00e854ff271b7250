"""Files that this tool puts into artifacts, against its own copies of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from bundler import __version__
from bundler.errors import MissingError
from bundler.names import ReleaseIdentity
from bundler.probe import PROBE_NAME, probe_executable, probe_library
from bundler.resources import activation_sources
from bundler.verification import Expected, FileSet

SOURCE = f"version {__version__} of this tool"


def package_files(identity: ReleaseIdentity, folder: str) -> tuple[Expected, ...]:
    """Give what this version puts into a wheel's import package, libraries and lock apart.

    Args:
        identity: of the release.
        folder: of the import package, with its slash.
    """
    copies = dict(activation_sources())
    try:
        name, data = probe_library(identity)
        copies[name] = data
    except MissingError:
        pass  # the wheel was built by a version with probes for more platforms
    return tuple(_expect(folder, copies))


def probe_file(identity: ReleaseIdentity, folder: str) -> tuple[Expected, ...]:
    """Give the probe that this version puts beside the libraries."""
    try:
        data = probe_executable(identity)
    except MissingError:
        return ()
    return tuple(_expect(folder, {PROBE_NAME[identity.platform.is_windows]: data}))


def differing(files: FileSet, copies: tuple[Expected, ...]) -> tuple[str, ...]:
    """Name the files that are not this version's own; absent ones are no matter here."""
    there = [copy for copy in copies if files.sizes.get(copy.path) == copy.size]
    found = files.digests([copy.path for copy in there])
    equal = {c.path for c in there if getattr(found.get(c.path), "sha256", "") == c.sha256}
    return tuple(copy.path for copy in copies if copy.path not in equal)


def in_words(files: FileSet, copies: tuple[Expected, ...]) -> str:
    """Say whether an artifact's own files are this version's."""
    others = differing(files, copies)
    if not others:
        return ""
    return f"not the copy of {SOURCE}, perhaps of another version: {', '.join(others)}"


def _expect(folder: str, copies: Mapping[str, bytes]) -> Iterator[Expected]:
    for name, data in sorted(copies.items()):
        yield Expected(folder + name, hashlib.sha256(data).hexdigest(), len(data), SOURCE)
