"""Read JSON from outside without trusting it: the document, and typed fields out of it.

What Python's reader lets pass is a fault here: duplicate keys (two readers would see two
documents), NaN and infinity, half surrogate pairs, absurd nesting. Every fault carries
its path inside the document (`cudnn.windows-x86_64.cuda11.sha256`); none stops the
reading, so that one run shows them all. No files are touched.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from bundler.errors import ArchiveError, Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"
JsonObject: TypeAlias = dict[str, JsonValue]

MAXIMUM_SIZE = 2 * 1024 * 1024  # bytes; the largest real manifest has 52 kB
_MAXIMUM_DEPTH = 16  # levels; real manifests have 4
_SHOWN_AT_MOST = 80  # characters
_PLAIN_KEY = re.compile(r"[A-Za-z0-9_.\-]{1,80}")


class _Object(JsonObject):
    """A JSON object that remembers which keys were given more than once."""

    duplicates: tuple[str, ...] = ()

    @classmethod
    def from_pairs(cls, pairs: list[tuple[str, JsonValue]]) -> _Object:
        made = cls(pairs)
        if len(made) != len(pairs):
            counts = Counter(key for key, _ in pairs)
            made.duplicates = tuple(key for key, count in counts.items() if count > 1)
        return made


@dataclass(frozen=True)
class JsonNode:
    """An object inside a document, and where it stands.

    Args:
        where: path inside the document; empty for the top.
        value: the object.
    """

    where: str
    value: JsonObject

    def path(self, key: str) -> str:
        """Name one key of this object, as faults name it."""
        return _join(self.where, key)


@dataclass(frozen=True)
class JsonDocument:
    """What was read, and what is wrong with it as JSON.

    Args:
        top: the top-level object.
        faults: duplicate keys, NaN, nesting; in document order.
    """

    top: JsonNode
    faults: tuple[Fault, ...]


def read_json_object(data: bytes, subject: str) -> JsonDocument:
    """Read one JSON object from UTF-8 bytes.

    Args:
        data: the file's bytes; a byte order mark is tolerated.
        subject: what the bytes are said to be, to begin a sentence with (`the manifest`).

    Raises:
        ArchiveError: there is no JSON object to be had from these bytes.
    """
    text = _decode(data, subject)
    try:
        value: JsonValue = json.loads(text, object_pairs_hook=_Object.from_pairs)
    except RecursionError:
        raise _unreadable(subject, "it is nested too deeply to be read") from None
    except json.JSONDecodeError as error:
        position = f"line {error.lineno} column {error.colno}"
        raise _unreadable(subject, f"it is not JSON: {error.msg} at {position}") from None
    except ValueError:
        # Python refuses to convert integers of more than 4300 digits.
        raise _unreadable(subject, "it holds a number too long to be read") from None
    if not isinstance(value, dict):
        raise _unreadable(subject, f"its top level is {kind_of(value)}, not an object")
    return JsonDocument(JsonNode("", value), tuple(_walk(value)))


def kind_of(value: JsonValue) -> str:
    """Name the JSON type of a value, with its article."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, (int, float)):
        return "a number"
    return {dict: "an object", list: "an array", str: "a string", _Object: "an object"}[type(value)]


def shown(text: str) -> str:
    """Quote text from outside so that it is short, one line of ASCII, and safe in a terminal."""
    return ascii(text if len(text) <= _SHOWN_AT_MOST else text[:_SHOWN_AT_MOST] + "...")


def _decode(data: bytes, subject: str) -> str:
    start = data[:512].lstrip().lower()
    if not start:
        raise _unreadable(subject, "it is empty")
    if start.startswith(b"<"):
        raise ArchiveError(
            f"{subject} is an HTML or XML page, not JSON",
            why="the server answered with a page (a login, an error, a proxy) instead of the file",
            next_step="open the address in a browser, then download the .json file itself again",
        )
    if len(data) > MAXIMUM_SIZE:
        limit = f"more than {MAXIMUM_SIZE:,} bytes"
        raise _unreadable(subject, f"it has {len(data):,} bytes, {limit}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unreadable(subject, f"byte {error.start:,} is not UTF-8") from None


def _unreadable(subject: str, why: str) -> ArchiveError:
    return ArchiveError(
        f"{subject} cannot be read",
        why=why,
        next_step="download it again and compare its size with the server's",
    )


def _join(where: str, key: str) -> str:
    plain = key if _PLAIN_KEY.fullmatch(key) else shown(key)
    return f"{where}.{plain}" if where else plain


def _walk(top: JsonValue) -> Iterator[Fault]:
    # A stack, not recursion: Python 3.12's reader goes deeper than Python functions can.
    pending: list[tuple[str, JsonValue, int]] = [("", top, 0)]
    while pending:
        where, value, depth = pending.pop()
        yield from _faults_of(where, value)
        if isinstance(value, (dict, list)) and depth >= _MAXIMUM_DEPTH:
            yield Fault(where, f"nested more than {_MAXIMUM_DEPTH} levels deep")
        else:
            pending += [(path, child, depth + 1) for path, child in _children(where, value)][::-1]


def _children(where: str, value: JsonValue) -> Iterable[tuple[str, JsonValue]]:
    if isinstance(value, dict):
        return [(_join(where, key), child) for key, child in value.items()]
    if isinstance(value, list):
        return [(f"{where}[{number}]", child) for number, child in enumerate(value)]
    return ()


def _faults_of(where: str, value: JsonValue) -> Iterator[Fault]:
    if isinstance(value, _Object):
        for key in value.duplicates:
            yield Fault(_join(where, key), "the key is given more than once")
    elif isinstance(value, float) and not math.isfinite(value):
        yield Fault(where, "NaN and infinity are not JSON numbers")
    elif isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
        yield Fault(where, "holds half a surrogate pair, which is not text")
