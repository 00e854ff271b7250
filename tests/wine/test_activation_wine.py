"""The wheel's import package in a real Windows Python, with stand-ins of cuDNN."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.activation_package import NAME, SWITCH
from tests.wine.windows import LOAD_ORDER, cudnn_folder, lay_windows_package

if TYPE_CHECKING:
    from pathlib import Path

    from tests.wine.windows import Interpreter

MAIN = "cudnn64_8.dll"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Lay the package into a folder with a name that breaks globs, PATH and code pages."""
    site = tmp_path / "br [x] é中;"
    lay_windows_package(site)
    return site


def test_every_module_is_inside_with_another_version_first_on_path(
    interpreter: Interpreter, site: Path
) -> None:
    poison = interpreter.host.search_path([cudnn_folder("8.5.0.96")])
    code = (
        f"import json, {NAME} as c, ctypes\n"
        f"version = ctypes.WinDLL({MAIN!r}, winmode=0).cudnnGetVersion()\n"
        "print(json.dumps([version, c.loaded()]))"
    )

    version, loaded = interpreter.answer(code, sites=[site], environment=poison)

    assert version == 8905
    inside = interpreter.host.path_argument(site / NAME / "bin")
    assert {name: f"{inside}\\{name}" for name in LOAD_ORDER} == {
        name: path for name, path in loaded.items() if name.startswith("cudnn")
    }


def test_the_poison_works_without_the_package(interpreter: Interpreter) -> None:
    poison = interpreter.host.search_path([cudnn_folder("8.5.0.96")])
    code = f"import ctypes; print(ctypes.WinDLL({MAIN!r}, winmode=0).cudnnGetVersion())"

    assert interpreter.answer(code, environment=poison) == 8500


def test_registering_the_folder_alone_would_not_do(
    interpreter: Interpreter, tmp_path: Path
) -> None:
    # Without a semicolon: Wine's list of added folders cannot hold one.
    site = tmp_path / "plain"
    lay_windows_package(site)
    code = (
        f"import os, ctypes, {NAME} as c; os.add_dll_directory(c.library_dir())\n"
        f"ctypes.WinDLL({MAIN!r}).cudnnGetVersion()"
    )

    run = interpreter.code(code, sites=[site], environment={SWITCH: "off"})

    assert run.exit_code == 9
    assert "Could not locate" in run.stdout + run.stderr


