"""`cudnn-check` on this machine, with stand-ins of the driver and of cuDNN 9 that are built here.

They put every failure of a GPU machine within reach of a machine that has none.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import runpy
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


CUDNN_8_0 = {"STAND_IN_VERSION": "8003", "STAND_IN_CUDART": "10020"}
CUDNN_9_0 = {"STAND_IN_VERSION": "90000", "STAND_IN_CUDART": "12030"}
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
        {"STAND_IN_CUDA": "12040"},
        "driver",
        "it supports CUDA 12.4 at most, and this cuDNN 9.28.1 for CUDA 13 needs CUDA 13.0, "
        "driver 580.65.06 or later",
        "update the NVIDIA display driver to 580.65.06 or a newer one, or use a cuDNN for CUDA 12",
    ),
    "a driver too old for the minor version of CUDA 10": Failure(
        {"STAND_IN_CUDA": "10010", **CUDNN_8_0},
        "driver",
        "this cuDNN 8.0.3 for CUDA 10 needs CUDA 10.2, driver 440.33 or later",
        "to 440.33",
    ),
    "a driver too old for a CUDA that is not in the table": Failure(
        {"STAND_IN_CUDA": "13020", "STAND_IN_CUDART": "14010"},
        "driver",
        "supports CUDA 13.2 at most, and this cuDNN 9.28.1 for CUDA 14 needs CUDA 14",
        "a newer NVIDIA driver, or use a cuDNN for CUDA 13",
    ),
    "a GPU older than cuDNN supports": Failure(
        {"STAND_IN_VERSION": "91700", "STAND_IN_CAPABILITY": "61"},
        "device",
        "this cuDNN 9.17.0 for CUDA 13 supports GPUs from compute capability 7.5 on, "
        "and this one has 6.1",
        "use a cuDNN up to 9.10.2 for CUDA 12",
    ),
    "a GPU newer than the table has for cuDNN": Failure(
        {**CUDNN_9_0, "STAND_IN_CAPABILITY": "120"},
        "device",
        "knows GPUs up to compute capability 9.0, and this one has 12.0",
        "use a newer cuDNN",
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


@pytest.mark.parametrize(
    ("fault", "stage", "missing"),
    [("silent", "engines", ENGINES[1]), ("mixed", "versions", "libcudnn_cnn.so.9")],
    ids=["an engine that cuDNN does not name", "a part that the version check wants"],
)
def test_what_is_not_in_the_folder_is_named(
    fault: str, stage: str, missing: str, machine: Machine
) -> None:
    (machine.folder / missing).unlink(missing_ok=True)

    answer = machine.check(settings={"STAND_IN_FAULT": fault})

    assert answer.document["first_failure"]["stage"] == stage
    reason = answer.document["first_failure"]["reason"]
    assert f"{missing} is not in {machine.folder}" in reason
    assert ENGINES[0] not in reason


def test_program_finds_what_lies_beside_it_before_the_system() -> None:
    assert b"$ORIGIN\0" in (PREBUILT / "cudnn-check").read_bytes()


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
    need = answer.stage("create")["facts"]["needs"][0]
    assert (need["path"], need["origin"]) == (str(cublas), "already loaded")


def compile_empty(path: Path, soname: str) -> Path:
    """Build an empty library that answers to a name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    source = path.with_name("source.c")
    source.write_text("int nothing;\n")
    flags = ["-shared", "-fPIC", f"-Wl,-soname,{soname}", "-o", str(path), str(source)]
    subprocess.run([*compiler(), *flags], check=True)
    source.unlink()
    return path


def test_engines_under_their_full_version_are_recognised(machine: Machine) -> None:
    for name in ENGINES:
        whole = machine.folder / f"{name}.28.1"
        (machine.folder / name).rename(whole)
        (machine.folder / name).symlink_to(whole.name)

    assert machine.check().exit_code == 0


