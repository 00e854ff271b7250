"""Where a PE file keeps its signatures, and the digest of all that they cover.

Source: Microsoft's "PE Format", "The Attribute Certificate Table", and "Windows Authenticode
Portable Executable Signature Format", "Calculating the PE Image Hash".
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MAXIMUM_TABLE = 1024 * 1024
"""Bytes; NVIDIA's tables have about ten thousand."""

USUAL_ALGORITHM = "sha256"
_CHUNK = 1024 * 1024
_CHECKSUM, _SECURITY = 64, 4
# By the optional header's magic: where its count of data directories lies.
_DIRECTORY_COUNT = {0x10B: 92, 0x20B: 108}
_OUTSIDE = "has a signature that lies outside of the file"
_REVISION, _SIGNED_DATA = 0x0200, 2


@dataclass(frozen=True)
class CertificateTable:
    """Where signatures lie and what they leave out.

    Args:
        uncovered: start and end offsets, in order, of what no signature covers: the checksum,
            the table's entry in the header, and the table.
        signatures: DER of a ContentInfo each; none when the file is not signed.
    """

    uncovered: tuple[tuple[int, int], ...]
    signatures: tuple[bytes, ...]


def read_table(stream: BinaryIO, size: int) -> CertificateTable | str:
    """Find the signatures of a PE file with bounded memory.

    Args:
        stream: of the file, seekable.
        size: of the file, bytes.

    Returns:
        the table, or what is wrong with it in words that follow the file's name.
    """
    try:
        checksum, entry = _header_offsets(stream)
        stream.seek(entry)
        start, length = struct.unpack("<2L", stream.read(8))
    except (struct.error, LookupError):
        return "has headers that cannot be read"
    fields = (checksum, checksum + 4), (entry, entry + 8)
    if length == 0:
        return CertificateTable(fields, ())
    misplaced = _misplaced(start, length, size) if start >= entry + 8 else _OUTSIDE
    if misplaced:
        return misplaced
    stream.seek(start)
    signatures = _signatures(stream.read(length))
    if isinstance(signatures, str):
        return signatures
    return CertificateTable((*fields, (start, size)), signatures)


def _misplaced(start: int, length: int, size: int) -> str:
    """Say what is wrong with where the table lies: it must be small and the end of the file."""
    if start + length > size:
        return _OUTSIDE
    if start + length < size:
        return f"has bytes behind its signature that nobody signed: {size - start - length}"
    if length > MAXIMUM_TABLE:
        return f"has a signature of {length} bytes; more than {MAXIMUM_TABLE} are refused"
    return ""


def _header_offsets(stream: BinaryIO) -> tuple[int, int]:
    """Give the offsets of the checksum and of the table's entry among the data directories."""
    stream.seek(0x3C)
    optional = struct.unpack("<L", stream.read(4))[0] + 24
    stream.seek(optional)
    header = stream.read(112)
    count_at = _DIRECTORY_COUNT[struct.unpack_from("<H", header)[0]]
    if struct.unpack_from("<L", header, count_at)[0] <= _SECURITY:
        raise LookupError
    return optional + _CHECKSUM, optional + count_at + 4 + _SECURITY * 8


def _signatures(table: bytes) -> tuple[bytes, ...] | str:
    found, position = [], 0
    while position < len(table):
        if len(table) - position < 8:
            return "has a signature that is cut off"
        length, revision, kind = struct.unpack_from("<L2H", table, position)
        if length < 8 or length > len(table) - position:
            return "has a signature that is cut off"
        if (revision, kind) != (_REVISION, _SIGNED_DATA):
            return f"has a signature of a kind that is not known ({revision:#x}, {kind})"
        signature = _der(table[position + 8 : position + length])
        if isinstance(signature, str):
            return signature
        found.append(signature)
        # Entries begin at multiples of eight.
        position += length + -length % 8
    return tuple(found)


def _der(data: bytes) -> bytes | str:
    """Cut one DER value out; only padding may follow, for nobody signed what else is there."""
    long_form = data[1] & 0x7F if len(data) > 1 and data[1] > 0x80 else 0
    if data[:1] != b"\x30" or len(data) < 2 + long_form or data[1] == 0x80:
        return "has a signature that cannot be read (it does not begin as one)"
    body = int.from_bytes(data[2 : 2 + long_form], "big") if long_form else data[1]
    end = 2 + long_form + body
    if end > len(data):
        return "has a signature that is cut off"
    if len(data) - end > 7 or any(data[end:]):
        return f"hides bytes in its signature that nobody signed: {len(data) - end}"
    return data[:end]


def covered_digest(path: Path) -> bytes | None:
    """Hash what the signatures of a file cover, if it has sound tables and is signed at all.

    Returns:
        the SHA-256 that nearly every signature names.
    """
    with path.open("rb") as stream:
        table = read_table(stream, path.stat().st_size)
        if isinstance(table, str) or not table.signatures:
            return None
        return authenticode_digest(stream, table, USUAL_ALGORITHM)


def authenticode_digest(stream: BinaryIO, table: CertificateTable, algorithm: str) -> bytes:
    """Hash what the signatures cover, with constant memory.

    Args:
        stream: of the file, seekable.
        table: of the same file.
        algorithm: `sha256` or another name that hashlib knows.
    """
    digest, position = hashlib.new(algorithm), 0
    for start, end in table.uncovered:
        stream.seek(position)
        for offset in range(position, start, _CHUNK):
            digest.update(stream.read(min(_CHUNK, start - offset)))
        position = end
    return digest.digest()
