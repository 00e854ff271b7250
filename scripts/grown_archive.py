"""Archives of any size, from the stand-in libraries of the tests: for measuring growth."""

from __future__ import annotations

import hashlib
import random
import zipfile
from pathlib import Path
from typing import IO

import pefile

_ROOT = "cudnn-windows-x86_64-8.9.5.29_cuda11-archive"
_FIXTURES = Path(__file__).parent.parent / "tests" / "fixtures" / "cudnn8" / "8.9.5.29"
_LARGEST, _LARGEST_SHARE = "cudnn_cnn_infer64_8.dll", 0.52
"""As in NVIDIA's archive, where one library holds half of the bytes."""

_PIECE = 64 * 1024
_HEADER = b"#define CUDNN_MAJOR 8\n#define CUDNN_MINOR 9\n#define CUDNN_PATCHLEVEL 5\n"


def write_archive(path: Path, payload: int) -> str:
    """Write an archive whose libraries have about a given size together.

    Args:
        path: of the new zip.
        payload: bytes.

    Returns:
        its SHA-256, lowercase hex.
    """
    libraries = sorted(_FIXTURES.glob("*.dll"))
    others = (1 - _LARGEST_SHARE) / (len(libraries) - 1)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(_member("LICENSE"), b"Stand-in for NVIDIA's licence text.\n")
        archive.writestr(_member("include/cudnn_version.h"), _HEADER)
        for number, library in enumerate(libraries):
            share = _LARGEST_SHARE if library.name == _LARGEST else others
            with archive.open(_member(f"bin/{library.name}"), "w", force_zip64=True) as stream:
                _write_grown(stream, library, int(payload * share), random.Random(number))  # noqa: S311
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _member(path: str) -> zipfile.ZipInfo:
    """Name a member, with a date that does not change."""
    info = zipfile.ZipInfo(f"{_ROOT}/{path}", (2023, 9, 13, 20, 57, 18))
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def _write_grown(stream: IO[bytes], library: Path, size: int, source: random.Random) -> None:
    """Write a library whose last section goes on for as long as is wanted."""
    image = pefile.PE(data=library.read_bytes())
    last = image.sections[-1]
    alignment = image.OPTIONAL_HEADER.SectionAlignment
    added = max(0, size - len(image.__data__)) // alignment * alignment
    begin = last.PointerToRawData + last.SizeOfRawData
    last.SizeOfRawData += added
    last.Misc_VirtualSize = last.SizeOfRawData
    image.OPTIONAL_HEADER.SizeOfImage += added
    data = bytes(image.write())
    stream.write(data[:begin])
    while added > 0:
        piece = source.randbytes(min(_PIECE, added) // 2)
        stream.write(piece + bytes(len(piece)))
        added -= 2 * len(piece)
    stream.write(data[begin:])
