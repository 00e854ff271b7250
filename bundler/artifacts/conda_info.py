"""Reading what a conda package says of itself, without unpacking its payload.

Source: the conda package format (`.conda`: a zip of `pkg-*` and `info-*` archives).
"""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from pathlib import Path

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
"""Bytes; no text of an artifact comes near that."""


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
                tarfile.open(fileobj=stream, mode="r|") as tar,
            ):
                return dict(_texts(tar))
    except READ_FAILURES as error:
        raise ArchiveError(
            f"{path.name} is not a conda package, or damaged",
            why=str(error),
            next_step="build it again from the archive",
        ) from error


def _texts(tar: tarfile.TarFile) -> list[tuple[str, bytes]]:
    texts = []
    for member in tar:
        stream = tar.extractfile(member)
        if stream is not None and member.size <= MAXIMUM_TEXT:
            texts.append((member.name.removeprefix("info/"), stream.read()))
    return texts
