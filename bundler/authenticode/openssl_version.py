"""Importing oscrypto where OpenSSL's version has a number of two digits.

oscrypto, which signify computes with, looks for `1.2.3` in the name of the OpenSSL library
and gives up at `3.0.19`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_ONE_DIGIT = r"\b(\d\.\d\.\d[a-z]*)\b"
_MORE_DIGITS = r"\b(\d+\.\d+\.\d+[a-z]*)\b"

Search = Callable[..., re.Match[str] | None]


@contextmanager
def long_versions_readable() -> Iterator[None]:
    """Let `re.search` find versions such as `3.0.19` while oscrypto is being imported.

    Only oscrypto's own pattern, and only where it finds nothing, is searched again; when the
    import ends, however it ends, `re.search` is what it was.
    """
    original = re.search
    re.search = _lenient(original)  # type: ignore[assignment]
    try:
        yield
    finally:
        re.search = original


def _lenient(original: Search) -> Search:
    def search(pattern: str, string: str, flags: int = 0) -> re.Match[str] | None:
        found = original(pattern, string, flags)
        if found is None and pattern == _ONE_DIGIT:
            return original(_MORE_DIGITS, string, flags)
        return found

    return search
