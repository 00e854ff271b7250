"""The wheel's `--torch` and `--tensorflow`, with frameworks of a few lines that fake a GPU."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.activation_package import NAME, Modules, lay_package
from tests.unit.test_activation_linux import MAIN, OPS, compile_library, pythons

needs_compiler = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="needs Linux and a C compiler"
)
STAGES = ["activation", "import", "version", "convolution", "modules", "benchmark"]
# Opens cuDNN by bare name, as the real ones do, so that it depends on the activation.
COMMON = """
import ctypes, os, time
from contextlib import contextmanager
from types import SimpleNamespace as Space

__version__ = "2.1.0"
print("a framework that talks", end="")
if S.get("raises"):
    raise OSError("libtorch_cuda.so: undefined symbol")
library = ctypes.CDLL(S.get("library", "libcudnn.so.8"))
answer = library.cudnnGetVersion()

class Tensor:
    def __init__(self, shape, value, device="cpu"):
        self.shape, self.value, self.device = shape, value, device
    def to(self, device):
        return Tensor(self.shape, self.value, "cuda:0" if device == "cuda" else device)
    def __sub__(self, other):
        return Tensor(self.shape, self.value - other.value)
    def __mul__(self, factor):
        return Tensor(self.shape, self.value * factor)
    def abs(self):
        return Tensor(self.shape, max(self.value, -self.value))
    def max(self):
        return self
    def all(self):
        return self.value
    def __float__(self):
        return float(self.value)

def finite(tensor):
    return Tensor(tensor.shape, -1e30 < tensor.value < 1e30)

def convolved(shape, value, device):
    on_gpu = device != "cpu"
    if on_gpu and S.get("aborts"):
        os.abort()
    error = S.get("error", 0.001) if on_gpu else 0
    if on_gpu and S.get("shape"):
        shape = S["shape"]
    return Tensor(shape, value * 27 + float(error), device)
"""
TORCH = """
enabled = True

@contextmanager
def flags(enabled):
    before, globals()["enabled"] = globals()["enabled"], enabled
    yield
    globals()["enabled"] = before

@contextmanager
def no_grad():
    yield

class Conv2d:
    def __init__(self, channels, filters, kernel, padding):
        self.filters, self.trim, self.device = filters, kernel - 1 - 2 * padding, "cpu"
    def to(self, device):
        self.device = "cuda:0"
        return self
    def __call__(self, image):
        assert image.device == self.device
        if S.get("idle") or not enabled:
            time.sleep(0.002)
        batch, _, height, width = image.shape
        shape = (batch, self.filters, height - self.trim, width - self.trim)
        return convolved(shape, image.value, self.device)

def randn(*shape):
    return Tensor(shape, 0.5)

manual_seed, isfinite = int, finite
nn = Space(Conv2d=Conv2d)
version = Space(cuda="11.8" if S.get("cuda", True) else None)
cuda = Space(is_available=lambda: S.get("gpu", S.get("cuda", True)), synchronize=lambda: None)
backends = Space(cudnn=Space(flags=flags, version=lambda: S.get("version", answer)))
"""
TENSORFLOW = """
place = "/CPU:0"

@contextmanager
def device(name):
    before, globals()["place"] = place, name
    yield
    globals()["place"] = before

def conv2d(image, filters, strides, padding):
    assert (strides, padding) == (1, "SAME")
    real = S.get("place", "job:localhost/device:GPU:0") if "GPU" in place else "cpu"
    return convolved((*image.shape[:3], filters.shape[3]), image.value, real)

info = {"cudnn_version": S.get("version", "8")} if S.get("cuda", True) else {}
sysconfig = Space(get_build_info=lambda: info)
gpus = ["GPU:0"] if S.get("cuda", True) and S.get("gpu", True) else []
config = Space(list_physical_devices=lambda kind: gpus)
test = Space(is_built_with_cuda=lambda: S.get("cuda", True))
random = Space(stateless_normal=lambda shape, seed: Tensor(shape, 0.5))
nn, math = Space(conv2d=conv2d), Space(is_finite=finite)
reduce_all, reduce_max, abs = Tensor.all, Tensor.max, Tensor.abs
"""
SOURCES = {"torch": TORCH, "tensorflow": TENSORFLOW}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lay the package, with a cuDNN of two libraries, and a second copy beside it."""
    base = tmp_path_factory.mktemp("laid")
    parts = {"libcudnn_ops_infer.so.8": OPS, "libcudnn.so.8": MAIN}
    built = {name: compile_library(base / "copy" / name, text) for name, text in parts.items()}
    lay_package(base / "br [x] é", built)
    return base / "br [x] é"


