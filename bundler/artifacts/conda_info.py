"""Reading what a conda package says of itself, without unpacking its payload.

Source: the conda package format (`.conda`: a zip of `pkg-*` and `info-*` archives).
"""

from __future__ import annotations

import json
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bundler.artifacts.tar_members import tar_members
from bundler.compression import ZstdError, open_zstd_reader
from bundler.errors import ArchiveError

READ_FAILURES = (
    OSError,
    KeyError,
    ValueError,
    EOFError,
    RuntimeError,  # zipfile's word for encrypted members and unknown methods
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    ZstdError,
)
"""What the libraries for zip, tar and zstd raise when a file is damaged."""

MAXIMUM_TEXT = 16 * 1024 * 1024
"""Bytes; all texts of an artifact together come nowhere near that."""


def read_conda_info(path: Path) -> dict[str, bytes]:
    """Read the files of a package's `info` folder, by their path below it.

    Raises:
        ArchiveError: the file is not a conda package, or damaged.
    """
    try:
        with zipfile.ZipFile(path) as package:
            (name,) = (name for name in package.namelist() if name.startswith("info-"))
            with (
                package.open(name) as member,
                open_zstd_reader(member) as stream,
            ):
                return dict(_texts(stream))
    except READ_FAILURES as error:
        raise ArchiveError(
            f"{path.name} is not a conda package, or damaged",
            why=str(error),
            next_step="build it again from the archive",
        ) from error


@dataclass(frozen=True)
class CondaIndex:
    """A package's own `index.json`.

    Args:
        name: of the package.
        version: of the package.
        build: the build string.
        subdir: the channel's folder that it belongs to, such as `win-64`.
        document: everything, for a channel's index.
    """

    name: str
    version: str
    build: str
    subdir: str
    document: Mapping[str, object]

    @property
    def file_name(self) -> str:
        """What a channel must call the package, whatever the file is called."""
        return f"{self.name}-{self.version}-{self.build}.conda"


def read_conda_index(path: Path) -> CondaIndex:
    """Read what a package is from inside it.

    Raises:
        ArchiveError: the file is not a conda package, or says nonsense of itself.
    """
    data = read_conda_info(path).get("index.json", b"")
    try:
        document = json.loads(data)
        return CondaIndex(
            name=_file_name_part(document["name"]),
            version=_file_name_part(document["version"]),
            build=_file_name_part(document["build"]),
            subdir=_file_name_part(document["subdir"]),
            document=document,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ArchiveError(
            f"{path.name} has no usable info/index.json",
            why=str(error),
            next_step="build it again from the archive",
        ) from error


def _file_name_part(text: str) -> str:
    """Pass what may stand in a file or folder name of a channel."""
    if re.fullmatch(r"\w[\w.-]*", text, re.ASCII) is None:
        message = f"{text!r} cannot be part of a file name"
        raise ValueError(message)
    return text


def _texts(tar: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    left = MAXIMUM_TEXT
    for member, stream in tar_members(tar):
        if member.size <= MAXIMUM_TEXT:
            left -= member.size
            if left < 0:
                message = f"its texts have more than {MAXIMUM_TEXT:,} bytes in all"
                raise ValueError(message)
            yield member.name.removeprefix("info/"), stream.read()
