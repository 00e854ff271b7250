"""Reading single words of the command line; what is wrong with them ends in exit code 2."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path


def path(text: str) -> Path:
    """Read a path; what no path can hold is wrong usage and no bug."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        text = "\0"
    if "\0" in text:
        message = "it holds a character that no path can hold"
        raise argparse.ArgumentTypeError(message)
    return Path(text)


def uri(text: str) -> str:
    """Read a URI."""
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9+.\-]*:[!-~]+", text) is None:
        message = f"{text!r} is not a URI, such as https://ci.example.com/builders/release"
        raise argparse.ArgumentTypeError(message)
    return text


def level(text: str) -> int:
    """Read a zstd level."""
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 22:
        message = f"{text!r} is not a zstd level (1 to 22)"
        raise argparse.ArgumentTypeError(message)
    return int(text)
