"""What an installed artifact offers to a test; one module per kind makes one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bundler.lock import Lock
from bundler.smoke.host import Host, NotRun


@dataclass(frozen=True)
class Check:
    """One way in which a user's program would reach the libraries.

    Args:
        argv: the program and its arguments; paths of this machine as `Path`.
        search_first: folders before the trap on the child's search path.
        every_library: all libraries must be in the process, not only those that cuDNN
            opened by itself.
    """

    argv: tuple[str | Path, ...]
    search_first: tuple[Path, ...] = ()
    every_library: bool = True


@dataclass(frozen=True)
class Installation:
    """An installed artifact.

    Args:
        lock: the one that the artifact carries.
        libraries: the folder of its libraries.
        checks: by a name in words, in order; none when nothing can be run here.
        not_run: why there are no checks.
    """

    lock: Lock
    libraries: Path
    checks: Mapping[str, Check] = field(default_factory=dict)
    not_run: str = ""


@dataclass(frozen=True)
class SmokeContext:
    """What a test may use.

    Args:
        host: where programs run, or why none can.
        scratch: an empty folder on a disk with room for the unpacked payload twice.
        environment: the caller's, read only for where things are.
        poison: folders with other cuDNNs, to stand first on the search path beside the
            trap that every test lays.
    """

    host: Host | NotRun
    scratch: Path
    environment: Mapping[str, str]
    poison: tuple[Path, ...] = ()


class Installer(Protocol):
    """Installs one kind of artifact into a clean environment."""

    def __call__(self, path: Path, context: SmokeContext) -> Installation:
        """Install.

        Args:
            path: of the artifact.
            context: where to.

        Raises:
            SmokeError: the artifact cannot be installed.
        """
        ...
