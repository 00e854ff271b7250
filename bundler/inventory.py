"""Sorting the members of an archive into roles, whatever its generation.

NVIDIA has moved its files four times (`cuda/`, the archive's name as root, `bin/x64`,
`lib` and `lib/x64`), so nothing here depends on a folder's name except to drop the root.
No list of libraries is kept: the archive says what it has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from bundler.errors import Fault
from bundler.lock import Role

_TOP_FOLDERS = frozenset({"bin", "include", "lib", "lib64", "targets"})
_LICENCE = re.compile(r"(licen[cs]e|eula|nvidia_sla.*)(\.(txt|rtf|pdf|md))?", re.IGNORECASE)
MAIN_LIBRARY = re.compile(r"cudnn64_(\d+)\.dll", re.IGNORECASE)
CUDNN_LIBRARY = re.compile(r"cudnn[a-z0-9_]*64_\d+\.dll", re.IGNORECASE)
LINUX_MAIN_LIBRARY = re.compile(r"libcudnn\.so\.(\d+)(\.\d+)*")
LINUX_LIBRARY = re.compile(r"libcudnn[a-z0-9_]*\.so(?:\.(\d+(?:\.\d+)*))?")
# Names go unescaped into RECORD, SHA256SUMS, XML and old tar headers.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,79}")


def common_root(paths: Sequence[str]) -> str:
    """Find the one folder everything lies in, with its slash, or an empty string.

    Args:
        paths: posix paths of files.
    """
    first = {path.split("/", 1)[0] for path in paths}
    if len(first) != 1 or any("/" not in path for path in paths):
        return ""
    (root,) = first
    return "" if root.lower() in _TOP_FOLDERS else root + "/"


def role_of(path: str) -> Role:
    """Tell what a file is for by its name.

    Args:
        path: posix path, without the archive's root folder.
    """
    folder, _, name = path.rpartition("/")
    lower = name.lower()
    if lower.endswith(".dll"):
        return Role.RUNTIME
    if lower.endswith(".lib"):
        return Role.IMPORT_LIBRARY
    if lower.endswith(".h"):
        return Role.HEADER
    if _LICENCE.fullmatch(name) and not folder:
        return Role.LICENCE
    return Role.OTHER


def inventory_faults(paths: Iterable[tuple[str, Role]]) -> list[Fault]:
    """List what keeps this set of files from being a shippable cuDNN.

    Args:
        paths: posix paths without the root folder, with their roles.
    """
    roles = list(paths)
    libraries = [path for path, role in roles if role is Role.RUNTIME]
    names = [path.rsplit("/", 1)[-1].lower() for path in libraries]
    faults = [
        Fault(path, "is the second library of this name; a flat bundle can hold one")
        for path, name in zip(libraries, names, strict=True)
        if names.count(name) > 1
    ]
    faults += [
        Fault(path, "has a name that packages cannot carry: only ASCII letters, digits, _.+- fit")
        for path in libraries
        if not _PLAIN_NAME.fullmatch(path.rsplit("/", 1)[-1])
    ]
    mains = sorted({name for name in names if MAIN_LIBRARY.fullmatch(name)})
    if not libraries:
        faults.append(Fault("", "holds no library (.dll) at all"))
    elif not mains:
        faults.append(Fault("", "holds no main library (cudnn64_<major>.dll)"))
    elif len(mains) > 1:
        faults.append(Fault("", f"holds more than one main library: {', '.join(mains)}"))
    if not any(role is Role.LICENCE for _, role in roles):
        what = "holds no licence text (LICENSE); it must travel with the libraries"
        faults.append(Fault("", what))
    return faults
