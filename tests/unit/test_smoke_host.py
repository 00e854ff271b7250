"""Hosts: what reaches a child, what a time-out leaves, and which host serves whom."""

from __future__ import annotations

import os
import platform as python_platform
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bundler.errors import MissingError, SmokeError, UsageError
from bundler.names import Platform
from bundler.smoke.host import (
    CompletedRun,
    Host,
    NativeHost,
    NotRun,
    clean_environment,
    run_process,
)
from bundler.smoke.hosts import find_host
from bundler.smoke.wine import WineHost, WinePrograms, find_wine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LEAKS = {
    "CUDA_PATH": "/cuda",
    "CUDA_PATH_V11_8": "/cuda",
    "LD_LIBRARY_PATH": "/cuda/lib64",
    "PYTHONPATH": "/modules",
    "PYTHONHOME": "/python",
    "WINEPREFIX": "/mine",
}
CALLER = {"HOME": "/home/me", "PATH": "/poison:/usr/bin", "CUDA_VISIBLE_DEVICES": "1", **LEAKS}
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="POSIX processes")


@dataclass
class Call:
    """One program that was to be started."""

    argv: list[str]
    environment: dict[str, str]


@dataclass
class RecordingRunner:
    """Starts nothing, answers what it is told to, and remembers.

    Args:
        answers: last argument of a call to its result.
        works: whether a prefix is made where Wine is asked for one.
    """

    answers: Mapping[str, CompletedRun] = field(default_factory=dict)
    works: bool = True
    calls: list[Call] = field(default_factory=list)

    def __call__(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str],
        cwd: Path | None,
        timeout: float,
    ) -> CompletedRun:
        del cwd, timeout
        self.calls.append(Call(list(argv), dict(environment)))
        if argv[-1] == "-i" and self.works:
            kernel = Path(environment["WINEPREFIX"]) / "drive_c/windows/system32/kernel32.dll"
            kernel.parent.mkdir(parents=True)
            kernel.touch()
        return self.answers.get(argv[-1], CompletedRun(0, "", ""))


def test_a_child_sees_an_allow_list_and_a_bare_path() -> None:
    clean = clean_environment(CALLER, windows=False)

    assert not LEAKS.keys() & clean.keys()
    assert "poison" not in clean["PATH"]
    assert clean["HOME"] == "/home/me"
    assert clean["CUDA_VISIBLE_DEVICES"] == "1"


def test_a_windows_child_keeps_what_windows_needs() -> None:
    caller = {"SystemRoot": "D:\\Win", "Path": "C:\\poison", "CUDA_PATH": "C:\\cuda", "Temp": "T"}

    clean = clean_environment(caller, windows=True)

    assert clean == {
        "SYSTEMROOT": "D:\\Win",
        "TEMP": "T",
        "PATH": "D:\\Win\\System32;D:\\Win;D:\\Win\\System32\\Wbem",
    }


@posix_only
def test_a_native_child_gets_just_that(tmp_path: Path) -> None:
    host = NativeHost({**os.environ, **LEAKS})
    code = (
        "import os, json, sys; print(json.dumps(sorted(os.environ))); print('é', file=sys.stderr)"
    )

    run = host.run([sys.executable, "-X", "utf8", "-c", code], environment={"ADDED": "1"})

    assert run.exit_code == 0
    assert '"ADDED"' in run.stdout
    assert not any(f'"{name}"' in run.stdout for name in LEAKS)
    assert run.stderr == "é\n"
    entries = host.search_path([tmp_path])
    assert entries["PATH"].startswith(f"{tmp_path}:/usr")
    assert entries["LD_LIBRARY_PATH"] == str(tmp_path)
    assert host.search_path([]) == {}


def test_a_separator_in_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="separates folders"):
        NativeHost({}).search_path([tmp_path / f"a{os.pathsep}b"])


