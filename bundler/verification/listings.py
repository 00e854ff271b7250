"""The lists of files that artifacts and installers keep: RECORD, SHA256SUMS, paths.json.

They come from outside: a path that leaves its folder, a hash that is none or JSON of
another shape makes the whole list worthless, and every fault in it is listed.

Source: recording installed projects (PEP 376, PEP 427), `sha256sum -c`, conda's paths.json
(CEP 34) and the `conda-meta` records of a prefix.
"""

from __future__ import annotations

import base64
import binascii
import csv
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bundler import member_names
from bundler.errors import ArchiveError, Fault
from bundler.json_fields import SHA256, FieldReader
from bundler.strict_json import JsonNode, JsonValue, kind_of, read_json_object

MAXIMUM_ROWS = 10_000
_Row = TypeVar("_Row")
_SUM = re.compile(r"([0-9a-f]{64}) [ *](.+)")
_DIGITS = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True)
class ListedFile:
    """One file of a list.

    Args:
        path: posix path.
        sha256: lowercase hex SHA-256, or nothing where the list leaves it open.
        size: bytes, or nothing.
    """

    path: str
    sha256: str | None
    size: int | None


def parse_record(data: bytes, where: str) -> tuple[ListedFile, ...]:
    """Read a wheel's RECORD.

    Raises:
        ArchiveError: it is not one, or hostile.
    """
    try:
        rows = list(csv.reader(_text(data).splitlines(), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise _worthless(where, str(error)) from error
    return _collect(where, [row for row in rows if row], _record_row)


def parse_sums(data: bytes, where: str) -> tuple[ListedFile, ...]:
    """Read SHA256SUMS.

    Raises:
        ArchiveError: it is not one, or hostile.
    """
    try:
        lines = _text(data).splitlines()
    except UnicodeDecodeError as error:
        raise _worthless(where, str(error)) from error
    return _collect(where, lines, _sum_line)


def parse_paths(data: bytes, where: str) -> tuple[ListedFile, ...]:
    """Read the `info/paths.json` of a conda package.

    Raises:
        ArchiveError: it is not one, or hostile.
    """
    return _paths(_top(data, where), where)


@dataclass(frozen=True)
class PrefixRecord:
    """What a prefix remembers of an installed package.

    Args:
        name: of the package.
        files: what was linked into the prefix.
    """

    name: str
    files: tuple[ListedFile, ...]


def parse_prefix_record(data: bytes, where: str) -> PrefixRecord:
    """Read a file of `conda-meta`.

    Raises:
        ArchiveError: it is not one, or hostile.
    """
    top, reader = _top(data, where), FieldReader()
    name = reader.text(top, "name")
    paths = reader.child(top, "paths_data") if "paths_data" in top.value else None
    if reader.faults or paths is None:
        raise _worthless(where, "it lists no paths", reader.faults)
    return PrefixRecord(name, _paths(paths, where))


def parse_index(data: bytes, where: str) -> dict[str, str]:
    """Read name, version, build and subdir of a conda package's `info/index.json`.

    Raises:
        ArchiveError: it is not one.
    """
    top, reader = _top(data, where), FieldReader()
    fields = {key: reader.text(top, key) for key in ("name", "version", "build", "subdir")}
    if reader.faults:
        raise _worthless(where, "", reader.faults)
    return fields


def _text(data: bytes) -> str:
    return data.decode("utf-8")


def _top(data: bytes, where: str) -> JsonNode:
    try:
        document = read_json_object(data, where)
    except ArchiveError as error:
        raise _worthless(where, error.why or error.what) from error
    if document.faults:
        raise _worthless(where, "", document.faults)
    return document.top


def _record_row(row: list[str]) -> ListedFile:
    if len(row) != 3:
        message = f"has {len(row)} fields instead of 3"
        raise ValueError(message)
    path, digest, size = row
    if size and not _DIGITS.fullmatch(size):
        message = f"has {member_names.shown(size)!r} as its size"
        raise ValueError(message)
    return ListedFile(path, _hex(digest) if digest else None, int(size) if size else None)


def _hex(digest: str) -> str:
    algorithm, _, value = digest.partition("=")
    if algorithm != "sha256":
        message = f"has a hash of the kind {member_names.shown(algorithm)!r}, not sha256"
        raise ValueError(message)
    try:
        raw = base64.b64decode(value + "=" * (-len(value) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        message = f"has a hash that is not base64: {error}"
        raise ValueError(message) from error
    if len(raw) != 32:
        message = f"has a SHA-256 of {len(raw)} bytes"
        raise ValueError(message)
    return raw.hex()


def _sum_line(line: str) -> ListedFile:
    match = _SUM.fullmatch(line)
    if match is None:
        message = f"holds the line {member_names.shown(line)!r}"
        raise ValueError(message)
    return ListedFile(match[2], match[1], None)


def _paths(node: JsonNode, where: str) -> tuple[ListedFile, ...]:
    rows = node.value.get("paths")
    if not isinstance(rows, list):
        raise _worthless(where, f"its paths must be an array, not {kind_of(rows)}")
    files = [row for row in rows if not (isinstance(row, dict) and _is_folder(row))]
    return _collect(where, files, _path_row)


def _is_folder(row: dict[str, JsonValue]) -> bool:
    return row.get("path_type") == "directory"


def _path_row(row: JsonValue) -> ListedFile:
    if not isinstance(row, dict):
        message = f"holds {kind_of(row)} where a path must be"
        raise ValueError(message)  # noqa: TRY004 - one class for everything wrong in a list
    # Where the installer rewrote a text for its prefix, the second hash is the right one.
    digest = row.get("sha256_in_prefix", row.get("sha256"))
    path, size = row.get("_path"), row.get("size_in_bytes")
    if not isinstance(path, str):
        message = f"has {kind_of(path)} as its _path"
        raise ValueError(message)  # noqa: TRY004
    if digest is not None and not (isinstance(digest, str) and SHA256.pattern.fullmatch(digest)):
        message = f"{member_names.shown(path)} has a sha256 that is none"
        raise ValueError(message)
    if size is not None and (not isinstance(size, int) or isinstance(size, bool) or size < 0):
        message = f"{member_names.shown(path)} has a size that is none"
        raise ValueError(message)
    # The size is that of the package's file, which a rewritten text no longer has.
    return ListedFile(path, digest, None if "sha256_in_prefix" in row else size)


def _collect(
    where: str, rows: Sequence[_Row], parse: Callable[[_Row], ListedFile]
) -> tuple[ListedFile, ...]:
    """Parse every row, and list all that is wrong before giving up."""
    if len(rows) > MAXIMUM_ROWS:
        raise _worthless(where, f"it lists {len(rows):,} files")
    files: list[ListedFile] = []
    faults: list[Fault] = []
    for number, row in enumerate(rows, 1):
        try:
            files.append(parse(row))
        except ValueError as error:
            faults.append(Fault(f"{where}, entry {number}", str(error)))
    for file in files:
        faults += member_names.faults_of(file.path)
    if not faults:
        faults += member_names.collisions(file.path for file in files)
    if faults:
        raise _worthless(where, "", faults)
    return tuple(files)


def _worthless(where: str, why: str, faults: Iterable[Fault] = ()) -> ArchiveError:
    return ArchiveError(
        f"{where} is damaged, or was not written by an installer or this tool",
        why=why,
        next_step="build the artifact again from the archive, or install it again",
        faults=faults,
    )
