"""The lock beside this file: which libraries there are, in what order, and what they need."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from ._errors import DamagedError

FILE_NAME = "cudnn.lock.json"
_FIRST_WITH_ENGINES = 9
REINSTALL = "install this package again (pip install --force-reinstall --no-deps)"


@dataclass(frozen=True)
class LockedFile:
    """One file that belongs into the library folder.

    Args:
        name: without a folder.
        size: bytes.
        sha256: lowercase hex.
        file_version: of its version resource, if it has one.
    """

    name: str
    size: int
    sha256: str
    file_version: str | None


@dataclass(frozen=True)
class Need:
    """A library that is opened by name while running and is not part of cuDNN.

    Args:
        name: a file name, or a pattern with `%d` in it.
        needed_by: names of the libraries that open it.
        kind: `required`, `optional`, `driver` or `unknown`.
        reason: what goes wrong without it.
        provider: where it usually comes from, or empty.
    """

    name: str
    needed_by: tuple[str, ...]
    kind: str
    reason: str
    provider: str


@dataclass(frozen=True)
class Lock:
    """What this package is.

    Args:
        version: of cuDNN, four numbers.
        cuda: the CUDA label, such as `11`, or `10.1`.
        platform: such as `windows-x86_64`.
        files: what belongs into the library folder.
        load_order: names of libraries, each after those that it links to.
        needs: run-time needs.
    """

    version: str
    cuda: str
    platform: str
    files: tuple[LockedFile, ...]
    load_order: tuple[str, ...]
    needs: tuple[Need, ...]

    @property
    def is_windows(self) -> bool:
        """Say whether the libraries are Windows ones."""
        return self.platform.startswith("windows-")

    @property
    def has_engines(self) -> bool:
        """Say whether it is cuDNN 9 or later, which moved its kernels into engine libraries."""
        return int(self.version.split(".")[0]) >= _FIRST_WITH_ENGINES

    @property
    def api_number(self) -> int:
        """What `cudnnGetVersion` must answer: 8905 up to cuDNN 8, 90101 from 9 on."""
        major, minor, patch = ([int(part) for part in self.version.split(".")] + [0, 0])[:3]
        return major * (10000 if self.has_engines else 1000) + minor * 100 + patch

    @property
    def main_library(self) -> str:
        """The library that programs link to; every other one is behind it."""
        return next(name for name in self.load_order if _is_main(name))


def _is_main(name: str) -> bool:
    return name.lower().startswith(("cudnn64_", "libcudnn.so"))


def read_lock(folder: str) -> Lock:
    """Read the lock of the package in a folder.

    Raises:
        DamagedError: there is none, or it is not one.
    """
    path = os.path.join(folder, FILE_NAME)
    try:
        with open(path, encoding="utf-8") as file:
            return _parse(json.load(file))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedError(
            f"{path} cannot be read", f"{type(error).__name__}: {error}", REINSTALL
        ) from error


def _parse(document: dict[str, Any]) -> Lock:
    identity = document["identity"]
    return Lock(
        version=identity["version"],
        cuda=identity["cuda"],
        platform=identity["platform"],
        files=tuple(_file(item) for item in document["files"] if item["role"] == "runtime"),
        load_order=tuple(document["load_order"]),
        needs=tuple(_need(item) for item in document["needs"]),
    )


def _file(item: dict[str, Any]) -> LockedFile:
    library = item.get("library") or {}
    name = item["path"].rsplit("/", 1)[-1]
    return LockedFile(name, item["size"], item["sha256"], library.get("file_version"))


def _need(item: dict[str, Any]) -> Need:
    return Need(
        name=item["name"],
        needed_by=tuple(item["needed_by"]),
        kind=item["kind"],
        reason=item["reason"],
        provider=item.get("provider") or "",
    )
