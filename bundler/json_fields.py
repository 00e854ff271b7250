"""Take typed fields out of a JSON object and collect what is wrong with them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bundler.errors import Fault
from bundler.strict_json import JsonNode, JsonValue, kind_of, shown

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Form:
    """What a string must look like.

    Args:
        pattern: must match the whole string.
        words: the form in words, to stand after `must be`.
    """

    pattern: re.Pattern[str]
    words: str


ANY_TEXT = Form(re.compile(r"(?s).*"), "a string")
SHA256 = Form(re.compile(r"[0-9a-f]{64}"), "64 lower-case hexadecimal digits")
MD5 = Form(re.compile(r"[0-9a-f]{32}"), "32 lower-case hexadecimal digits")
DATE = Form(re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"), "a date such as 2024-03-15")
BYTES = Form(re.compile(r"[1-9][0-9]{0,14}"), "a decimal number of bytes, in a string")
VERSION = Form(re.compile(r"[0-9]{1,12}(\.[0-9]{1,12}){1,5}"), "a version of dotted numbers")


class FieldReader:
    """Reads fields and gathers faults instead of stopping at the first.

    A field that is at fault is returned as an empty string: whoever uses the values
    must first see that `faults` is empty.

    Args:
        faults: what was already found.
    """

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self.faults = list(faults)

    def fault(self, where: str, what: str) -> None:
        """Add one fault."""
        self.faults.append(Fault(where, what))

    def text(self, node: JsonNode, key: str, form: Form = ANY_TEXT) -> str:
        """Take a string that must be there."""
        if key not in node.value:
            self.fault(node.path(key), "is missing")
            return ""
        return self._checked(node.path(key), node.value[key], form)

    def optional_text(self, node: JsonNode, key: str, form: Form = ANY_TEXT) -> str | None:
        """Take a string that may be absent."""
        return self.text(node, key, form) if key in node.value else None

    def texts(self, node: JsonNode, key: str) -> tuple[str, ...]:
        """Take an array of strings that may be absent."""
        value = node.value.get(key, [])
        if not isinstance(value, list):
            self.fault(node.path(key), f"must be an array of strings, not {kind_of(value)}")
            return ()
        where = node.path(key)
        return tuple(self._checked(f"{where}[{n}]", item, ANY_TEXT) for n, item in enumerate(value))

    def child(self, node: JsonNode, key: str) -> JsonNode | None:
        """Take an object; anything else is a fault."""
        value = node.value[key]
        if isinstance(value, dict):
            return JsonNode(node.path(key), value)
        self.fault(node.path(key), f"must be an object, not {kind_of(value)}")
        return None

    def _checked(self, where: str, value: JsonValue, form: Form) -> str:
        if not isinstance(value, str):
            self.fault(where, f"must be a string, not {kind_of(value)}")
        elif not form.pattern.fullmatch(value):
            self.fault(where, f"must be {form.words}, not {shown(value)}")
        else:
            return value
        return ""