@posix_only
def test_a_time_out_ends_the_program_and_its_children(tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    child = f"sleep 1.5; touch '{alive}'"

    with pytest.raises(SmokeError, match=r"did not end within 0\.3 s"):
        run_process(
            ["/bin/sh", "-c", f"({child}) & sleep 60"], environment={}, cwd=None, timeout=0.3
        )

    time.sleep(1.6)
    assert not alive.exists()


def test_what_cannot_be_started_is_said(tmp_path: Path) -> None:
    with pytest.raises(SmokeError, match="cannot start"):
        run_process([str(tmp_path / "none")], environment={}, cwd=None, timeout=1.0)


PROGRAMS = WinePrograms(Path("/wine64"), Path("/wineserver"), "wine-8.0 (Debian 8.0~repack-4)")


def test_wine_makes_its_prefix_once_and_ends_its_server(tmp_path: Path) -> None:
    runner = RecordingRunner()
    host = WineHost(PROGRAMS, CALLER, cache=tmp_path, runner=runner)

    with host:
        made = [call for call in runner.calls if call.argv[-1] == "-i"]
        host.run(["Z:\\a.exe", "x"], environment={"WINEPATH": "Z:\\b"})
    with WineHost(PROGRAMS, CALLER, cache=tmp_path, runner=runner):
        pass

    assert host.prefix == tmp_path / "wine" / "wine-8.0-Debian-8.0-repack-4-1"
    assert host.prefix.is_dir()
    assert len(made) == 1
    assert made == [call for call in runner.calls if call.argv[-1] == "-i"]
    (call,) = [call for call in runner.calls if call.argv[-1] == "x"]
    assert call.argv == ["/wine64", "Z:\\a.exe", "x"]
    assert call.environment["WINEPREFIX"] == str(host.prefix)
    assert call.environment["WINEDEBUG"] == "-all"
    assert call.environment["WINEPATH"] == "Z:\\b"
    assert not (LEAKS.keys() - {"WINEPREFIX"}) & call.environment.keys()
    assert runner.calls[-2].argv[-2:] == ["/wineserver", "-k"]


def test_the_server_stays_while_another_session_uses_it(tmp_path: Path) -> None:
    runner = RecordingRunner()
    with WineHost(PROGRAMS, {}, cache=tmp_path, runner=runner):
        with WineHost(PROGRAMS, {}, cache=tmp_path, runner=runner):
            before = len(runner.calls)
        assert len(runner.calls) == before
    assert runner.calls[-2].argv[-1] == "-k"


@pytest.mark.parametrize(
    ("answer", "starts"),
    [
        (CompletedRun(1, "", ""), 3),
        (CompletedRun(1, "", "Traceback"), 1),
        (CompletedRun(9, "", ""), 1),
        (CompletedRun(0, "", ""), 1),
    ],
)
def test_only_a_program_that_never_started_is_started_again(
    tmp_path: Path, answer: CompletedRun, starts: int
) -> None:
    runner = RecordingRunner({"x": answer})
    host = WineHost(PROGRAMS, {}, cache=tmp_path, runner=runner)

    assert host.run(["Z:\\a.exe", "x"]) == answer
    assert len(runner.calls) == starts


def test_a_wine_that_makes_nothing_leaves_nothing(tmp_path: Path) -> None:
    host = WineHost(PROGRAMS, {}, cache=tmp_path, runner=RecordingRunner(works=False))

    with pytest.raises(MissingError, match="no usable Windows folder"):
        host.__enter__()

    assert [each.suffix for each in (tmp_path / "wine").iterdir()] == [".lock"]


@pytest.mark.parametrize("name", ["a:b", "a\\b", "a?b", 'a"b'])
def test_a_path_that_windows_cannot_spell_is_refused(tmp_path: Path, name: str) -> None:
    host = WineHost(PROGRAMS, {}, cache=tmp_path)

    with pytest.raises(UsageError, match="keeps for itself"):
        host.path_argument(tmp_path / name)


@posix_only
def test_wine_spells_paths_on_drive_z(tmp_path: Path) -> None:
    host = WineHost(PROGRAMS, {}, cache=tmp_path)

    assert host.path_argument(Path("/a b/é中")) == "Z:\\a b\\é中"
    assert host.search_path([Path("/a"), Path("/b")]) == {"WINEPATH": "Z:\\a;Z:\\b"}
    assert host.search_path([]) == {}
    with pytest.raises(UsageError, match="separates folders"):
        host.search_path([Path("/a;b")])


def found(host: Host | NotRun) -> str:
    """Name what was found."""
    return host.reason if isinstance(host, NotRun) else type(host).__name__


@pytest.mark.parametrize(
    ("system", "machine", "platform", "expected"),
    [
        ("linux", "x86_64", Platform.LINUX_X86_64, "NativeHost"),
        ("linux", "aarch64", Platform.LINUX_SBSA, "NativeHost"),
        ("linux", "x86_64", Platform.LINUX_SBSA, "this machine is linux x86_64"),
        ("linux", "x86_64", Platform.WINDOWS_X86_64, "no Wine: install wine64"),
        ("linux", "x86_64", Platform.WINDOWS_ARM64, "Wine on x86_64 does not run"),
        ("linux", "aarch64", Platform.WINDOWS_X86_64, "Wine on aarch64 does not run"),
        ("win32", "AMD64", Platform.WINDOWS_X86_64, "NativeHost"),
        ("win32", "ARM64", Platform.WINDOWS_X86_64, "NativeHost"),
        ("win32", "AMD64", Platform.WINDOWS_ARM64, "this machine is windows AMD64"),
        ("win32", "AMD64", Platform.LINUX_X86_64, "this machine is windows AMD64"),
        ("darwin", "arm64", Platform.LINUX_X86_64, "this machine is osx arm64"),
    ],
)
def test_which_host_serves_whom(
    monkeypatch: pytest.MonkeyPatch, system: str, machine: str, platform: Platform, expected: str
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(python_platform, "machine", lambda: machine)
    monkeypatch.setattr(
        "bundler.smoke.hosts.find_wine", lambda *_: NotRun("no Wine: install wine64")
    )

    assert expected in found(find_host(platform, {"PATH": "/nowhere"}))


@posix_only
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(CompletedRun(0, "wine-9.0\n", ""), "wine-9.0", id="answers"),
        pytest.param(CompletedRun(1, "", "bad CPU"), "bad CPU", id="fails"),
        pytest.param(CompletedRun(0, "", ""), "no answer", id="silent"),
    ],
)
def test_a_wine_has_to_answer(tmp_path: Path, answer: CompletedRun, expected: str) -> None:
    for name in ("wine64", "wineserver"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    runner = RecordingRunner({"--version": answer})

    wine = find_wine({"PATH": str(tmp_path)}, runner)

    assert expected in (wine.reason if isinstance(wine, NotRun) else wine.version)
