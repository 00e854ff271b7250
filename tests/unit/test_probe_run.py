"""Judging what a probe reported, whatever it says of itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from bundler.errors import SmokeError
from bundler.smoke.host import CompletedRun
from bundler.smoke.probe_run import (
    ProbeOutcome,
    convolution_result,
    load_result,
    run_probe,
)
from bundler.smoke.report import Status

INSIDE = r"Z:\app"
NAMES = ("cudnn64_8.dll", "cudnn_ops_infer64_8.dll")


class ScriptedHost:
    """Answers every program with one prepared run."""

    def __init__(self, stdout: str, exit_code: int = 0, stderr: str = "") -> None:
        self._answer = CompletedRun(exit_code, stdout, stderr)
        self.argv: list[str] = []

    def run(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout: float = 600.0,
    ) -> CompletedRun:
        del environment, cwd, timeout
        self.argv = list(argv)
        return self._answer

    def path_argument(self, path: Path) -> str:
        return "Z:" + str(path).replace("/", "\\")

    def describe(self) -> str:
        return "a host for tests"

    def search_path(self, folders: list[Path]) -> dict[str, str]:
        return {"PATH": ";".join(self.path_argument(folder) for folder in folders)}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        return None


def document(
    modules: Mapping[str, str], failure: Mapping[str, str] | None = None, **stages: str
) -> dict[str, Any]:
    statuses = {"library": "passed", "versions": "passed", "create": "not-run", **stages}
    facts = {"library": {"modules": [{"name": n, "path": p} for n, p in modules.items()]}}
    return {
        "probe": "cudnn-check",
        "first_failure": failure,
        "stages": [
            {"stage": name, "status": status, "reason": f"why {name}", "facts": facts.get(name, {})}
            for name, status in statuses.items()
        ],
    }


def outcome(report: Mapping[str, Any]) -> ProbeOutcome:
    host = ScriptedHost(json.dumps(report))
    return run_probe(host, ["probe.exe"], environment={}, cwd=Path("/"))


WHOLE = {name: rf"{INSIDE}\{name}" for name in NAMES}


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        pytest.param(document(WHOLE), "", id="all inside"),
        pytest.param(
            document({name: path.upper() for name, path in WHOLE.items()}), "", id="other case"
        ),
        pytest.param(
            document({**WHOLE, "cudnn_adv_infer64_8.dll": r"C:\x\cudnn_adv_infer64_8.dll"}),
            r"loaded from outside the artifact: C:\x\cudnn_adv_infer64_8.dll",
            id="one from elsewhere, though the probe is content",
        ),
        pytest.param(
            document({**WHOLE, NAMES[0]: rf"{INSIDE}\bin\{NAMES[0]}"}),
            "loaded from outside the artifact",
            id="a folder below is not inside",
        ),
        pytest.param(
            document({NAMES[0]: WHOLE[NAMES[0]]}), f"never loaded: {NAMES[1]}", id="one not loaded"
        ),
        pytest.param(
            document(
                WHOLE,
                {"stage": "versions", "reason": "a mix.", "remedy": "Copy the whole set."},
                versions="failed",
            ),
            "versions: a mix. Copy the whole set.",
            id="versions differ",
        ),
        pytest.param(
            document({**WHOLE, "cublas64_11.dll": r"C:\CUDA\cublas64_11.dll"}),
            "",
            id="cuBLAS may come from elsewhere",
        ),
    ],
)
def test_load_level(report: Mapping[str, Any], expected: str) -> None:
    result = load_result(outcome(report), NAMES, INSIDE)

    assert expected in result.reason
    assert result.status is (Status.FAILED if expected else Status.PASSED)


@pytest.mark.parametrize(
    ("create", "convolution", "expected", "reason"),
    [
        ("passed", "passed", Status.PASSED, ""),
        ("not-run", "not-run", Status.NOT_RUN, "why create"),
        ("passed", "not-run", Status.NOT_RUN, "why convolution"),
        ("passed", "failed", Status.FAILED, "why convolution"),
        ("failed", "not-run", Status.FAILED, "why create"),
    ],
)
def test_convolution_level(create: str, convolution: str, expected: Status, reason: str) -> None:
    found = outcome(document(WHOLE, create=create, convolution=convolution))

    result = convolution_result(found)

    assert (result.status, result.reason) == (expected, reason)


@pytest.mark.parametrize("stdout", ["", "not JSON", "{}", "[]", '{"stages": 1}'])
def test_a_probe_without_a_report_is_an_error_with_its_last_words(stdout: str) -> None:
    host = ScriptedHost(stdout, exit_code=9, stderr="Could not locate cudnn_ops_infer64_8.dll")

    with pytest.raises(SmokeError) as caught:
        run_probe(host, ["probe.exe"], environment={}, cwd=Path("/"))

    assert "exit code 9" in caught.value.what
    assert "Could not locate cudnn_ops_infer64_8.dll" in caught.value.why


def test_paths_are_spelt_for_the_host() -> None:
    host = ScriptedHost(json.dumps(document(WHOLE)))

    run_probe(host, [Path("/a b/probe.exe"), "--library-dir"], environment={}, cwd=Path("/"))

    assert host.argv == [r"Z:\a b\probe.exe", "--library-dir"]
