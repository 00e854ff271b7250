"""Which names a member of an archive may have.

Archives come from outside. A name is accepted only if it means the same file on
Windows, Linux and macOS, inside the folder it is unpacked to. Repairing a bad name
(dropping `..`, renaming `AUX.dll`) was rejected: what arrives would no longer be what
was validated.

Source: the naming rules of Win32 ("Naming Files, Paths, and Namespaces").
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from bundler.errors import Fault

MAXIMUM_LENGTH = 240
"""Bytes in UTF-8; file systems take 255 for one component."""

_SHOWN_AT_MOST = 120
_RESERVED = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³]) *(\..*)?", re.IGNORECASE
)
# Besides what Windows forbids: half characters, and marks that reverse or hide text on a screen.
_FORBIDDEN = re.compile(
    r'[\x00-\x1f\x7f-\x9f<>:"|?*\ud800-\udfff\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]'
)


def normalise(name: str) -> str:
    """Turn backslashes into slashes, as Windows tools that wrote such a zip meant them.

    A name that mixes both is left alone, so that `faults_of` refuses it.
    """
    return name.replace("\\", "/") if "\\" in name and "/" not in name else name


def shown(name: str) -> str:
    """Write a name from outside so that it is short and cannot act on a terminal."""
    short = name if len(name) <= _SHOWN_AT_MOST else name[:_SHOWN_AT_MOST] + "..."
    return _FORBIDDEN.sub(_escaped, short)


def _escaped(character: re.Match[str]) -> str:
    return character[0] if character[0] in '<>:"|?*' else ascii(character[0])[1:-1]


def faults_of(name: str) -> Iterator[Fault]:
    """Yield everything that is wrong with one normalised name.

    Args:
        name: the member's name; a directory's ends with a slash.
    """
    yield from (Fault(shown(name), what) for what in dict.fromkeys(_name_faults(name)))


def _name_faults(name: str) -> Iterator[str]:
    path = name.removesuffix("/")
    if len(path.encode(errors="surrogatepass")) > MAXIMUM_LENGTH:
        yield f"is longer than {MAXIMUM_LENGTH} bytes"
    elif "\\" in path:
        yield "mixes backslashes and slashes"
    elif not path or path.startswith("/"):
        yield "is an absolute path" if name else "is an empty name"
    elif re.match(r"[A-Za-z]:", path):
        yield "names a drive"
    else:
        yield from filter(None, (_component_fault(part) for part in path.split("/")))


def _component_fault(component: str) -> str:
    if component in {"", ".", ".."}:
        return f"leaves its folder or is ambiguous: component {component!r}"
    forbidden = _FORBIDDEN.search(component)
    if forbidden:
        return f"holds the character {forbidden[0]!a}, which no file name may hold"
    if component[-1] in ". ":
        return "ends with a dot or a space, which Windows drops"
    if _RESERVED.fullmatch(component):
        return f"uses the reserved Windows name {component!r}"
    return ""


def collisions(names: Iterable[str]) -> Iterator[Fault]:
    """Yield names that would land on the same file, or a file where a folder must be.

    Comparison ignores case and Unicode composition, as NTFS and APFS do.

    Args:
        names: normalised names without faults of their own; directories end with a slash.
    """
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    for name in names:
        key = _caseless(name.removesuffix("/"))
        parts = key.split("/")
        depth = len(parts) if name.endswith("/") else len(parts) - 1
        for length in range(1, depth + 1):
            folders.setdefault("/".join(parts[:length]), name)
        if name.endswith("/"):
            continue
        if key in files:
            yield Fault(name, _likeness(name, files[key]))
        files.setdefault(key, name)
    for key in sorted(files.keys() & folders.keys()):
        yield Fault(files[key], f"is a file, and {folders[key]} needs a folder there")


def _likeness(name: str, other: str) -> str:
    if name == other:
        return "occurs twice"
    return f"would be the same file as {other} on Windows or macOS"


def _caseless(name: str) -> str:
    """Reduce a name to what canonical caseless matching compares (Unicode, D145)."""
    decomposed = unicodedata.normalize("NFD", name)
    return unicodedata.normalize("NFD", decomposed.casefold())
