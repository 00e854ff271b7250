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
_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.I)
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f<>:"|?*]')


def normalise(name: str) -> str:
    """Turn backslashes into slashes, as Windows tools that wrote such a zip meant them.

    A name that mixes both is left alone, so that `faults_of` refuses it.
    """
    return name.replace("\\", "/") if "\\" in name and "/" not in name else name


def faults_of(name: str) -> Iterator[Fault]:
    """Yield everything that is wrong with one normalised name.

    Args:
        name: the member's name; a directory's ends with a slash.
    """
    path = name.removesuffix("/")
    if "\\" in path:
        yield Fault(name, "mixes backslashes and slashes")
        return
    if not path or path.startswith("/"):
        yield Fault(name, "is an absolute path" if path or name else "is an empty name")
        return
    if re.match(r"[A-Za-z]:", path):
        yield Fault(name, "names a drive")
        return
    if len(path) > MAXIMUM_LENGTH:
        yield Fault(name[:60] + "...", f"is longer than {MAXIMUM_LENGTH} characters")
    for component in path.split("/"):
        what = _component_fault(component)
        if what:
            yield Fault(name, what)


def _component_fault(component: str) -> str:
    if component in {"", ".", ".."}:
        return f"leaves its folder or is ambiguous: component {component!r}"
    if _FORBIDDEN.search(component):
        return "holds a character that Windows forbids"
    if component[-1] in ". ":
        return "ends with a dot or a space, which Windows drops"
    if _RESERVED.fullmatch(component):
        return f"uses the reserved Windows name {component!r}"
    return ""


def collisions(names: Iterable[str]) -> Iterator[Fault]:
    """Yield names that would land on the same file, or a file where a folder must be.

    Comparison ignores case and Unicode composition, as NTFS and APFS do.

    Args:
        names: normalised names; directories end with a slash.
    """
    seen: dict[str, str] = {}
    folders: dict[str, str] = {}
    for name in names:
        key = unicodedata.normalize("NFC", name.removesuffix("/")).casefold()
        parts = key.split("/")
        depth = len(parts) if name.endswith("/") else len(parts) - 1
        for length in range(1, depth + 1):
            folders.setdefault("/".join(parts[:length]), name)
        if name.endswith("/"):
            continue
        if key in seen:
            other = seen[key]
            yield Fault(name, "occurs twice" if other == name else f"differs only by case from {other}")
        seen[key] = name
    for key in sorted(seen.keys() & folders.keys()):
        yield Fault(seen[key], f"is a file, and {folders[key]} needs a folder there")
