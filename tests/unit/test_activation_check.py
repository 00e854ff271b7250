"""The wheel's `verify()` and `check()`: what they tell apart, and what is never a pass."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.activation_package import NAME, LibraryFile, MemoryLoader, Modules, lay_package

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LIBRARIES = {"cudnn_ops_infer64_8.dll": b"ops", "cudnn64_8.dll": b"main"}
STAGES = ("driver", "device", "library", "versions", "create", "convolution", "benchmark")


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Modules:
    """Import the package once."""
    return Modules(tmp_path_factory.mktemp("site"))


def test_verify_tells_missing_changed_and_extra_apart(modules: Modules, tmp_path: Path) -> None:
    names = ("a.so", "b.so", "c.so", "d.so")
    package = lay_package(tmp_path, {name: name.encode() for name in names})
    lock = modules.lock.read_lock(str(package))
    folder = package / "lib"
    assert modules.verify.verify_folder(str(folder), lock).is_intact

    (folder / "a.so").unlink()
    (folder / "b.so").write_bytes(b"b.sO")
    (folder / "c.so").write_bytes(b"c.so and more")
    (folder / "e.so").touch()
    found = modules.verify.verify_folder(str(folder), lock)

    assert found.missing == ("a.so",)
    assert found.changed == ("b.so", "c.so")
    assert found.extra == ("e.so",)
    assert not found.is_intact


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(None, id="none"),
        pytest.param("", id="empty"),
        pytest.param("[]", id="another document"),
        pytest.param('{"identity": {}}', id="incomplete"),
    ],
)
def test_a_damaged_lock_says_to_install_again(
    modules: Modules, tmp_path: Path, text: str | None
) -> None:
    if text is not None:
        (tmp_path / "cudnn.lock.json").write_text(text)

    with pytest.raises(modules.errors.DamagedError, match="install this package again"):
        modules.lock.read_lock(str(tmp_path))


@pytest.mark.parametrize(
    ("version", "expected"),
    [("8.9.5.29", 8905), ("8.0.3.33", 8003), ("9.1.1.17", 90101), ("9.28.1.4", 92801)],
)
def test_api_number(modules: Modules, version: str, expected: int) -> None:
    assert expected == modules.lock.Lock(version, "11", "", (), (), ()).api_number


def told(*documents: dict[str, Any], noise: str = "") -> str:
    """Write what a child tells, with cuDNN's own words in between."""
    return "".join(f"{noise}cudnn-check> {json.dumps(each)}\n" for each in documents)


def stage(name: str, status: str = "passed") -> dict[str, Any]:
    """Make a told stage."""
    return {"stage": name, "status": status, "reason": "", "remedy": "do it", "facts": {}}


WHOLE = tuple(stage(name) for name in STAGES)
WITHOUT_GPU = tuple(
    stage(name, "passed" if name in {"library", "versions"} else "not-run") for name in STAGES
)


@pytest.mark.parametrize(
    ("exit_code", "stdout", "result", "failed"),
    [
        pytest.param(0, told(*WHOLE), "passed", None, id="all"),
        pytest.param(0, told(*WHOLE, noise="cuDNN says\n"), "passed", None, id="noise"),
        pytest.param(0, told(*WITHOUT_GPU), "passed-without-gpu", None, id="no GPU"),
        pytest.param(
            0,
            told(*WHOLE[:5], stage("convolution", "not-run"), stage("benchmark", "not-run")),
            "passed-without-gpu",
            None,
            id="a handle alone computes nothing",
        ),
        pytest.param(
            0, told(*WHOLE[:3], stage("versions", "failed")), "failed", "versions", id="a failure"
        ),
        pytest.param(9, told(*WHOLE[:3], {"begins": "versions"}), "failed", "versions", id="death"),
        pytest.param(None, told({"begins": "driver"}), "failed", "driver", id="time"),
        pytest.param(0, "", "failed", "library", id="silence"),
        pytest.param(1, "", "failed", "library", id="no start"),
        pytest.param(0, told(*WITHOUT_GPU[:4]), "failed", "create", id="stops half way"),
        pytest.param(-11, told(*WHOLE), "failed", "benchmark", id="crash while ending"),
    ],
)
def test_what_a_child_told_becomes_a_report(
    modules: Modules, exit_code: int | None, stdout: str, result: str, failed: str | None
) -> None:
    report = modules.check.read_end(modules.check.ChildEnd(exit_code, stdout, ""))

    assert result == report["result"]
    assert failed == (report["first_failure"] or {}).get("stage")
    assert sorted(STAGES) == sorted(each["stage"] for each in report["stages"])
    assert {"stage", "status", "reason", "facts"} == set(report["stages"][0])


