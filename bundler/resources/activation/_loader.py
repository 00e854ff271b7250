"""What activation asks of an operating system's loader, and the choice of the right one."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Protocol

from ._errors import ActivationError


@dataclass(frozen=True)
class Library:
    """A library that was opened.

    Args:
        path: where the loader says that it came from.
        handle: what the loader calls it.
    """

    path: str
    handle: int


class Cookie(Protocol):
    """Something that lasts until it is closed."""

    def close(self) -> None:
        """End it."""
        ...


class Loader(Protocol):
    """The loader of this process; tests play one in memory."""

    def modules(self) -> list[str]:
        """List the path of every module in the process, in the order of loading if known."""
        ...

    def module_path(self, name: str) -> str | None:
        """Say which module answers to a bare name now, or none."""
        ...

    def open(self, path: str) -> Library:
        """Load a library and, from its own folder, what it links to.

        Args:
            path: absolute; on Linux also a bare name, which the system then looks up.

        Raises:
            OSError: it cannot be loaded; the text says what that means.
        """
        ...

    def release(self, library: Library) -> None:
        """Drop a library; it stays as long as anything else holds it."""
        ...

    def add_folder(self, folder: str) -> Cookie | None:
        """Let other modules find libraries of a folder that they link to, if there is a way."""
        ...

    def file_version(self, path: str) -> str | None:
        """Read the version resource of a file; nothing when it has none."""
        ...

    def system_folders(self) -> list[str]:
        """List where this process would look for a bare name, in order."""
        ...

    def opens_bare_names(self) -> bool:
        """Say whether `open` finds a bare name better than a search of `system_folders`."""
        ...


def system_loader(*, is_windows: bool) -> Loader:
    """Give the loader of this process.

    Args:
        is_windows: the libraries to be loaded are Windows ones.

    Raises:
        ActivationError: this system cannot load such libraries.
    """
    if is_windows != (sys.platform == "win32"):
        raise ActivationError(
            f"these libraries do not run on {sys.platform}",
            f"they were built for {'Windows' if is_windows else 'Linux'}",
            "install the package that was made for this system",
        )
    if sys.platform == "win32":
        from ._windows import WindowsLoader  # noqa: PLC0415 - exists on Windows only

        return WindowsLoader()
    else:  # noqa: RET505 - type checkers know the platform of a branch only
        from ._linux import LinuxLoader  # noqa: PLC0415 - likewise

        return LinuxLoader()


def is_inside(path: str, folder: str) -> bool:
    """Say whether a file lies directly in a folder, however either is spelt.

    Junctions, `subst` drives and short names spell one folder in several ways, hence the
    comparison of the folders themselves and not only of their names.
    """
    parent = os.path.dirname(path)
    if os.path.normcase(os.path.abspath(parent)) == os.path.normcase(os.path.abspath(folder)):
        return True
    try:
        return os.path.samefile(parent, folder)
    except OSError:
        return False