@pytest.mark.parametrize("file_name", ["libcudnn_heuristic.so.9.14.0", "libother.so"])
def test_engine_of_another_copy_is_named(file_name: str, machine: Machine, tmp_path: Path) -> None:
    foreign = compile_empty(tmp_path / "elsewhere" / file_name, ENGINES[2])

    answer = machine.check(settings={"LD_PRELOAD": str(foreign)})

    engines = answer.stage("engines")
    assert answer.exit_code == 5
    assert engines["reason"] == (f"{ENGINES[2]} is {foreign} instead of a file of {machine.folder}")
    assert "keep one copy of cuDNN" in engines["remedy"]


@pytest.mark.parametrize(
    ("settings", "stage", "facts"),
    [
        (
            {**CUDNN_8_0, "STAND_IN_CUDA": "10020"},
            "driver",
            {"needs_cuda": "10.2", "needs_driver": "440.33"},
        ),
        (
            {**CUDNN_9_0, "STAND_IN_CUDA": "12000"},
            "driver",
            {"needs_cuda": "12.0", "needs_driver": "525.60.13"},
        ),
        (CUDNN_9_0, "device", {"oldest_supported": "5.0", "newest_supported": "9.0"}),
        (
            {"STAND_IN_VERSION": "91700", "STAND_IN_CAPABILITY": "75"},
            "device",
            {"oldest_supported": "7.5", "newest_supported": "12.1"},
        ),
        (
            {"STAND_IN_CAPABILITY": "61"},
            "device",
            {"oldest_supported": "not in the table", "newest_supported": "12.1"},
        ),
        (
            {"STAND_IN_CUDART": "14010", "STAND_IN_CUDA": "14000"},
            "driver",
            {"needs_cuda": "not in the table", "needs_driver": "not in the table"},
        ),
    ],
    ids=["exact CUDA 10", "CUDA 12.0 for 12.3", "old", "oldest", "newer cuDNN", "newer CUDA"],
)
def test_enough_by_the_table_or_not_in_it_passes(
    settings: dict[str, str], stage: str, facts: dict[str, str], machine: Machine
) -> None:
    answer = machine.check(settings=settings)

    found = answer.stage(stage)
    assert found["status"] == "passed", found["reason"]
    assert facts.items() <= found["facts"].items()


def test_the_driver_that_is_needed_is_told_where_there_is_none(machine: Machine) -> None:
    driver = machine.check(driver=False).stage("driver")

    assert driver["status"] == "not-run"
    assert driver["facts"] == {"needs_cuda": "13.0", "needs_driver": "580.65.06"}


def test_tables_of_the_probe_are_those_of_the_recipes() -> None:
    table = runpy.run_path(str(ROOT / "scripts" / "compatibility_table.py"))["table"]
    source = (ROOT / "recipes" / "compatibility.json").read_text(encoding="utf-8")

    committed = ROOT / "bundler" / "probe" / "compatibility_table.h"
    assert committed.read_text(encoding="utf-8") == table(source)


def test_a_check_that_takes_too_long_fails_at_the_stage_that_runs(machine: Machine) -> None:
    answer = machine.check("--timeout", "1", settings={"STAND_IN_FAULT": "hang"})

    failure = answer.document["first_failure"]
    assert answer.exit_code == 5
    assert failure["stage"] == "create"
    assert failure["reason"] == (
        "this stage had not come to an end when the 1 seconds of the check were over"
    )
    assert "--timeout SECONDS" in failure["remedy"]
    assert "ended before" in answer.stage("convolution")["reason"]


@pytest.mark.parametrize("seconds", ["0", "-1", "1.5", "soon", "", "99999999999"])
def test_a_time_limit_is_a_whole_number(seconds: str, machine: Machine) -> None:
    argv = [str(machine.folder / "cudnn-check"), "--timeout", seconds]

    run = subprocess.run(argv, capture_output=True, check=False)

    assert run.returncode == 2
    assert b"--timeout SECONDS" in run.stderr


NVRTC = "libnvrtc.so.13"


