"""Checking signatures inside the process of the tests, and a clock that nobody may read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from bundler.authenticode import Examined, signed_data
from bundler.authenticode.libraries import Library, read_signatures
from bundler.signature_policy import Signature


def in_process(signatures: Sequence[bytes], pem: bytes | None) -> list[Examined]:
    """Examine without starting a process."""
    trusted = signed_data.Roots(pem)
    return [signed_data.examine(each, trusted) for each in signatures]


def signature_of(library: bytes, folder: Path, pem: bytes | None) -> Signature:
    """Check one library against roots, or against Microsoft's where none are given."""
    path = folder / "library.dll"
    path.write_bytes(library)
    return read_signatures({"a.dll": Library(path)}, pem, in_process)["a.dll"]


class _Clock(datetime):
    @classmethod
    def now(cls, tz: object = None) -> _Clock:
        raise AssertionError(tz)


class _AnyMoment(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, datetime)


def refusing_clock() -> type:
    """Make a `datetime` that refuses to say what time it is."""
    return _AnyMoment("Clock", (_Clock,), {})
