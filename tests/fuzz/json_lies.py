"""JSON documents that are nearly right: bytes decide which values of a sound one are changed.

Bytes changed at random in JSON seldom leave it JSON, and Python's reader, written in C, gives
a fuzzer no hint of the way.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

from bundler.strict_json import JsonObject, JsonValue
from tests.fuzz.zip_lies import Choices

_Place = tuple[JsonObject | list[JsonValue], str | int]
_VALUES: tuple[JsonValue, ...] = (
    None, True, 0, -1, 1 << 70, 1.5, float("nan"), "", "0", "11", "8.9.5.29", "1" * 64, "\ud800",
    "\x1b[2J", "../x", "runtime", [], [None], {}, {"cuda11": {}}, "windows-x86_64", 10**4000,
)  # fmt: skip


def changed(document: JsonObject, data: bytes) -> JsonObject:
    """Change a copy of a document as the bytes say."""
    choices, result = Choices(data), copy.deepcopy(document)
    for _ in range(1 + choices.number() % 4):
        places = list(_places(result))
        if not places:
            break
        place = choices.one_of(places)
        _change(choices, place, choices.one_of(places))
    return result


def _change(choices: Choices, place: _Place, other: _Place) -> None:
    holder, key = place
    action = choices.number() % 6
    if action == 0:
        del holder[key]  # type: ignore[arg-type]
    elif action == 1:
        text = choices.take(choices.number() % 32).decode(errors="surrogateescape")
        _put(place, text)
    elif action == 2:
        _put(place, copy.deepcopy(_get(other)))
    elif action == 3 and isinstance(holder, dict):
        name = choices.take(choices.number() % 16).decode(errors="replace")
        holder[name] = copy.deepcopy(_get(other))
    else:
        _put(place, copy.deepcopy(choices.one_of(_VALUES)))


def _get(place: _Place) -> JsonValue:
    holder, key = place
    # The other place may have just been taken away.
    try:
        return holder[key]  # type: ignore[index]
    except LookupError:
        return None


def _put(place: _Place, value: JsonValue) -> None:
    holder, key = place
    holder[key] = value  # type: ignore[index]


def _places(value: JsonValue) -> Iterator[_Place]:
    if isinstance(value, dict):
        for name, child in value.items():
            yield value, name
            yield from _places(child)
    elif isinstance(value, list):
        for number, child in enumerate(value):
            yield value, number
            yield from _places(child)
