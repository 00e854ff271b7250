"""Which host serves a platform from here: this machine itself, Wine, or none."""

from __future__ import annotations

import platform as python_platform
import sys
from typing import TYPE_CHECKING

from bundler.names import Platform
from bundler.smoke.host import Host, NativeHost, NotRun, ProcessRunner, run_process
from bundler.smoke.wine import WineHost, find_wine

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_MACHINES = {
    Platform.LINUX_X86_64: ("x86_64",),
    Platform.LINUX_SBSA: ("aarch64",),
    Platform.LINUX_AARCH64: ("aarch64",),
    Platform.LINUX_PPC64LE: ("ppc64le",),
    # Windows on Arm runs x64 programs as well.
    Platform.WINDOWS_X86_64: ("AMD64", "ARM64"),
    Platform.WINDOWS_ARM64: ("ARM64",),
    Platform.OSX_X86_64: ("x86_64", "arm64"),
}


def find_host(
    platform: Platform,
    environment: Mapping[str, str],
    *,
    cache: Path | None = None,
    runner: ProcessRunner = run_process,
) -> Host | NotRun:
    """Find where artifacts of a platform can be run from here.

    Args:
        platform: that of the artifact.
        environment: the caller's; only an allow-list of it reaches a child.
        cache: where a Wine prefix is kept; the user's cache folder when not given.
        runner: what starts programs.

    Returns:
        A host, to be entered with `with`, or the reason why there is none.
    """
    windows_here = sys.platform == "win32"
    machine = python_platform.machine()
    if platform.is_windows and not windows_here:
        if platform is not Platform.WINDOWS_X86_64 or machine not in ("x86_64", "AMD64"):
            return NotRun(f"Wine on {machine} does not run {platform} programs: use Windows")
        programs = find_wine(environment, runner)
        if isinstance(programs, NotRun):
            return programs
        return WineHost(programs, environment, cache=cache, runner=runner)
    system = "windows" if windows_here else "osx" if sys.platform == "darwin" else "linux"
    if not platform.value.startswith(system) or machine not in _MACHINES[platform]:
        return NotRun(f"this machine is {system} {machine}: test {platform} artifacts on one")
    return NativeHost(environment, runner=runner)