def lay_site(machine: Machine, stand_ins: Path, package: str) -> Path:
    """Lay cuDNN into a package's folder, and take cuBLAS away; give the site's folder."""
    site = machine.folder / "site"
    (site / package).mkdir(parents=True)
    for name in ("libcudnn.so.9", *ENGINES):
        shutil.copy(stand_ins / name, site / package)
    (machine.folder / CUBLAS).unlink()
    return site


@pytest.mark.parametrize("package", ["nvidia/cudnn/lib", "cudnn_runtime_cu13/lib"])
def test_needs_are_searched_from_the_nearest_place_to_the_farthest(
    package: str, machine: Machine, stand_ins: Path
) -> None:
    site = lay_site(machine, stand_ins, package)
    other = machine.folder / "elsewhere"
    settings = {
        "CONDA_PREFIX": str(other / "conda"),
        "CUDA_PATH": str(other / "chosen"),
        "CUDA_PATH_V12_9": str(other / "v12.9"),
        "CUDA_PATH_V13_0": str(other / "v13.0"),
        "CUDA_PATH_V13_2": str(other / "v13.2"),
    }
    places = [
        (site / package, "beside cuDNN"),
        (site / "nvidia" / "cublas" / "lib", "NVIDIA's wheels"),
        (site / "nvidia" / "cuda_nvrtc" / "lib", "NVIDIA's wheels"),
        (site / "nvidia" / "cu13" / "lib", "NVIDIA's wheels"),
        (other / "conda" / "lib", "the conda environment"),
        (other / "chosen" / "lib64", "CUDA_PATH"),
        (other / "v13.2" / "lib64", "CUDA_PATH_V13_2"),
        (other / "v13.0" / "lib", "CUDA_PATH_V13_0"),
        (machine.folder / "driver", "the system"),
    ]
    libraries = [compile_empty(machine.folder / name, name) for name in (CUBLAS, NVRTC)]
    for folder, _ in [*places, (other / "v12.9" / "lib64", "never")]:
        folder.mkdir(parents=True, exist_ok=True)
        for library in libraries:
            shutil.copy(library, folder)
    for library in libraries:
        library.unlink()

    for folder, origin in places:
        answer = machine.check("--library-dir", str(site / package), settings=settings)
        needs = {need["name"]: need for need in answer.stage("create")["facts"]["needs"]}
        for name, kind in ((CUBLAS, "required"), (NVRTC, "optional")):
            path = Path(os.path.realpath(needs[name]["path"]))
            assert (path, needs[name]["origin"]) == (folder / name, origin)
            assert needs[name]["kind"] == kind
            (folder / name).unlink()

    answer = machine.check("--library-dir", str(site / package), settings=settings)
    assert answer.document["first_failure"]["stage"] == "create"


def test_nvrtc_of_cuda_11_is_named_by_its_minor_version(machine: Machine) -> None:
    compile_empty(machine.folder / "libcublasLt.so.11", "libcublasLt.so.11")
    for minor in (1, 2):
        compile_empty(machine.folder / f"libnvrtc.so.11.{minor}", f"libnvrtc.so.11.{minor}")
    builtins = "libnvrtc-builtins.so.11.8"
    compile_empty(machine.folder / builtins, builtins)
    cudnn = {"STAND_IN_VERSION": "91002", "STAND_IN_CUDART": "11080"}

    answer = machine.check(settings=cudnn)

    needs = answer.stage("create")["facts"]["needs"]
    assert [need["name"] for need in needs] == ["libcublasLt.so.11", "libnvrtc.so.11.2"]
    modules = {each["name"] for each in answer.stage("library")["facts"]["modules"]}
    assert builtins in modules


def test_absence_of_nvrtc_is_a_fact_and_no_failure(machine: Machine) -> None:
    answer = machine.check()

    assert answer.exit_code == 0
    assert answer.stage("create")["facts"]["needs"][-1] == {
        "name": "NVRTC",
        "kind": "optional",
        "path": "",
        "origin": "found nowhere",
    }


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
