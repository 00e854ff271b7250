"""`cudnn-check` on this machine, with stand-ins of the driver and of cuDNN 9 that are built here.

They put every failure of a GPU machine within reach of a machine that has none.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PREBUILT = ROOT / "bundler" / "probe" / "prebuilt" / f"linux-{platform.machine()}"
SOURCES = ROOT / "tests" / "fixtures" / "linux"
ENGINES = tuple(
    f"libcudnn_{name}.so.9"
    for name in ("engines_precompiled", "engines_runtime_compiled", "heuristic")
)
CUBLAS = "libcublasLt.so.13"
LARGEST_PROBE = 100_000

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not PREBUILT.is_dir(), reason="there is no probe for this machine"
)


def compiler() -> list[str]:
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if found:
        return [found]
    if find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    pytest.skip("no C compiler: pip install ziglang")


@pytest.fixture(scope="session")
def stand_ins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the stand-ins once: cuDNN in the folder, the driver in its `driver` folder."""
    folder = tmp_path_factory.mktemp("stand-ins")
    (folder / "driver").mkdir()
    empty = folder / "empty.c"
    empty.write_text("int nothing;\n")
    outputs = {
        folder / "driver" / "libcuda.so.1": SOURCES / "stand_in_driver.c",
        folder / "libcudnn.so.9": SOURCES / "stand_in_cudnn.c",
        **dict.fromkeys((folder / name for name in (*ENGINES, CUBLAS)), empty),
    }
    for output, source in outputs.items():
        argv = [*compiler(), "-O2", "-w", "-shared", "-fPIC", "-o", str(output), str(source)]
        subprocess.run([*argv, "-ldl"], check=True)
    empty.unlink()
    return folder


