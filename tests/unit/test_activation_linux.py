"""The import package on Linux with real libraries, and on the oldest Python that it serves."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.activation_package import NAME, SWITCH, lay_package

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)
NEEDS_CUBLAS = [
    {"name": "libcublas.so.11", "needed_by": [], "kind": "required", "reason": "", "provider": "w"}
]
OPS = """
#include <stddef.h>
size_t cudnnGetVersion(void) { return 8905; }
size_t cudnnGetCudartVersion(void) { return 11080; }
int cudnnOpsInferVersionCheck(void) { return 0; }
"""
# Opens its part by bare name at the first call and ends the process without it, as cuDNN does.
MAIN = """
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
static void *part(const char *name) {
    void *library = dlopen("libcudnn_ops_infer.so.8", RTLD_NOW);
    if (!library) { fprintf(stderr, "Could not load library %s\\n", dlerror()); abort(); }
    return dlsym(library, name);
}
size_t cudnnGetVersion(void) { return ((size_t (*)(void))part("cudnnGetVersion"))(); }
size_t cudnnGetCudartVersion(void) { return 11080; }
int cudnnOpsInferVersionCheck(void) {
    return ((int (*)(void))part("cudnnOpsInferVersionCheck"))();
}
"""


def compile_library(target: Path, source: str, *options: str) -> bytes:
    """Compile C into a shared library whose SONAME is its file's name."""
    target.parent.mkdir(parents=True, exist_ok=True)
    argv = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(target)]
    argv += [f"-Wl,-soname,{target.name}", "-Wl,--no-as-needed", "-x", "none", *options]
    subprocess.run(argv, input=source.encode(), check=True)
    return target.read_bytes()


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Compile a cuDNN of two libraries."""
    folder = tmp_path_factory.mktemp("built")
    return {
        "libcudnn_ops_infer.so.8": compile_library(folder / "libcudnn_ops_infer.so.8", OPS),
        "libcudnn.so.8": compile_library(folder / "libcudnn.so.8", MAIN),
    }


@pytest.fixture
def site(tmp_path: Path, libraries: dict[str, bytes]) -> Path:
    """Lay the package into a folder with an awkward name."""
    site = tmp_path / "br [x] é中; b"
    lay_package(site, libraries)
    return site


def pythons() -> list[str]:
    """Name this Python and the oldest one that is served, if it is here."""
    oldest = os.environ.get("CUDNN_BUNDLER_PYTHON38") or shutil.which("python3.8")
    # A version manager's stand-in is found on PATH and does not run.
    runs = oldest and subprocess.run([oldest, "-V"], capture_output=True, check=False)
    return [sys.executable, *([oldest] if oldest and runs and runs.returncode == 0 else [])]


def run(
    site: Path, code: str, python: str = sys.executable, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a snippet with the package importable."""
    prelude = f"import sys, json; sys.path.insert(0, {str(site)!r})\n"
    clean = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", **environment}
    return subprocess.run(
        [python, "-X", "utf8", "-W", "error", "-c", prelude + code],
        env=clean,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def answer(site: Path, code: str, python: str = sys.executable, **environment: str) -> Any:  # noqa: ANN401 - JSON
    """Run a snippet that prints JSON."""
    completed = run(site, code, python, **environment)
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


@pytest.mark.parametrize("python", pythons(), ids=os.path.basename)
def test_importing_makes_a_bare_name_work_anywhere_in_the_process(
    site: Path, libraries: dict[str, bytes], python: str
) -> None:
    code = (
        "import os; before = dict(os.environ)\n"
        f"import {NAME} as c, ctypes\n"
        "version = ctypes.CDLL('libcudnn.so.8').cudnnGetVersion()\n"
        "print(json.dumps([version, c.loaded(), dict(os.environ) == before, c.__version__]))"
    )

    version, loaded, unchanged, release = answer(site, code, python)

    folder = site / NAME / "lib"
    assert version == 8905
    assert {name: str(folder / name) for name in libraries} == {
        name: path for name, path in loaded.items() if "cudnn" in name
    }
    assert unchanged
    assert release == "8.9.5.29"


def test_without_the_package_the_same_process_dies(site: Path) -> None:
    main = str(site / NAME / "lib" / "libcudnn.so.8")

    completed = run(site, f"import ctypes; ctypes.CDLL({main!r}).cudnnGetVersion()")

    assert completed.returncode == -6
    assert "Could not load library" in completed.stderr


@pytest.mark.parametrize("python", pythons(), ids=os.path.basename)
def test_check_passes_without_a_gpu_and_the_module_prints_it(site: Path, python: str) -> None:
    main = f"import runpy; sys.argv = ['m', '--json']; runpy.run_module({NAME!r}, None, '__main__')"

    report = answer(site, main, python, **{SWITCH: "off"})

    stages = {each["stage"]: each for each in report["stages"]}
    assert stages["versions"]["status"] == "passed"
    assert stages["versions"]["facts"]["cudnnGetVersion"] == 8905
    if stages["create"]["status"] == "not-run":
        assert report["result"] == "passed-without-gpu"


def test_switched_off_nothing_is_loaded_until_asked(site: Path) -> None:
    code = (
        f"import {NAME} as c\n"
        "count = lambda: sum('cudnn' in name for name in c.loaded())\n"
        "before = count(); c.activate(); print(json.dumps([before, count()]))"
    )

    assert answer(site, code, **{SWITCH: "off"}) == [0, 2]


def test_another_copy_in_the_process_is_a_conflict(
    site: Path, tmp_path: Path, libraries: dict[str, bytes]
) -> None:
    other = tmp_path / "other" / "libcudnn_ops_infer.so.8.5.0"
    other.parent.mkdir()
    other.write_bytes(libraries["libcudnn_ops_infer.so.8"])

    completed = run(site, f"import ctypes; ctypes.CDLL({str(other)!r}); import {NAME}")

    assert completed.returncode == 1
    assert "ConflictError" in completed.stderr
    assert str(other) in completed.stderr


@pytest.mark.parametrize("provided", [True, False], ids=["with cuBLAS", "without cuBLAS"])
def test_a_linked_need_comes_from_nvidias_wheel_or_is_named(tmp_path: Path, provided: bool) -> None:
    cublas = tmp_path / "site" / "nvidia" / "cublas" / "lib" / "libcublas.so.11"
    compile_library(cublas, "int cublas;")
    ops = compile_library(tmp_path / "libcudnn_ops_infer.so.8", OPS, str(cublas))
    main = compile_library(tmp_path / "libcudnn.so.8", MAIN)
    payload = {"libcudnn_ops_infer.so.8": ops, "libcudnn.so.8": main}
    lay_package(tmp_path / "site", payload, needs=NEEDS_CUBLAS)
    if not provided:
        cublas.unlink()
    code = (
        f"import {NAME} as c; a = c.activate()\n"
        "print(json.dumps([a.needs[0].path, list(a.not_loaded), c.check()['first_failure']]))"
    )

    path, not_loaded, failure = answer(tmp_path / "site", code)

    if provided:
        assert [str(cublas), [], None] == [path, not_loaded, failure]
    else:
        assert [path, not_loaded] == [None, ["libcudnn_ops_infer.so.8"]]
        assert failure["stage"] == "library"
        assert "libcublas.so.11" in failure["reason"]
        assert "install libcublas.so.11" in failure["remedy"]


def test_a_child_of_a_fork_can_use_it(site: Path) -> None:
    code = (
        f"import {NAME} as c, os, threading\n"
        "child = os.fork()\n"
        "if not child: os._exit(len(c.activate().modules))\n"
        "print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))"
    )

    assert answer(site, code) == 2


def test_libraries_for_another_system_are_refused(tmp_path: Path) -> None:
    identity = {"version": "8.9.5.29", "cuda": "11", "platform": "windows-x86_64"}
    lay_package(tmp_path, {"cudnn64_8.dll": b"MZ"}, identity=identity)

    completed = run(tmp_path, f"import {NAME}")

    assert completed.returncode == 1
    assert "do not run on linux" in completed.stderr