@pytest.mark.parametrize(
    "call",
    [
        pytest.param("ctypes.WinDLL({main!r})", id="as ctypes does"),
        pytest.param("ctypes.WinDLL({main!r}, winmode=0)", id="as LoadLibrary does"),
        pytest.param(
            "(kernel32.SetDefaultDllDirectories(0x800), ctypes.WinDLL({main!r}, winmode=0))[1]",
            id="in a program that searches System32 only",
        ),
    ],
)
def test_other_code_finds_it_by_bare_name(
    interpreter: Interpreter, site: Path, tmp_path: Path, call: str
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    consumer = f"import ctypes\nkernel32 = ctypes.WinDLL('kernel32')\nlibrary = {call}\n"
    (other / "consumer.py").write_text(consumer.format(main=MAIN), encoding="utf-8")
    code = (
        f"import json, {NAME}, consumer\n"
        "parts = [p + k for p in ('Ops', 'Cnn', 'Adv') for k in ('Infer', 'Train')]\n"
        "calls = [getattr(consumer.library, f'cudnn{part}VersionCheck')() for part in parts]\n"
        "print(json.dumps([consumer.library.cudnnGetVersion(), calls]))"
    )

    assert interpreter.answer(code, sites=[site, other]) == [8905, [0] * 6]


def conflict(interpreter: Interpreter, then: str) -> str:
    """Write a snippet that loads a part of another version first."""
    part = cudnn_folder("8.5.0.96") / LOAD_ORDER[0]
    return f"import ctypes; o = ctypes.WinDLL({interpreter.host.path_argument(part)!r})\n{then}"


def test_another_copy_in_the_process_is_named_with_its_version(
    interpreter: Interpreter, site: Path
) -> None:
    code = conflict(
        interpreter,
        f"import json\ntry: import {NAME}\nexcept ImportError as error:\n"
        "    print(json.dumps([type(error).__name__, str(error)]))",
    )

    name, text = interpreter.answer(code, sites=[site])

    assert name == "ConflictError"
    assert f"{LOAD_ORDER[0]} 8.5.0.96 from " in text
    assert interpreter.host.path_argument(cudnn_folder("8.5.0.96")) in text


def test_another_copy_can_be_adopted(interpreter: Interpreter, site: Path) -> None:
    code = conflict(
        interpreter,
        "import json, warnings\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        f"    warnings.simplefilter('always'); import {NAME} as c\n"
        "print(json.dumps([[w.category.__name__ for w in caught], list(c.activate().adopted),\n"
        "                  [n for n in c.loaded() if n.startswith('cudnn')]]))",
    )

    categories, adopted, loaded = interpreter.answer(
        code, sites=[site], environment={f"{SWITCH}_CONFLICT": "adopt"}
    )

    assert categories == ["RuntimeWarning"]
    assert adopted == loaded == [LOAD_ORDER[0]]


def test_switched_off_nothing_is_loaded_until_asked(interpreter: Interpreter, site: Path) -> None:
    code = (
        f"import json, {NAME} as c\n"
        "count = lambda: sum(name.startswith('cudnn') for name in c.loaded())\n"
        "before = count(); c.activate(); print(json.dumps([before, count()]))"
    )

    assert interpreter.answer(code, sites=[site], environment={SWITCH: "off"}) == [0, 7]


def test_deactivation_unloads_what_nobody_else_holds(interpreter: Interpreter, site: Path) -> None:
    code = (
        f"import json, {NAME} as c\n"
        "count = lambda: sum(name.startswith('cudnn') for name in c.loaded())\n"
        "active = count(); c.deactivate(); print(json.dumps([active, count()]))"
    )

    assert interpreter.answer(code, sites=[site]) == [7, 0]


def test_the_environment_stays_as_it_was(interpreter: Interpreter, site: Path) -> None:
    code = (
        "import json, os; before = dict(os.environ)\n"
        f"import {NAME} as c; c.check()\n"
        "print(json.dumps(before == dict(os.environ)))"
    )

    assert interpreter.answer(code, sites=[site]) is True


def test_verify_tells_missing_changed_and_extra_apart(interpreter: Interpreter, site: Path) -> None:
    folder = site / NAME / "bin"
    (folder / LOAD_ORDER[0]).unlink()
    (folder / LOAD_ORDER[1]).write_bytes(b"MZ")
    (folder / "zlibwapi.dll").write_bytes(b"MZ")
    code = (
        f"import json, {NAME} as c; found = c.verify()\n"
        "print(json.dumps([found.missing, found.changed, found.extra]))"
    )

    found = interpreter.answer(code, sites=[site], environment={SWITCH: "off"})

    assert found == [[LOAD_ORDER[0]], [LOAD_ORDER[1]], ["zlibwapi.dll"]]


def check(interpreter: Interpreter, site: Path) -> dict[str, Any]:
    """Run the check as `python -m` does, and give its report."""
    start = f"runpy.run_module({NAME!r}, None, '__main__')"
    code = f"import runpy, sys; sys.argv = ['m', '--json']; {start}"
    run = interpreter.code(code, sites=[site], environment={SWITCH: "off"})
    report: dict[str, Any] = json.loads(run.stdout)
    assert run.exit_code == (5 if report["result"] == "failed" else 0), run.stderr
    return report


def test_check_reports_versions_and_modules(interpreter: Interpreter, site: Path) -> None:
    report = check(interpreter, site)

    stages = {each["stage"]: each for each in report["stages"]}
    assert report["result"] == "passed-without-gpu"
    assert stages["create"]["reason"] == "no NVIDIA driver"
    assert all(module["inside"] for module in stages["library"]["facts"]["modules"])
    versions = stages["versions"]["facts"]
    assert versions["cudnnGetVersion"] == 8905
    assert [each["status"] for each in versions["checks"]] == [0] * 6
    assert {each["version"] for each in versions["file_versions"]} == {"8.9.5.29"}


@pytest.mark.parametrize("name", LOAD_ORDER)
def test_check_finds_one_file_of_another_version(
    interpreter: Interpreter, site: Path, name: str
) -> None:
    data = (cudnn_folder("8.5.0.96") / name).read_bytes()
    (site / NAME / "bin" / name).write_bytes(data)

    failure = check(interpreter, site)["first_failure"]

    assert failure["stage"] == "versions"
    assert f"{name} is 8.5.0.96, expected 8.9.5.29" in failure["reason"]


def test_needs_come_from_nvidias_wheels_or_are_named(interpreter: Interpreter, site: Path) -> None:
    needs = [
        {"name": name, "needed_by": [], "kind": kind, "reason": "", "provider": "a wheel"}
        for name, kind in (("cublas64_11.dll", "required"), ("cublasLt64_11.dll", "required"))
    ]
    lock = site / NAME / "cudnn.lock.json"
    document = json.loads(lock.read_text(encoding="utf-8")) | {"needs": needs}
    lock.write_text(json.dumps(document), encoding="utf-8")
    # Any library that links to nothing serves as cuBLAS here.
    cublas = site / "nvidia" / "cublas" / "bin" / "cublas64_11.dll"
    cublas.parent.mkdir(parents=True)
    cublas.write_bytes((cudnn_folder("8.9.5.29") / LOAD_ORDER[0]).read_bytes())
    code = (
        f"import json, {NAME} as c; a = c.activate()\n"
        "print(json.dumps([[n.path for n in a.needs], [n.need.name for n in a.missing]]))"
    )

    paths, missing = interpreter.answer(code, sites=[site])

    assert paths == [None, interpreter.host.path_argument(cublas)]
    assert missing == ["cublasLt64_11.dll"]