@dataclass(frozen=True)
class Answer:
    exit_code: int
    document: dict[str, Any]

    def stage(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = next(
            stage for stage in self.document["stages"] if stage["stage"] == name
        )
        return found


@dataclass(frozen=True)
class Machine:
    """A folder with the probe and cuDNN, and a driver or none."""

    folder: Path

    def environment(self, settings: dict[str, str], *, driver: bool) -> dict[str, str]:
        path = {"LD_LIBRARY_PATH": str(self.folder / "driver")} if driver else {}
        return {"PATH": os.defpath, **path, **settings}

    def check(
        self, *arguments: str, driver: bool = True, settings: dict[str, str] | None = None
    ) -> Answer:
        run = subprocess.run(
            [self.folder / "cudnn-check", "--json", *arguments],
            env=self.environment(settings or {}, driver=driver),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=120,
            check=False,
        )
        return Answer(run.returncode, json.loads(run.stdout))


@pytest.fixture
def machine(stand_ins: Path, tmp_path: Path) -> Machine:
    folder = tmp_path / "a folder"
    shutil.copytree(stand_ins, folder)
    shutil.copy(PREBUILT / "cudnn-check", folder)
    return Machine(folder)


def test_a_machine_with_a_gpu_passes(machine: Machine) -> None:
    answer = machine.check("--require-gpu")

    assert answer.exit_code == 0, answer.document["first_failure"]
    assert answer.document["result"] == "passed"
    assert {stage["status"] for stage in answer.document["stages"]} == {"passed"}
    convolutions = answer.stage("convolution")["facts"]["convolutions"]
    assert [each["outputs"] for each in convolutions] == [
        *(2048, 990, 576, 768, 216, 2048),
        102_760_448,
    ]
    assert {each["mismatches"] for each in convolutions} == {0}
    assert {each["direction"] for each in convolutions} == {
        *("forward", "backward data", "backward filter"),
    }
    assert {each["type"] for each in convolutions} == {"fp32", "fp16"}
    benchmark = answer.stage("benchmark")
    assert benchmark["facts"]["milliseconds"] == pytest.approx(0.5)
    assert "close to 1" in benchmark["reason"]


@pytest.mark.parametrize(("arguments", "exit_code"), [((), 0), (("--require-gpu",), 6)])
@pytest.mark.parametrize("driver", [True, False], ids=["no device", "no driver"])
def test_no_gpu_is_never_a_pass_with_computing(
    arguments: tuple[str, ...], exit_code: int, driver: bool, machine: Machine
) -> None:
    answer = machine.check(*arguments, driver=driver, settings={"STAND_IN_DEVICES": "0"})

    assert answer.exit_code == exit_code
    assert answer.document["result"] == "passed-without-gpu"
    assert answer.stage("convolution")["status"] == "not-run"
    assert "no NVIDIA" in answer.stage("create")["reason"]


@dataclass(frozen=True)
class Failure:
    """What is set up, and what must be said.

    Args:
        settings: of the stand-ins.
        stage: that must fail first.
        reason: part of its sentence.
        remedy: part of what to do about it.
    """

    settings: dict[str, str]
    stage: str
    reason: str
    remedy: str


FAILURES = {
    "a wrong value": Failure(
        {"STAND_IN_FAULT": "wrong"}, "convolution", "1 of 2048 values are wrong", "SHA-256"
    ),
    "an output left as it was": Failure(
        {"STAND_IN_FAULT": "untouched"}, "convolution", "2048 of 2048 values", "SHA-256"
    ),
    "a wrong value in the large shape": Failure(
        {"STAND_IN_WRONG_LARGE": "7"}, "convolution", "7 of 102760448 values", "SHA-256"
    ),
    "GPU memory used up, seen by cuDNN": Failure(
        {"STAND_IN_FAULT": "allocation"}, "convolution", "ALLOCATION_FAILED", "benchmark mode off"
    ),
    "GPU memory used up, seen by the driver": Failure(
        {"STAND_IN_MEMORY": "100000000"}, "convolution", "out of memory", "close other programs"
    ),
    "a GPU that cuDNN has no code for": Failure(
        {"STAND_IN_FAULT": "architecture"}, "convolution", "ARCH_MISMATCH", "no code for this GPU"
    ),
    "a GPU newer than cuDNN": Failure(
        {"STAND_IN_FAULT": "older"}, "device", "up to compute capability 8.9", "a newer cuDNN"
    ),
    "a crash": Failure(
        {"STAND_IN_FAULT": "crash"}, "convolution", "ended by signal 11", "of one archive"
    ),
    "no handle": Failure(
        {"STAND_IN_FAULT": "create"}, "create", "NOT_INITIALIZED", "another copy of cuDNN"
    ),
    "cuBLAS missing when it is opened": Failure(
        {"STAND_IN_FAULT": "cublas"}, "create", f"could not find {CUBLAS}", f"put {CUBLAS}"
    ),
    "a mixed set": Failure(
        {"STAND_IN_FAULT": "mixed"}, "versions", "status 1002", "of one archive"
    ),
    "an engine missing": Failure(
        {"STAND_IN_FAULT": "engines"}, "engines", f"could not find {ENGINES[1]}", "the whole set"
    ),
    "a driver too old": Failure(
        {"STAND_IN_CUDA": "12040"}, "driver", "supports CUDA 12.4 at most", "newer NVIDIA driver"
    ),
    "a driver that does not start": Failure(
        {"STAND_IN_INIT": "803"}, "device", "cuInit returned 803", "two driver versions"
    ),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
def test_every_failure_has_its_sentence(failure: Failure, machine: Machine) -> None:
    answer = machine.check(settings=failure.settings)

    first = answer.document["first_failure"]
    assert answer.exit_code == 5
    assert answer.document["result"] == "failed"
    assert first["stage"] == failure.stage
    assert failure.reason in first["reason"]
    assert failure.remedy in first["remedy"]


def test_missing_cublas_is_named_before_cudnn_is_asked(machine: Machine) -> None:
    (machine.folder / CUBLAS).unlink()

    answer = machine.check()

    assert answer.document["first_failure"]["stage"] == "create"
    assert f"cuDNN needs {CUBLAS}, looked for in" in answer.document["first_failure"]["reason"]


@pytest.mark.parametrize("missing", ENGINES)
def test_missing_engine_is_named(missing: str, machine: Machine) -> None:
    (machine.folder / missing).unlink()

    answer = machine.check()

    assert answer.document["first_failure"]["stage"] == "engines"
    assert missing in answer.document["first_failure"]["reason"]


def test_import_of_cublas_is_found_in_the_wheel_beside_cudnn(
    machine: Machine, stand_ins: Path
) -> None:
    site = machine.folder / "nvidia"
    (site / "cublas" / "lib").mkdir(parents=True)
    (site / "cudnn" / "lib").mkdir(parents=True)
    source = site / "importer.c"
    source.write_text("int nothing; int importer(void) { return nothing; }\n")
    cublas = site / "cublas" / "lib" / CUBLAS
    flags = ["-shared", "-fPIC", f"-Wl,-soname,{CUBLAS}"]
    subprocess.run([*compiler(), *flags, "-o", str(cublas), str(source)], check=True)
    importer = site / "cudnn" / "lib" / ENGINES[0]
    flags = ["-shared", "-fPIC", "-Wl,--no-as-needed", str(cublas)]
    subprocess.run([*compiler(), *flags, "-o", str(importer), str(source)], check=True)
    for name in ("libcudnn.so.9", *ENGINES[1:]):
        shutil.copy(stand_ins / name, site / "cudnn" / "lib")
    (machine.folder / CUBLAS).unlink()

    answer = machine.check("--library-dir", str(site / "cudnn" / "lib"))

    assert answer.exit_code == 0, answer.document["first_failure"]
    assert answer.stage("create")["facts"]["needs"][0]["origin"] == "NVIDIA's wheels"


def test_check_can_fail_on_purpose(machine: Machine) -> None:
    answer = machine.check("--spoil")

    assert answer.exit_code == 5
    assert "1 of 2048 values are wrong" in answer.document["first_failure"]["reason"]


def test_library_of_another_folder_fails(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    program = shutil.copy(machine.folder / "cudnn-check", tmp_path / "elsewhere")
    environment = {"LD_LIBRARY_PATH": str(machine.folder)}

    run = subprocess.run([program], env=environment, capture_output=True, check=False)

    failure = json.loads(run.stdout)["first_failure"]
    assert run.returncode == 5
    assert f"{machine.folder}/libcudnn.so.9" in failure["reason"]
    assert "take the other folder off LD_LIBRARY_PATH" in failure["remedy"]


def test_shared_library_finds_the_same(machine: Machine) -> None:
    code = (
        "import ctypes, sys\n"
        "check = ctypes.CDLL(sys.argv[1]).cudnn_check_json\n"
        "check.restype = ctypes.c_char_p\n"
        "print(check(sys.argv[2].encode()).decode())\n"
    )
    argv = [sys.executable, "-c", code, str(PREBUILT / "cudnn-check.so"), str(machine.folder)]
    environment = machine.environment({}, driver=True)

    run = subprocess.run(argv, env=environment, capture_output=True, check=True)

    answer = Answer(run.returncode, json.loads(run.stdout))
    assert answer.document["result"] == "passed"
    for name in ("versions", "create", "convolution"):
        assert answer.stage(name) == machine.check().stage(name)


@pytest.mark.parametrize("name", ["cudnn-check", "cudnn-check.so", "decoy.so"])
def test_prebuilt_is_small(name: str) -> None:
    assert (PREBUILT / name).stat().st_size < LARGEST_PROBE


def test_decoy_says_version_one() -> None:
    assert ctypes.CDLL(str(PREBUILT / "decoy.so")).cudnnGetVersion() == 1