@pytest.mark.parametrize(
    ("exit_code", "words"),
    [(0xC0000409, "0XC0000409"), (-6, "signal 6"), (9, "exit code 9"), (None, "in time")],
)
def test_a_death_is_described_with_the_last_words(
    modules: Modules, exit_code: int | None, words: str
) -> None:
    said = "Could not locate cublas64_11.dll. Please make sure it is in your library path!\n"

    text = modules.check.describe_end(modules.check.ChildEnd(exit_code, "", said))

    assert words in text
    assert "Could not locate cublas64_11.dll" in text


class MemoryApi:
    """A cuDNN in memory."""

    def __init__(self, version: int = 8905, checks: int = 0, create: int = 0) -> None:
        self.answers = (version, checks, create)
        self.finalized = 2000
        self.created = False

    def version(self) -> int:
        return self.answers[0]

    def cudart_version(self) -> int:
        return 11080

    def version_checks(self) -> dict[str, int]:
        return {"cudnnOpsInferVersionCheck": self.answers[1]}

    def finalize_empty_tensor(self) -> int:
        return self.finalized

    def create(self) -> int:
        self.created = True
        return self.answers[2]

    def error_text(self, status: int) -> str:
        return f"CUDNN_STATUS_{status}"


class MemoryDriver:
    """An NVIDIA driver in memory, in the place of the module that calls the real one."""

    def __init__(self, devices: Sequence[str] | None) -> None:
        self.devices = devices

    def open_driver(self) -> object | None:
        return None if self.devices is None else self

    def driver_version(self, _driver: object) -> int:
        return 12040

    def start_driver(self, _driver: object) -> int:
        return 0 if self.devices else 100

    def device_names(self, _driver: object) -> list[str]:
        return list(self.devices or ())


def run_stages(
    modules: Modules,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    api: MemoryApi,
    devices: Sequence[str] | None = None,
    needs: tuple[Any, ...] = (),
    loader: MemoryLoader | None = None,
    version: str = "8.9.5.29",
    probe: dict[str, Any] | None = None,
) -> dict[str, dict[str, Any]]:
    """Run the stages of a check in this process."""
    loader = loader or MemoryLoader()
    loader.library_type = modules.loader.Library
    (folder / "bin").mkdir()
    for name in LIBRARIES:
        (folder / "bin" / name).touch()
        loader.files.setdefault(f"{folder}/bin/{name}", LibraryFile(version=version))
    files = tuple(modules.lock.LockedFile(name, 0, "", version) for name in LIBRARIES)
    lock = modules.lock.Lock(version, "11", "windows-x86_64", files, tuple(LIBRARIES), needs)
    surroundings = modules.needs.Surroundings(str(folder), (), str(folder), {})
    package = modules.activation.Package(NAME, str(folder), lock, surroundings)
    monkeypatch.setattr(modules.stages, "_driver", MemoryDriver(devices))
    told_documents: list[dict[str, Any]] = []

    def run_probe(_package: object) -> dict[str, Any]:
        if probe is None:
            raise FileNotFoundError(2, "no such file", "cudnn-check.dll")
        return probe

    check = modules.stages.Check(package, loader, lambda _: api, run_probe)
    modules.stages.run_stages(check, told_documents.append)
    return {each["stage"]: each for each in told_documents if "stage" in each}