def fake(folder: Path, framework: str, settings: dict[str, object]) -> None:
    """Write a framework into a folder."""
    package = folder / framework
    package.mkdir(parents=True)
    text = f"S = {settings!r}\nnan = float('nan')\n{COMMON}{SOURCES[framework]}"
    (package / "__init__.py").write_text(text, encoding="utf-8")


def run(
    site: Path, fakes: Path, *arguments: str, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    """Run `python -m` with the package's name."""
    return subprocess.run(
        [python, "-X", "utf8", "-m", NAME, *arguments],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{site}{os.pathsep}{fakes}"},
        cwd=site.parent,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def by_name(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Order the stages by their names."""
    assert [each["stage"] for each in report["stages"]] == STAGES
    return {each["stage"]: each for each in report["stages"]}


@needs_compiler
@pytest.mark.parametrize("python", pythons(), ids=os.path.basename)
@pytest.mark.parametrize("framework", ["torch", "tensorflow"])
def test_a_framework_that_uses_this_cudnn_passes(
    site: Path, tmp_path: Path, framework: str, python: str
) -> None:
    fake(tmp_path, framework, {})

    completed = run(site, tmp_path, f"--{framework}", "--json", "--require-gpu", python=python)

    assert completed.returncode == 0, completed.stdout + completed.stderr
    report = json.loads(completed.stdout)
    assert [report[key] for key in ("probe", "framework", "result", "first_failure")] == [
        "cudnn-check",
        framework,
        "passed",
        None,
    ]
    stages = by_name(report)
    facts = stages["version"]["facts"]
    assert facts["framework"] == (8905 if framework == "torch" else "8")
    assert [facts["locked"], facts["locked_release"]] == [8905, "8.9.5.29"]
    modules = stages["modules"]["facts"]["modules"]
    assert {(each["path"], each["inside"]) for each in modules} == {
        (str(site / NAME / "lib" / name), True)
        for name in ("libcudnn.so.8", "libcudnn_ops_infer.so.8")
    }
    benchmark = stages["benchmark"]
    if framework == "torch":
        assert benchmark["facts"]["ratio"] > 1.1
        assert not benchmark["reason"]
    else:
        assert benchmark["status"] == "not-run"
        assert "not timed: tensorflow has no switch" in benchmark["reason"]


@needs_compiler
@pytest.mark.parametrize(
    ("framework", "settings", "failed", "words"),
    [
        pytest.param("torch", {"raises": 1}, "import", "undefined symbol", id="import raises"),
        pytest.param("torch", {"version": 90100}, "version", "torch wants cuDNN 9 and", id="major"),
        pytest.param("torch", {"version": 8500}, "version", "works with cuDNN 8500", id="minor"),
        pytest.param("torch", {"version": None}, "version", "without cuDNN", id="no cuDNN"),
        pytest.param("torch", {"error": 0.1}, "convolution", "differs from", id="wrong value"),
        pytest.param("torch", {"error": "nan"}, "convolution", "not numbers", id="NaN"),
        pytest.param(
            "torch", {"shape": (1, 64, 222, 222)}, "convolution", "has the shape", id="shape"
        ),
        pytest.param("torch", {"aborts": 1}, "convolution", "with signal 6", id="death"),
        pytest.param("tensorflow", {"version": "64_9"}, "version", "wants cuDNN 9", id="TF major"),
        pytest.param("tensorflow", {"version": "8.12"}, "version", "newer than", id="TF minor"),
        pytest.param("tensorflow", {"place": "cpu"}, "convolution", "instead of the GPU", id="CPU"),
        pytest.param("tensorflow", {"error": 0.1}, "convolution", "differs from", id="TF value"),
        pytest.param("tensorflow", {"aborts": 1}, "convolution", "with signal 6", id="TF death"),
    ],
)
def test_a_failure_has_its_own_sentence(
    site: Path, tmp_path: Path, framework: str, settings: dict[str, object], failed: str, words: str
) -> None:
    fake(tmp_path, framework, settings)

    completed = run(site, tmp_path, f"--{framework}", "--json")

    assert completed.returncode == 5, completed.stdout + completed.stderr
    report = json.loads(completed.stdout, parse_constant=pytest.fail)
    assert report["result"] == "failed"
    assert report["first_failure"]["stage"] == failed
    assert words in report["first_failure"]["reason"]
    assert report["first_failure"]["remedy"]
    later = STAGES[STAGES.index(failed) + 1 :]
    assert {by_name(report)[name]["status"] for name in later} == {"not-run"}


@needs_compiler
@pytest.mark.parametrize("framework", ["torch", "tensorflow"])
def test_a_framework_that_brings_its_own_copy_fails_with_the_path(
    site: Path, tmp_path: Path, framework: str
) -> None:
    copy = str(site.parent / "copy" / "libcudnn.so.8")
    fake(tmp_path, framework, {"library": copy})

    completed = run(site, tmp_path, f"--{framework}", "--text")

    assert completed.returncode == 5
    assert f"brought its own copy of cuDNN: {copy}" in completed.stdout
    assert f"{copy} (NOT of this package)" in completed.stdout
    assert f"next: import {NAME} before {framework}" in completed.stdout
    assert "LD_LIBRARY_PATH" in completed.stdout


@needs_compiler
@pytest.mark.parametrize("require", [True, False], ids=["GPU required", "not required"])
@pytest.mark.parametrize(
    ("framework", "settings", "reason"),
    [
        ("torch", {"cuda": False, "version": None}, "torch was built without CUDA"),
        ("torch", {"gpu": False}, "torch sees no GPU"),
        ("tensorflow", {"cuda": False}, "tensorflow was built without CUDA"),
        ("tensorflow", {"gpu": False}, "tensorflow sees no GPU"),
    ],
)
def test_without_a_gpu_nothing_is_claimed(
    site: Path,
    tmp_path: Path,
    framework: str,
    settings: dict[str, object],
    reason: str,
    require: bool,
) -> None:
    fake(tmp_path, framework, settings)
    required = ["--require-gpu"] if require else []

    completed = run(site, tmp_path, f"--{framework}", "--json", *required)

    report = json.loads(completed.stdout)
    assert completed.returncode == (6 if require else 0)
    assert report["result"] == "passed-without-gpu"
    for name in STAGES[3:]:
        stage = by_name(report)[name]
        assert stage["status"] == "not-run"
        assert reason in stage["reason"]


@needs_compiler
@pytest.mark.parametrize("framework", ["torch", "tensorflow"])
def test_a_framework_that_is_not_installed_is_said_so(
    site: Path, tmp_path: Path, framework: str
) -> None:
    (tmp_path / framework).mkdir()

    completed = run(site, tmp_path, f"--{framework}")

    assert completed.returncode == 6
    assert f"import: not-run {framework} is not installed in this Python" in completed.stdout
    assert "result: not-run" in completed.stdout


@needs_compiler
def test_a_cudnn_that_is_not_faster_is_doubted(site: Path, tmp_path: Path) -> None:
    fake(tmp_path, "torch", {"idle": True})

    completed = run(site, tmp_path, "--torch", "--json")

    benchmark = by_name(json.loads(completed.stdout))["benchmark"]
    assert benchmark["status"] == "passed"
    assert "no faster than without cuDNN" in benchmark["reason"]
    assert benchmark["facts"]["cudnn_on_ms"] >= 2


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Modules:
    """Import the package once."""
    return Modules(tmp_path_factory.mktemp("site"))


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (8905, (8, 9)),
        (7605, (7, 6)),
        (90100, (9, 1)),
        (91900, (9, 19)),
        ("8", (8, 0)),
        ("8.6", (8, 6)),
        ("64_8", (8, 0)),
    ],
)
def test_split_version(modules: Modules, version: int | str, expected: tuple[int, int]) -> None:
    assert expected == modules.frameworks.split_version(version)


def test_ten_warm_up_and_fifty_timed_runs(modules: Modules) -> None:
    runs: list[int] = []
    waits: list[int] = []

    modules.convolutions._median(lambda: runs.append(1), lambda: waits.append(1))

    assert [len(runs), len(waits)] == [60, 51]


@pytest.mark.parametrize(
    ("exit_code", "told", "failed"),
    [
        (0, 6, None),
        (-11, 6, "benchmark"),
        (0, 3, "convolution"),
        (None, 1, "import"),
        (1, 0, "activation"),
    ],
)
def test_silence_and_a_bad_end_are_no_pass(
    modules: Modules, exit_code: int | None, told: int, failed: str | None
) -> None:
    passed = {"status": "passed", "reason": "", "remedy": "", "facts": {}}
    lines = [f"cudnn-check> {json.dumps({'stage': name, **passed})}" for name in STAGES[:told]]
    end = modules.check.ChildEnd(exit_code, "\n".join(lines), "")

    report = modules.frameworks.read_framework_end("torch", end)

    assert failed == (report["first_failure"] or {}).get("stage")
    assert [each["stage"] for each in report["stages"]] == STAGES
