"""The check as its caller sees it: a child process runs the stages, this reads what it tells.

A line that the child tells begins with a mark, because cuDNN prints as well.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, Sequence

MARK = "cudnn-check> "
# Every stage has to be accounted for: silence is not a pass.
STAGE_NAMES = ("driver", "device", "library", "versions", "create", "convolution", "benchmark")
_LARGEST_OWN_CODE = 255
_CHILD = (
    "import json, sys; asked = json.loads(sys.argv[1]); sys.path[:] = asked['path']; "
    "import importlib; importlib.import_module(asked['name'] + '._child').main()"
)
_DEATH_REMEDY = "see `needs` of the library stage: what is missing there has to be installed"


@dataclass(frozen=True)
class ChildEnd:
    """How the child ended.

    Args:
        exit_code: its code, or nothing when it had to be ended.
        stdout: what it told.
        stderr: what cuDNN, or Python, said.
    """

    exit_code: int | None
    stdout: str
    stderr: str


def run_check(name: str, timeout: float) -> dict[str, Any]:
    """Run the stages in a child process.

    Args:
        name: of this package.
        timeout: seconds.
    """
    if not sys.executable:
        return report_of([], _cannot("this program does not say where its Python is"))
    asked = json.dumps({"path": sys.path, "name": name})
    environment = {**os.environ, name.upper().replace(".", "_"): "off"}
    argv = [sys.executable, "-X", "utf8", "-c", _CHILD, asked]
    return read_end(run_child(argv, environment, timeout))


def read_end(end: ChildEnd) -> dict[str, Any]:
    """Make the report out of what a child told before it ended."""
    told = [
        json.loads(line[len(MARK) :]) for line in end.stdout.split("\n") if line.startswith(MARK)
    ]
    stages = [each for each in told if "stage" in each]
    done = {each["stage"] for each in stages}
    unfinished = [
        each["begins"] for each in told if "begins" in each and each["begins"] not in done
    ]
    untold = [name for name in STAGE_NAMES if name not in done]
    if unfinished:
        return report_of(stages, _failed(unfinished[-1], describe_end(end), _DEATH_REMEDY))
    if not stages:
        return report_of([], _cannot(describe_end(end)))
    if untold or end.exit_code != 0:
        # It came to grief between two stages, or while it was ending.
        last = (untold or STAGE_NAMES[-1:])[0]
        others = [each for each in stages if each["stage"] != last]
        return report_of(others, _failed(last, describe_end(end), _DEATH_REMEDY))
    return report_of(stages, None)


def report_of(stages: Sequence[dict[str, Any]], death: dict[str, Any] | None) -> dict[str, Any]:
    """Assemble the report.

    Args:
        stages: those that came to an end, in order.
        death: the one that did not.
    """
    all_stages = [*stages, *([death] if death else [])]
    reached = {each["stage"] for each in all_stages}
    all_stages += [_not_reached(name) for name in STAGE_NAMES if name not in reached]
    failures = [each for each in all_stages if each["status"] == "failed"]
    passed = {each["stage"] for each in all_stages if each["status"] == "passed"}
    first = None
    if failures:
        first = {key: failures[0][key] for key in ("stage", "reason", "remedy")}
    used_gpu = "convolution" in passed
    verdict = "failed" if failures else "passed" if used_gpu else "passed-without-gpu"
    return {
        "probe": "cudnn-check",
        "result": verdict,
        "first_failure": first,
        "stages": [
            {key: each[key] for key in ("stage", "status", "reason", "facts")}
            for each in all_stages
        ],
    }


def describe_end(end: ChildEnd) -> str:
    """Say how the child ended, with the last that was printed."""
    last = [line.strip() for line in end.stderr.splitlines() if line.strip()][-3:]
    said = f": {' / '.join(last)}" if last else ""
    if end.exit_code is None:
        return f"the process did not end in time{said}"
    return f"the process was ended with {_spell(end.exit_code)}{said}"


def _spell(code: int) -> str:
    if code < 0:
        return f"signal {-code}"
    # Windows' own codes, such as 0xC0000409, are known by their hexadecimal form.
    return f"exit code {code:#X}" if code > _LARGEST_OWN_CODE else f"exit code {code}"


def run_child(argv: list[str], environment: dict[str, str], timeout: float) -> ChildEnd:
    try:
        run = subprocess.run(  # noqa: S603 - this Python, and arguments made here
            argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
            # A program without a console would see one flash up on Windows.
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except subprocess.TimeoutExpired as error:
        return ChildEnd(None, _text(error.stdout), _text(error.stderr))
    except OSError as error:
        return ChildEnd(None, "", str(error))
    return ChildEnd(run.returncode, _text(run.stdout), _text(run.stderr))


def _text(output: bytes | None) -> str:
    return (output or b"").decode("utf-8", "replace")


def _failed(stage: str, reason: str, remedy: str) -> dict[str, Any]:
    return {"stage": stage, "status": "failed", "reason": reason, "remedy": remedy, "facts": {}}


def _not_reached(stage: str) -> dict[str, Any]:
    reason = "the process ended before"
    return {"stage": stage, "status": "not-run", "reason": reason, "remedy": "", "facts": {}}


def _cannot(reason: str) -> dict[str, Any]:
    return _failed("library", reason, "run the check from an ordinary Python")
