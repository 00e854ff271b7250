"""Windows artifacts on another system: Wine, which obeys the Windows loader's rules.

Wine gets a prefix of its own in the cache, so that neither a user's Wine programs nor
their settings take part, and a server that stays up between programs, which makes each
of them start ten times faster.
"""

from __future__ import annotations

import platform as python_platform
import re
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import platformdirs

from bundler.errors import BundlerError, MissingError, SmokeError, UsageError
from bundler.folder_lock import FolderLock
from bundler.smoke.cached_folder import make_once
from bundler.smoke.host import (
    CompletedRun,
    NotRun,
    ProcessRunner,
    clean_environment,
    join_folders,
    run_process,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Raised when the recipe below changes, so that an older cached prefix is not used.
_PREFIX_RECIPE = 1
_NO_WINE = "no Wine: install wine64 (Debian and Ubuntu: apt-get install wine64)"
# winedbg would wait for somebody to press a button after a crash; winemenubuilder writes
# into the user's home; the other two ask for downloads.
_OVERRIDES = "winedbg.exe,winemenubuilder.exe=d;mscoree,mshtml="
_SERVER_LINGERS_S = 60
# Seen when a server was just going away under another session: Wine gives up without a
# word before the program starts. A program that itself ends so is merely run again.
_NEVER_STARTED = CompletedRun(1, "", "")
_RETRIES = 2
# The server and Wine's services outlive the step that starts them and would hold a pipe
# open, so that waiting for its end would be waiting for theirs.
_SILENTLY = ("/bin/sh", "-c", 'exec "$0" "$@" >/dev/null 2>&1')


@dataclass(frozen=True)
class WinePrograms:
    """The parts of one Wine installation.

    Args:
        wine: the loader for 64-bit programs.
        server: wineserver.
        version: what `wine --version` says, such as `wine-8.0`.
    """

    wine: Path
    server: Path
    version: str


class WineHost:
    """Wine on this machine, ready between `__enter__` and `__exit__`.

    Args:
        programs: which Wine.
        environment: the caller's environment, of which only an allow-list is used.
        cache: the folder for the prefix (about 700 MB); the user's cache folder when
            not given.
        runner: what starts programs.
    """

    def __init__(
        self,
        programs: WinePrograms,
        environment: Mapping[str, str],
        *,
        cache: Path | None = None,
        runner: ProcessRunner = run_process,
    ) -> None:
        label = re.sub(r"[^A-Za-z0-9.]+", "-", programs.version).strip("-")
        self.prefix = (cache or cache_folder()) / "wine" / f"{label}-{_PREFIX_RECIPE}"
        self._programs = programs
        self._runner = runner
        self._clean = clean_environment(environment, windows=False)
        self._users: FolderLock | None = None

    def __enter__(self) -> Self:
        """Make the prefix if it is the first time (12 s), and start the server.

        Raises:
            MissingError: Wine is installed and does not work.
        """
        make_once(self.prefix, self._make_prefix)
        users = FolderLock(self.prefix.with_name(f"{self.prefix.name}.users"))
        users.share()
        self._users = users
        try:
            self._start_server(self.prefix)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End the server, unless another session is using the same prefix."""
        users, self._users = self._users, None
        if users is None:
            return
        try:
            if users.try_take():
                self._stop_server(self.prefix)
        finally:
            users.close()

    def run(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout: float = 600.0,
    ) -> CompletedRun:
        """Run a Windows program; see `Host.run`. The exit code is its low byte only."""
        merged = {**self._environment(self.prefix), **(environment or {})}
        words = [str(self._programs.wine), *argv]
        run = self._runner(words, environment=merged, cwd=cwd, timeout=timeout)
        for _ in range(_RETRIES):
            if run != _NEVER_STARTED:
                break
            run = self._runner(words, environment=merged, cwd=cwd, timeout=timeout)
        return run

    def path_argument(self, path: Path) -> str:
        """Spell a path of this machine as Windows does, on drive Z.

        Raises:
            UsageError: the name holds a character that Windows keeps for itself.
        """
        spelt = str(path.absolute())
        if any(character in spelt for character in '\\:*?"<>|'):
            raise UsageError(
                f"no Windows program can be given the path {spelt!r}",
                why="it holds one of the characters that Windows keeps for itself",
                next_step="use a folder without them",
            )
        return "Z:" + spelt.replace("/", "\\")

    def describe(self) -> str:
        """Name Wine, its version and the machine."""
        return f"{self._programs.version} on {sys.platform} {python_platform.machine()}"

    def search_path(self, folders: list[Path]) -> dict[str, str]:
        """Put folders first on the child's PATH."""
        if not folders:
            return {}
        return {"WINEPATH": join_folders([self.path_argument(each) for each in folders], ";")}

    def _environment(self, prefix: Path) -> dict[str, str]:
        return {
            **self._clean,
            "HOME": str(prefix),
            "WINEARCH": "win64",
            "WINEDEBUG": "-all",
            "WINEDLLOVERRIDES": _OVERRIDES,
            "WINELOADER": str(self._programs.wine),
            "WINEPREFIX": str(prefix),
        }

    def _make_prefix(self, prefix: Path) -> None:
        self._step(prefix, self._programs.wine, "wineboot", "-i")
        # Wine poses as Windows 7 unless told, which current programs refuse.
        self._step(prefix, self._programs.wine, "winecfg", "-v", "win10")
        self._stop_server(prefix)
        # Wine's exit codes do not tell; the files do.
        if not (prefix / "drive_c/windows/system32/kernel32.dll").is_file():
            raise MissingError(
                f"{self._programs.version} made no usable Windows folder in {prefix}",
                why="64-bit Wine is perhaps not installed",
                next_step="install wine64, and try `wine64 wineboot -i` by hand",
            )

    def _start_server(self, prefix: Path) -> None:
        self._step(prefix, self._programs.server, f"-p{_SERVER_LINGERS_S}")
        # Wine's services start with the first program, which must not be a caller's.
        self._step(prefix, self._programs.wine, "cmd", "/c", "exit")

    def _stop_server(self, prefix: Path) -> None:
        with suppress(MissingError):
            self._step(prefix, self._programs.server, "-k")
            self._step(prefix, self._programs.server, "-w")

    def _step(self, prefix: Path, *argv: str | Path) -> None:
        try:
            self._runner(
                [*_SILENTLY, *(str(each) for each in argv)],
                environment=self._environment(prefix),
                cwd=prefix,
                timeout=180.0,
            )
        except SmokeError as error:
            raise MissingError(
                f"{self._programs.version} is installed and does not work",
                why=str(error),
                next_step="run `wine64 wineboot -i` by hand",
            ) from error


def find_wine(environment: Mapping[str, str], runner: ProcessRunner) -> WinePrograms | NotRun:
    """Find a Wine that answers; the 64-bit loader itself rather than a distribution's script.

    Args:
        environment: its PATH is searched.
        runner: what starts programs.
    """
    path = environment.get("PATH", "")
    wine = _first_program(("/usr/lib/wine/wine64", "wine64", "wine"), path)
    server = _first_program(("wineserver", "/usr/lib/wine/wineserver64"), path)
    if wine is None or server is None:
        return NotRun(_NO_WINE)
    clean = {**clean_environment(environment, windows=False), "WINELOADER": str(wine)}
    try:
        answer = runner([str(wine), "--version"], environment=clean, cwd=None, timeout=60.0)
    except BundlerError as error:
        return NotRun(f"Wine at {wine} does not run: {error.what}")
    version = answer.stdout.strip()
    if answer.exit_code != 0 or not version:
        return NotRun(f"Wine at {wine} does not run: {answer.stderr.strip() or 'no answer'}")
    return WinePrograms(wine, server, version)


def cache_folder() -> Path:
    """Name the user's cache folder for what smoke tests need."""
    return platformdirs.user_cache_path("cudnn-bundler")


def _first_program(candidates: tuple[str, ...], path: str) -> Path | None:
    found = (shutil.which(candidate, path=path) for candidate in candidates)
    return next((Path(each) for each in found if each), None)
