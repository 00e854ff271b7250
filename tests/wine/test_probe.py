"""`cudnn-check.exe` against whole, broken, mixed and foreign sets, under Windows' rules."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bundler.names import Platform
from bundler.probe import decoy_library
from bundler.smoke.host import Host

ROOT = Path(__file__).parents[2]
PROBE = ROOT / "bundler" / "probe" / "prebuilt" / "windows-x86_64" / "cudnn-check.exe"
FIXTURES = ROOT / "tests" / "fixtures"
OLDER = FIXTURES / "cudnn8" / "8.5.0.96"
STAGES = (
    *("driver", "device", "library", "versions"),
    *("engines", "create", "convolution", "benchmark"),
)
COMPANIONS = tuple(
    f"cudnn_{part}64_8.dll"
    for part in ("ops_infer", "ops_train", "cnn_infer", "cnn_train", "adv_infer", "adv_train")
)
NAMES = ("cudnn64_8.dll", *COMPANIONS)
LARGEST_PROBE = 100_000


@dataclass(frozen=True)
class Answer:
    """What one run of the probe gave.

    Args:
        exit_code: of the program.
        document: its JSON.
        stderr: the summary.
    """

    exit_code: int
    document: dict[str, Any]
    stderr: str

    def stage(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = next(
            stage for stage in self.document["stages"] if stage["stage"] == name
        )
        return found


@dataclass(frozen=True)
class Bundle:
    """A folder with the probe and some libraries.

    Args:
        host: where the probe runs.
        folder: holds the probe.
        scratch: the working folder, which holds nothing.
    """

    host: Host
    folder: Path
    scratch: Path

    def check(self, *arguments: str, path: tuple[Path, ...] = ()) -> Answer:
        argv = [self.host.path_argument(self.folder / PROBE.name), *arguments]
        environment = self.host.search_path(list(path))
        run = self.host.run(argv, environment=environment, cwd=self.scratch)
        return Answer(run.exit_code, json.loads(run.stdout), run.stderr)


@pytest.fixture
def alone(windows_host: Host, tmp_path: Path) -> Bundle:
    folder, scratch = tmp_path / "my application (é)", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    shutil.copy(PROBE, folder)
    return Bundle(windows_host, folder, scratch)


@pytest.fixture
def whole(alone: Bundle) -> Bundle:
    for name in NAMES:
        shutil.copy(FIXTURES / "cudnn8" / "8.9.5.29" / name, alone.folder)
    return alone


def test_probe_is_small() -> None:
    assert PROBE.stat().st_size < LARGEST_PROBE


@pytest.mark.parametrize("path", [(), (OLDER,)], ids=["clean path", "older cuDNN first on path"])
def test_whole_set_passes(path: tuple[Path, ...], whole: Bundle) -> None:
    answer = whole.check(path=path)

    assert answer.exit_code == 0, answer.stderr
    assert answer.document["result"] == "passed-without-gpu"
    assert answer.document["first_failure"] is None
    assert answer.document["library_major"] == 8
    assert tuple(stage["stage"] for stage in answer.document["stages"]) == STAGES
    modules = answer.stage("library")["facts"]["modules"]
    assert set(NAMES) == {module["name"] for module in modules}
    assert all(module["inside"] for module in modules)
    versions = answer.stage("versions")["facts"]
    assert (versions["cudnnGetVersion"], versions["cudnnGetCudartVersion"]) == (8905, 11080)
    assert [check["status"] for check in versions["checks"]] == [0] * 6
    assert {file["version"] for file in versions["file_versions"]} == {"8.9.5.29"}
    assert len(versions["file_versions"]) == len(NAMES)


def test_without_a_driver_nothing_is_said_to_have_computed(whole: Bundle) -> None:
    answer = whole.check("--require-gpu")

    assert answer.exit_code == 6
    assert answer.document["result"] == "passed-without-gpu"
    for name in ("driver", "device", "create", "convolution", "benchmark"):
        assert answer.stage(name)["status"] == "not-run"
        assert answer.stage(name)["reason"].startswith("no NVIDIA driver")
    assert "nothing was computed" in answer.stderr


@pytest.mark.parametrize("missing", COMPANIONS)
def test_missing_companion_is_named_though_the_process_was_killed(
    missing: str, whole: Bundle
) -> None:
    (whole.folder / missing).unlink()

    answer = whole.check()

    failure = answer.document["first_failure"]
    assert answer.exit_code == 5
    assert failure["stage"] == "versions"
    # A companion that another one imports is named, or the one that imports it.
    assert missing in failure["reason"] or "that it imports is not" in failure["reason"]
    assert "copy the whole set" in failure["remedy"]
    assert tuple(stage["stage"] for stage in answer.document["stages"]) == STAGES
    assert answer.stage("library")["facts"]["modules"]
    assert "ended before" in answer.stage("create")["reason"]


@pytest.mark.parametrize("missing", COMPANIONS)
def test_missing_companion_is_named_when_all_are_loaded_by_path(
    missing: str, whole: Bundle
) -> None:
    (whole.folder / missing).unlink()

    answer = whole.check("--library-dir", whole.host.path_argument(whole.folder))

    assert answer.exit_code == 5
    assert missing in answer.document["first_failure"]["reason"]


def test_missing_main_library_says_where_the_probe_belongs(alone: Bundle) -> None:
    answer = alone.check()

    failure = answer.document["first_failure"]
    assert answer.exit_code == 5
    assert failure["stage"] == "library"
    assert "neither cudnn64_9.dll nor cudnn64_8.dll was found" in failure["reason"]
    assert "bin\\bin" in failure["remedy"]
    assert answer.document["library_major"] is None


def test_library_from_elsewhere_fails(alone: Bundle) -> None:
    answer = alone.check(path=(OLDER,))

    failure = answer.document["first_failure"]
    assert answer.exit_code == 5
    assert failure["stage"] == "library"
    assert alone.host.path_argument(OLDER / "cudnn64_8.dll") in failure["reason"]
    assert "take the other folder off PATH" in failure["remedy"]
    assert answer.stage("versions")["facts"]["cudnnGetVersion"] == 8500


def test_companions_from_elsewhere_fail_though_every_check_says_yes(alone: Bundle) -> None:
    shutil.copy(FIXTURES / "cudnn8" / "8.9.5.29" / "cudnn64_8.dll", alone.folder)

    answer = alone.check(path=(OLDER,))

    assert answer.document["first_failure"]["stage"] == "library"
    assert {0} == {check["status"] for check in answer.stage("versions")["facts"]["checks"]}
    assert "the files are of different versions" in answer.stage("versions")["reason"]


@pytest.mark.parametrize("foreign", NAMES)
def test_file_of_another_version_fails(foreign: str, whole: Bundle) -> None:
    shutil.copy(OLDER / foreign, whole.folder)

    answer = whole.check()

    failure = answer.document["first_failure"]
    assert answer.exit_code == 5
    assert failure["stage"] == "versions"
    assert f"{foreign} is 8.5.0.96" in failure["reason"]
    assert "of one archive" in failure["remedy"]


def test_file_for_another_processor_is_told_from_a_missing_one(whole: Bundle) -> None:
    shutil.copy(FIXTURES / "machines" / "arm64.dll", whole.folder / "cudnn_cnn_infer64_8.dll")

    as_application = whole.check().document["first_failure"]
    by_path = whole.check("--library-dir", whole.host.path_argument(whole.folder)).document

    for failure in (as_application, by_path["first_failure"]):
        assert "cudnn_cnn_infer64_8.dll" in failure["reason"]
        assert "built for another processor" in failure["reason"]
        assert "SHA-256" in failure["remedy"]


def test_library_dir_is_what_inside_means(alone: Bundle) -> None:
    folder = FIXTURES / "cudnn8" / "8.9.5.29"

    answer = alone.check("--library-dir", alone.host.path_argument(folder) + "\\", path=(OLDER,))

    assert answer.exit_code == 0, answer.stderr
    modules = answer.stage("library")["facts"]["modules"]
    assert set(NAMES) == {module["name"] for module in modules}
    assert all(module["inside"] for module in modules)


def test_decoy_is_never_taken_for_cudnn(whole: Bundle) -> None:
    for name in NAMES:
        (whole.folder / name).write_bytes(decoy_library(Platform.WINDOWS_X86_64))

    answer = whole.check()

    assert answer.document["first_failure"]["stage"] == "versions"
    assert "says that it is version 1" in answer.document["first_failure"]["reason"]


def test_a_check_that_takes_too_long_fails_at_the_stage_that_runs(whole: Bundle) -> None:
    sleeper = FIXTURES / "loader" / "sleeper.dll"
    shutil.copy(sleeper, whole.folder / "cudnn_ops_infer64_8.dll")

    answer = whole.check("--timeout", "2")

    failure = answer.document["first_failure"]
    assert answer.exit_code == 5
    assert failure["stage"] == "versions"
    assert "when the 2 seconds of the check were over" in failure["reason"]
    assert "--timeout SECONDS" in failure["remedy"]


def test_the_driver_that_is_needed_is_told_where_there_is_none(whole: Bundle) -> None:
    assert whole.check().stage("driver")["facts"] == {
        "needs_cuda": "11.0",
        "needs_driver": "452.39",
    }


def test_json_alone_and_text_alone(whole: Bundle) -> None:
    assert whole.check("--json").stderr == ""
    argv = [whole.host.path_argument(whole.folder / PROBE.name), "--text"]
    run = whole.host.run(argv, cwd=whole.scratch)
    assert run.stdout.startswith("driver       not-run: no NVIDIA driver")
    assert run.stderr == ""


@pytest.mark.parametrize(
    "words",
    [["--unknown"], ["--library-dir"], ["--text", "--json"], ["--timeout", "0"]],
    ids=" ".join,
)
def test_wrong_usage(words: list[str], alone: Bundle) -> None:
    argv = [alone.host.path_argument(alone.folder / PROBE.name), *words]

    run = alone.host.run(argv, cwd=alone.scratch)

    assert run.exit_code == 2
    assert "--library-dir DIR" in run.stderr
    assert run.stdout == ""