def statuses(stages: dict[str, dict[str, Any]]) -> list[str]:
    """Take the statuses of the stages that can run here."""
    return [stages[name]["status"] for name in STAGES[:5]]


def test_without_a_driver_what_needs_a_gpu_is_not_run(
    modules: Modules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = MemoryApi()

    stages = run_stages(modules, tmp_path, monkeypatch, api=api)

    assert statuses(stages) == ["not-run", "not-run", "passed", "passed", "not-run"]
    assert stages["create"]["reason"] == "no NVIDIA driver"
    assert not api.created
    assert all(module["inside"] for module in stages["library"]["facts"]["modules"])
    assert list(STAGES) == list(stages)


def test_a_driver_without_a_device_is_not_a_gpu(
    modules: Modules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = run_stages(modules, tmp_path, monkeypatch, api=MemoryApi(), devices=())

    assert statuses(stages) == ["passed", "not-run", "passed", "passed", "not-run"]
    assert "cuInit returned 100" in stages["create"]["reason"]


def test_with_a_gpu_a_handle_is_made(
    modules: Modules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = run_stages(modules, tmp_path, monkeypatch, api=MemoryApi(), devices=("A GPU",))

    assert statuses(stages) == ["passed"] * 5
    assert stages["device"]["facts"]["devices"] == ["A GPU"]


def probe_report(convolution: str, benchmark: str, reason: str = "") -> dict[str, Any]:
    """Make what the probe says, as far as the check reads it."""
    stages = [stage("library"), stage("convolution", convolution), stage("benchmark", benchmark)]
    failure = {"stage": "library", "reason": reason, "remedy": "do that"} if reason else None
    return {"stages": stages, "first_failure": failure}


@pytest.mark.parametrize(
    ("probe", "expected", "reason"),
    [
        pytest.param(probe_report("passed", "passed"), ["passed", "passed"], "", id="computes"),
        pytest.param(
            probe_report("failed", "not-run", "wrong"), ["failed", "not-run"], "", id="wrong value"
        ),
        pytest.param(
            probe_report("not-run", "not-run", "from elsewhere"),
            ["failed", "not-run"],
            "from elsewhere",
            id="the probe saw an earlier failure",
        ),
        pytest.param(None, ["failed", "not-run"], "the probe cannot run", id="no probe"),
    ],
)
def test_what_computes_is_the_probe(
    modules: Modules,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    probe: dict[str, Any] | None,
    expected: list[str],
    reason: str,
) -> None:
    stages = run_stages(
        modules, tmp_path, monkeypatch, api=MemoryApi(), devices=("A GPU",), probe=probe
    )

    assert [stages[name]["status"] for name in STAGES[5:]] == expected
    assert reason in stages["convolution"]["reason"]


@pytest.mark.parametrize(
    ("stage_name", "reason", "remedy"),
    [
        ("driver", "cudnnCreate returned 1, CUDNN_STATUS_1: the driver is too old", "update it"),
        ("create", "cudnnCreate returned 1, CUDNN_STATUS_1", "check that the driver is new enough"),
        (None, "cudnnCreate returned 1, CUDNN_STATUS_1", "check that the driver is new enough"),
    ],
    ids=["driver too old", "no more known", "no probe"],
)
def test_a_handle_that_is_refused_is_explained_by_the_probe(
    modules: Modules,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stage_name: str | None,
    reason: str,
    remedy: str,
) -> None:
    failure = {"stage": stage_name, "reason": "the driver is too old", "remedy": "update it"}
    probe = {"stages": [], "first_failure": failure} if stage_name else None

    stages = run_stages(
        modules, tmp_path, monkeypatch, api=MemoryApi(create=1), devices=("A GPU",), probe=probe
    )

    assert stages["create"]["status"] == "failed"
    assert stages["create"]["reason"] == reason
    assert remedy in stages["create"]["remedy"]


def test_a_missing_need_is_named_before_cudnn_is_touched(
    modules: Modules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = MemoryApi()
    need = modules.lock.Need("cublas64_11.dll", (), "required", "", "nvidia-cublas-cu11")

    stages = run_stages(modules, tmp_path, monkeypatch, api=api, devices=("A GPU",), needs=(need,))

    assert stages["create"]["status"] == "failed"
    assert "cublas64_11.dll" in stages["create"]["reason"]
    assert "nvidia-cublas-cu11" in stages["create"]["remedy"]
    assert not api.created


def test_a_failing_handle_is_explained(
    modules: Modules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = run_stages(modules, tmp_path, monkeypatch, api=MemoryApi(create=1), devices=("A GPU",))

    assert stages["create"]["reason"] == "cudnnCreate returned 1, CUDNN_STATUS_1"


@pytest.mark.parametrize(
    ("api", "words"),
    [
        pytest.param(MemoryApi(version=8904), "answers 8904, expected 8905", id="version"),
        pytest.param(MemoryApi(checks=14), "VersionCheck returned 14", id="check"),
    ],
)
def test_a_mixed_set_is_found_by_its_answers(
    modules: Modules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, api: MemoryApi, words: str
) -> None:
    stages = run_stages(modules, tmp_path, monkeypatch, api=api, devices=("A GPU",))

    assert words in stages["versions"]["reason"]
    assert statuses(stages)[3:] == ["failed", "not-run"]


def test_a_mixed_set_that_answers_well_is_found_by_its_file_versions(
    modules: Modules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = MemoryLoader()
    loader.files[f"{tmp_path}/bin/cudnn64_8.dll"] = LibraryFile(version="8.9.4.25")

    stages = run_stages(modules, tmp_path, monkeypatch, api=MemoryApi(), loader=loader)

    assert stages["versions"]["reason"] == "cudnn64_8.dll is 8.9.4.25, expected 8.9.5.29"


def test_a_part_that_came_from_elsewhere_while_calling_is_found(
    modules: Modules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = MemoryLoader()

    class Intruder(MemoryApi):
        def version(self) -> int:
            loader.loaded.append("/old/cudnn_adv_infer64_8.dll")
            return super().version()

    stages = run_stages(modules, tmp_path, monkeypatch, api=Intruder(), loader=loader)

    assert "came from /old/cudnn_adv_infer64_8.dll" in stages["versions"]["reason"]


def test_cudnn_9_has_its_engines_consulted(
    modules: Modules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = MemoryApi(version=90101)
    api.finalized = 1002

    stages = run_stages(modules, tmp_path, monkeypatch, api=api, version="9.1.1.17")

    assert stages["versions"]["reason"] == "cudnnBackendFinalize returned 1002"


def test_a_library_that_does_not_load_fails_its_stage(
    modules: Modules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = MemoryLoader()
    loader.files[f"{tmp_path}/bin/cudnn64_8.dll"] = LibraryFile(damaged=True)

    stages = run_stages(modules, tmp_path, monkeypatch, api=MemoryApi(), loader=loader)

    assert statuses(stages)[2:] == ["failed", "not-run", "not-run"]
    assert stages["library"]["remedy"]


@pytest.mark.parametrize(
    ("result", "require_gpu", "expected"),
    [
        ("passed", True, 0),
        ("passed-without-gpu", False, 0),
        ("passed-without-gpu", True, 6),
        ("failed", True, 5),
    ],
)
def test_exit_codes(modules: Modules, result: str, require_gpu: bool, expected: int) -> None:
    code = modules.main._exit_code({"result": result}, require_gpu=require_gpu)

    assert expected == code
