"""Where a smoke test runs its programs: this machine, or something that plays another one.

A host never hands the caller's environment on. A program that passes only because
`CUDA_PATH`, `PATH` or `PYTHONPATH` of whoever started the test helped it has proved
nothing, so a child sees an allow-list and what the test itself adds.
"""

from __future__ import annotations

import os
import platform as python_platform
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

from bundler.errors import SmokeError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

# What a program needs to start at all, plus the choice of a GPU.
_ALLOWED_ON_WINDOWS = (
    "APPDATA",
    "COMSPEC",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERPROFILE",
    "WINDIR",
)
_ALLOWED_ELSEWHERE = ("HOME", "TMPDIR", "USER")
_ALLOWED_GPU_CHOICE = ("CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")


@dataclass(frozen=True)
class CompletedRun:
    """How a program ended.

    Args:
        exit_code: what the program returned. Negative is a signal; under Wine only the
            low byte of a Windows code arrives, so that 0xC0000409 reads 9.
        stdout: decoded as UTF-8, undecodable bytes replaced, line ends as on Linux.
        stderr: likewise.
    """

    exit_code: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class NotRun:
    """Why a test cannot run here; never to be read as a pass.

    Args:
        reason: what is missing and how to provide it.
    """

    reason: str


class Host(Protocol):
    """A machine to run programs on; a context manager, because some need ending."""

    def run(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout: float = 600.0,
    ) -> CompletedRun:
        """Run a program to its end, with nothing on its standard input.

        Args:
            argv: the program and its arguments; every path in it by `path_argument`.
            environment: added to, and winning over, the host's own clean environment.
            cwd: the working directory; that of the caller when not given.
            timeout: seconds.

        Raises:
            SmokeError: the program did not end in time, or could not be started.
        """
        ...

    def path_argument(self, path: Path) -> str:
        """Spell a path of this machine as a program on the host must be given it."""
        ...

    def describe(self) -> str:
        """Say in a few words where programs run, for a report."""
        ...

    def search_path(self, folders: list[Path]) -> dict[str, str]:
        """Give the environment entries that make a child search folders first.

        Raises:
            UsageError: a folder's name holds the character that separates folders.
        """
        ...

    def __enter__(self) -> Self:
        """Make the host ready to run programs."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        """End what was started for the host itself."""
        ...


class ProcessRunner(Protocol):
    """Starts a program and waits for it; replaced in tests."""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str],
        cwd: Path | None,
        timeout: float,
    ) -> CompletedRun:
        """Run with exactly this environment; arguments as in `Host.run`."""
        ...


class NativeHost:
    """The machine that the test was started on.

    Args:
        environment: the caller's environment, of which only an allow-list is used.
        runner: what starts programs.
    """

    def __init__(
        self, environment: Mapping[str, str], *, runner: ProcessRunner | None = None
    ) -> None:
        self._environment = clean_environment(environment, windows=sys.platform == "win32")
        self._runner = runner or run_process

    def run(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout: float = 600.0,
    ) -> CompletedRun:
        """Run a program; see `Host.run`."""
        merged = {**self._environment, **(environment or {})}
        return self._runner(argv, environment=merged, cwd=cwd, timeout=timeout)

    def path_argument(self, path: Path) -> str:
        """Spell a path for a program: absolute, as it is."""
        return str(path.absolute())

    def describe(self) -> str:
        """Name the system and the machine."""
        return f"{python_platform.system()} {python_platform.machine()}, natively"

    def search_path(self, folders: list[Path]) -> dict[str, str]:
        """Put folders first where programs, and libraries by bare name, are searched."""
        if not folders:
            return {}
        joined = join_folders([str(folder.absolute()) for folder in folders], os.pathsep)
        entries = {"PATH": f"{joined}{os.pathsep}{self._environment['PATH']}"}
        if sys.platform != "win32":
            entries["LD_LIBRARY_PATH"] = joined
        return entries

    def __enter__(self) -> Self:
        """Need nothing."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing."""


def join_folders(folders: Sequence[str], separator: str) -> str:
    """Join folders into the value of a search path.

    Args:
        folders: spelt as the child must see them.
        separator: `;` for Windows, `:` elsewhere.

    Raises:
        UsageError: a folder holds the separator, for which a search path has no escape.
    """
    for folder in folders:
        if separator in folder:
            raise UsageError(
                f"cannot put {folder!r} on a search path",
                why=f"its name holds {separator!r}, which separates folders there",
                next_step="use a folder without that character",
            )
    return separator.join(folders)


def clean_environment(source: Mapping[str, str], *, windows: bool) -> dict[str, str]:
    """Keep of an environment what is needed to start a program, and a bare PATH.

    Args:
        source: the caller's environment.
        windows: whether the child is a Windows program on Windows.
    """
    allowed = _ALLOWED_GPU_CHOICE + (_ALLOWED_ON_WINDOWS if windows else _ALLOWED_ELSEWHERE)
    # Windows names are case-insensitive, and os.environ there is upper case already.
    upper = {name.upper() if windows else name: value for name, value in source.items()}
    kept = {name: upper[name] for name in allowed if name in upper}
    if windows:
        root = kept.setdefault("SYSTEMROOT", "C:\\Windows")
        kept["PATH"] = f"{root}\\System32;{root};{root}\\System32\\Wbem"
    else:
        kept["PATH"] = "/usr/local/bin:/usr/bin:/bin"
        kept["LC_ALL"] = "C.UTF-8"
    return kept


def run_process(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    cwd: Path | None,
    timeout: float,
) -> CompletedRun:
    """Start a program and wait for it; on time-out end it and all that it started.

    Raises:
        SmokeError: it did not end in time, or could not be started.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 - the whole point; there is no shell
            list(argv),
            env=dict(environment),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise SmokeError(f"cannot start {argv[0]}", why=str(error)) from error
    with process:
        try:
            stdout, stderr = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as error:
            _end_with_children(process)
            raise SmokeError(
                f"{argv[0]} did not end within {timeout:g} s",
                why=f"it was run as {list(argv)!r}",
                next_step="run it by hand to see where it waits",
            ) from error
        except BaseException:
            _end_with_children(process)
            raise
    return CompletedRun(process.returncode, _decode(stdout), _decode(stderr))


def _end_with_children(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        process.kill()
    else:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _decode(output: bytes) -> str:
    return output.decode("utf-8", "replace").replace("\r\n", "\n")
