"""What the Windows loader does for cuDNN, asked of the loader itself.

The answers are the reason for how the artifacts load their libraries. A table of steps is
done by `tests/fixtures/loader/harness.exe` against the stand-in set, which answers as the
real one does in every row.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import pytest

from bundler.smoke.host import Host

FIXTURES = Path(__file__).parents[1] / "fixtures"
SHIM = "cudnn64_8.dll"
ALPHABETICAL = tuple(
    f"cudnn_{part}64_8.dll"
    for part in ("adv_infer", "adv_train", "cnn_infer", "cnn_train", "ops_infer", "ops_train")
)
IN_ORDER = tuple(
    f"cudnn_{part}64_8.dll"
    for part in ("ops_infer", "ops_train", "cnn_infer", "cnn_train", "adv_infer", "adv_train")
)


class End(Enum):
    """How a program ends that goes through the steps and then calls cuDNN."""

    WORKS = "0"
    NOT_LOADED = "1"
    KILLED = "C0000409"


@dataclass(frozen=True)
class Folder:
    """Where the stand-in set lies, as Windows spells it."""

    path: str

    def full(self, name: str = SHIM) -> str:
        return f"{self.path}\\{name}"

    def fill(self, step: str) -> str:
        return step.replace("{dir}", self.path).replace("{shim}", self.full())

    def preload(self, verb: str, flags: str, names: tuple[str, ...]) -> list[str]:
        return [f"{verb}={flags},{self.full(name)}" for name in names]


ROWS: dict[str, tuple[list[str], End]] = {
    "bare": (["load=0,cudnn64_8.dll"], End.NOT_LOADED),
    "full": (["load=0,{shim}"], End.KILLED),
    "full, altered search path": (["load=8,{shim}"], End.KILLED),
    "full 1100": (["load=1100,{shim}"], End.KILLED),
    "add, full": (["add={dir}", "load=0,{shim}"], End.KILLED),
    "add, bare": (["add={dir}", "load=0,cudnn64_8.dll"], End.NOT_LOADED),
    "add, bare 1000": (["add={dir}", "load=1000,cudnn64_8.dll"], End.KILLED),
    "add, full 1100": (["add={dir}", "load=1100,{shim}"], End.KILLED),
    "default, add, bare": (
        ["default=1000", "add={dir}", "load=0,cudnn64_8.dll"],
        End.WORKS,
    ),
    "default, add, full": (["default=1000", "add={dir}", "load=0,{shim}"], End.WORKS),
    "default, full": (["default=1000", "load=0,{shim}"], End.KILLED),
    "default, path, bare": (
        ["default=1000", "path={dir}", "load=0,cudnn64_8.dll"],
        End.NOT_LOADED,
    ),
    "default, set, bare": (["default=1000", "set={dir}", "load=0,cudnn64_8.dll"], End.WORKS),
    "set, bare": (["set={dir}", "load=0,cudnn64_8.dll"], End.WORKS),
    "set, full": (["set={dir}", "load=0,{shim}"], End.WORKS),
    "path, bare": (["path={dir}", "load=0,cudnn64_8.dll"], End.WORKS),
    "path, full": (["path={dir}", "load=0,{shim}"], End.WORKS),
    "path, full 1100": (["path={dir}", "load=1100,{shim}"], End.WORKS),
    "path, bare 1000": (["path={dir}", "load=1000,cudnn64_8.dll"], End.NOT_LOADED),
    "current directory, bare": (["cwd={dir}", "load=0,cudnn64_8.dll"], End.WORKS),
}


@dataclass(frozen=True)
class Preloading:
    """Libraries loaded by their full path before the main one is.

    Args:
        names: in this order.
        flags: of each, hexadecimal.
        then: the steps that follow.
        end: how it ends.
        before: the steps that come first.
    """

    names: tuple[str, ...]
    flags: str
    then: tuple[str, ...]
    end: End
    before: tuple[str, ...] = ()


PRELOADS = {
    "in order, full": Preloading(IN_ORDER, "0", ("load=0,{shim}",), End.WORKS),
    "in order, bare": Preloading(IN_ORDER, "0", ("load=0,cudnn64_8.dll",), End.NOT_LOADED),
    "in order 1100": Preloading(IN_ORDER, "1100", ("load=1100,{shim}",), End.WORKS),
    "in order 8": Preloading(IN_ORDER, "8", ("load=8,{shim}",), End.WORKS),
    "alphabetical, flags 0": Preloading(ALPHABETICAL, "0", ("load=0,{shim}",), End.KILLED),
    "alphabetical 1100": Preloading(ALPHABETICAL, "1100", ("load=1100,{shim}",), End.WORKS),
    "alphabetical 8": Preloading(ALPHABETICAL, "8", ("load=8,{shim}",), End.WORKS),
    "shim first": Preloading(IN_ORDER, "1100", (), End.WORKS, before=("load=1100,{shim}",)),
    "all, later bare": Preloading((*IN_ORDER, SHIM), "1100", ("load=0,cudnn64_8.dll",), End.WORKS),
    "only ops_infer": Preloading(IN_ORDER[:1], "1100", ("load=1100,{shim}",), End.KILLED),
    "host allows System32 alone": Preloading(
        (*IN_ORDER, SHIM), "1100", (), End.WORKS, before=("default=800",)
    ),
}


@dataclass(frozen=True)
class Program:
    """A program that goes through loader steps.

    Args:
        host: where it runs.
        path: of the harness.
        folder: its working folder, which holds nothing.
        path_entries: folders that its PATH begins with.
    """

    host: Host
    path: Path
    folder: Path
    path_entries: tuple[Path, ...] = ()

    def run(self, *steps: str) -> str:
        environment = self.host.search_path(list(self.path_entries))
        argv = [self.host.path_argument(self.path), "watch", *steps]
        return self.host.run(argv, environment=environment, cwd=self.folder).stdout

    def end(self, *steps: str) -> End:
        output = self.run(*steps)
        code = re.search(r"^exit (\w+)$", output, re.MULTILINE)
        assert code, output
        return End(code[1])


@pytest.fixture
def elsewhere(windows_host: Host, tmp_path: Path) -> Program:
    return Program(windows_host, FIXTURES / "loader" / "harness.exe", tmp_path)


@pytest.fixture
def whole_set(windows_host: Host) -> Folder:
    return Folder(windows_host.path_argument(FIXTURES / "cudnn8" / "8.9.5.29"))


@pytest.mark.parametrize(("steps", "end"), ROWS.values(), ids=ROWS.keys())
def test_search_rules(steps: list[str], end: End, elsewhere: Program, whole_set: Folder) -> None:
    found = elsewhere.end(*(whole_set.fill(step) for step in steps), "check")

    assert end is found


@pytest.mark.parametrize("preloading", PRELOADS.values(), ids=PRELOADS.keys())
def test_preloading(preloading: Preloading, elsewhere: Program, whole_set: Folder) -> None:
    steps = [whole_set.fill(step) for step in preloading.before]
    steps += whole_set.preload("try", preloading.flags, preloading.names)
    steps += [whole_set.fill(step) for step in preloading.then]

    found = elsewhere.end(*steps, "check")

    assert preloading.end is found


def test_alphabetical_preloading_without_flags_fails_for_four(
    elsewhere: Program, whole_set: Folder
) -> None:
    output = elsewhere.run(*whole_set.preload("try", "0", ALPHABETICAL))

    assert [int(code) for code in re.findall(r"^load \S+ (\d+)$", output, re.MULTILINE)] == [
        126,
        126,
        126,
        126,
        0,
        0,
    ]


def lay_beside(folder: Path, version: str, names: tuple[str, ...]) -> Path:
    """Copy the harness and some libraries into one folder."""
    folder.mkdir()
    for name in names:
        shutil.copy(FIXTURES / "cudnn8" / version / name, folder)
    return Path(shutil.copy(FIXTURES / "loader" / "harness.exe", folder))


def test_libraries_beside_the_program_win_over_path(windows_host: Host, tmp_path: Path) -> None:
    path = lay_beside(tmp_path / "app", "8.9.5.29", (*IN_ORDER, SHIM))
    older = FIXTURES / "cudnn8" / "8.5.0.96"
    program = Program(windows_host, path, tmp_path, (older,))

    output = program.run("load=0,cudnn64_8.dll", "check", "modules")

    assert "cudnnGetVersion 8905" in output
    modules = re.findall(r"^module (.+)\\[^\\]+$", output, re.MULTILINE)
    assert {windows_host.path_argument(tmp_path / "app")} == set(modules)


def test_main_library_alone_takes_its_companions_from_path_in_silence(
    windows_host: Host, tmp_path: Path
) -> None:
    path = lay_beside(tmp_path / "app", "8.9.5.29", (SHIM,))
    older = FIXTURES / "cudnn8" / "8.5.0.96"
    program = Program(windows_host, path, tmp_path, (older,))

    output = program.run("load=0,cudnn64_8.dll", "check")

    assert "cudnnGetVersion 8500" in output
    assert {"0"} == set(re.findall(r"VersionCheck (\d+)", output))


def test_other_version_on_path_is_found_by_a_program_alone(
    windows_host: Host, tmp_path: Path
) -> None:
    path = lay_beside(tmp_path / "app", "8.9.5.29", ())
    older = FIXTURES / "cudnn8" / "8.5.0.96"

    assert End.NOT_LOADED is Program(windows_host, path, tmp_path).end("load=0,cudnn64_8.dll")
    found = Program(windows_host, path, tmp_path, (older,)).run("load=0,cudnn64_8.dll", "check")
    assert "cudnnGetVersion 8500" in found


@pytest.mark.parametrize(
    ("foreign", "version", "mismatches"),
    [
        pytest.param("cudnn_ops_infer64_8.dll", 8500, 5, id="ops_infer"),
        pytest.param("cudnn_cnn_infer64_8.dll", 8905, 2, id="cnn_infer"),
        pytest.param(SHIM, 8905, 0, id="the main library, which no check sees"),
    ],
)
def test_mixed_set_answers(
    foreign: str, version: int, mismatches: int, windows_host: Host, tmp_path: Path
) -> None:
    path = lay_beside(tmp_path / "app", "8.9.5.29", (*IN_ORDER, SHIM))
    shutil.copy(FIXTURES / "cudnn8" / "8.5.0.96" / foreign, path.parent)

    output = Program(windows_host, path, tmp_path).run("load=0,cudnn64_8.dll", "check")

    assert f"cudnnGetVersion {version}" in output
    assert mismatches == len(re.findall(r"VersionCheck 14$", output, re.MULTILINE))
