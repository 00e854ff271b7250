"""Whether PyTorch or TensorFlow computes with the libraries of this package.

The parent starts a child process, because a failing cuDNN ends its process; the child
activates first, then imports the framework, and tells each stage as it begins and ends.
The package switches activation at import off for it, so that activation is a stage too.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import sys
from dataclasses import asdict
from typing import Any, Callable

from ._activation import Activation
from ._check import MARK, ChildEnd, describe_end, run_child
from ._convolutions import FRAMEWORKS, TOLERANCE, Framework
from ._errors import ActivationError
from ._installed import ACTIVATOR, PACKAGE, process_loader
from ._loader import is_inside
from ._stages import StageReport

STAGE_NAMES = ("activation", "import", "version", "convolution", "modules", "benchmark")
NOT_INSTALLED = "is not installed in this Python"
_CHILD = (
    "import json, sys; asked = json.loads(sys.argv[1]); sys.path[:] = asked['path']; "
    "import importlib; "
    "importlib.import_module(asked['name'] + '._frameworks').main(asked['framework'])"
)
_EARLIER = "an earlier stage failed"
_CUDNN_FILE = re.compile(r"(lib)?cudnn\w*(\.so[\d.]*|\.dll)", re.IGNORECASE)
# Below this, timing noise would explain the difference as well.
_NOTABLE_RATIO = 1.1


def run_framework_check(framework: str, timeout: float = 900.0) -> dict[str, Any]:
    """Run the stages in a child process.

    Args:
        framework: `torch` or `tensorflow`.
        timeout: seconds; importing a framework may take a minute.

    Returns:
        A report of the form that `check` of this package gives, with `framework` besides;
        its `result` is `not-run` when the framework is not installed.
    """
    if not sys.executable:
        end = ChildEnd(None, "", "this program does not say where its Python is")
        return read_framework_end(framework, end)
    asked = json.dumps({"path": sys.path, "name": PACKAGE.name, "framework": framework})
    argv = [sys.executable, "-X", "utf8", "-c", _CHILD, asked]
    end = run_child(argv, {**os.environ, PACKAGE.switch: "off"}, timeout)
    return read_framework_end(framework, end)


def read_framework_end(framework: str, end: ChildEnd) -> dict[str, Any]:
    """Make the report out of what a child told before it ended."""
    lines = [line for line in end.stdout.splitlines() if line.startswith(MARK)]
    told = [json.loads(line[len(MARK) :]) for line in lines]
    stages = {each["stage"]: each for each in told if "stage" in each}
    untold = [name for name in STAGE_NAMES if name not in stages]
    if untold or end.exit_code != 0:
        # Ending badly after the last stage counts against that one.
        remedy = f"compare the modules that were loaded, and import {framework} by itself"
        death = (untold or STAGE_NAMES[-1:])[0]
        stages[death] = _document(death, StageReport("failed", describe_end(end), remedy))
    for name in untold[1:]:
        stages[name] = _document(name, StageReport("not-run", "the process ended before"))
    return _report_of(framework, [stages[name] for name in STAGE_NAMES])


def _report_of(framework: str, stages: list[dict[str, Any]]) -> dict[str, Any]:
    failure = next((each for each in stages if each["status"] == "failed"), None)
    by_name = {each["stage"]: each for each in stages}
    if failure:
        result = "failed"
    elif by_name["import"]["status"] != "passed":
        result = "not-run"
    else:
        used_gpu = by_name["convolution"]["status"] == "passed"
        result = "passed" if used_gpu else "passed-without-gpu"
    keys = ("stage", "reason", "remedy")
    return {
        "probe": "cudnn-check",
        "framework": framework,
        "result": result,
        "first_failure": {key: failure[key] for key in keys} if failure else None,
        "stages": [
            {key: each[key] for key in ("stage", "status", "reason", "facts")} for each in stages
        ],
    }


def _document(name: str, report: StageReport) -> dict[str, Any]:
    return {"stage": name, **asdict(report)}


def main(framework: str) -> None:
    """Run the stages in this process and tell them; the child's side."""
    check = _FrameworkCheck(framework)
    for name in STAGE_NAMES:
        _tell({"begins": name})
        report = check.run(name)
        _tell(_document(name, report))


def _tell(document: dict[str, Any]) -> None:
    # A line of its own whatever a framework printed, and past any buffer.
    sys.stdout.write(f"\n{MARK}{json.dumps(document)}\n")
    sys.stdout.flush()


class _FrameworkCheck:
    """The stages, and the state that they share.

    Args:
        name: of the framework.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._loader = process_loader()
        self._activation: Activation | None = None
        self._framework: Framework | None = None
        self._no_gpu = ""
        self._failed = False

    def run(self, stage: str) -> StageReport:
        """Run one stage; whatever a framework raises is its answer."""
        run: Callable[[], StageReport] = getattr(self, f"_run_{stage}")
        try:
            report = run()
        except Exception as error:  # noqa: BLE001 - frameworks raise anything
            said = " ".join(f"{type(error).__name__}: {error}".split())
            remedy = f"make `python -c 'import {self._name}'` and its own GPU example work first"
            report = StageReport("failed", said, remedy)
        self._failed = self._failed or report.status == "failed"
        return report

    def _run_activation(self) -> StageReport:
        try:
            activation = ACTIVATOR.activate()
        except ActivationError as error:
            seen = {"modules": self._modules()}
            return StageReport("failed", error.reason, error.remedy, seen)
        facts = {"folder": activation.folder, "version": PACKAGE.lock.version}
        if activation.not_loaded:
            remedy = "; ".join(need.remedy for need in activation.missing)
            return StageReport("failed", "; ".join(activation.not_loaded.values()), remedy, facts)
        self._activation = activation
        return StageReport("passed", facts=facts)

    def _run_import(self) -> StageReport:
        spec = importlib.util.find_spec(self._name)
        # A folder that happens to have the name is found as well, without an origin.
        if spec is None or spec.origin is None:
            return StageReport("not-run", f"{self._name} {NOT_INSTALLED}")
        if self._failed:
            return StageReport("not-run", _EARLIER)
        module = importlib.import_module(self._name)
        self._framework = FRAMEWORKS[self._name](module)
        facts = {"version": str(module.__version__), "file": spec.origin}
        return StageReport("passed", facts=facts)

    def _run_version(self) -> StageReport:
        if self._framework is None:
            return self._not_run()
        self._no_gpu = self._framework.gpu_fault()
        version, lock = self._framework.cudnn_version(), PACKAGE.lock
        facts = {
            "framework": version,
            "locked": lock.api_number,
            "locked_release": lock.version,
            "modules": self._modules(),
        }
        if version is None and self._no_gpu:
            return StageReport("not-run", self._no_gpu, facts=facts)
        if version is None:
            reason = f"{self._name} was built without cuDNN"
            remedy = f"install a build of {self._name} that uses cuDNN"
            return StageReport("failed", reason, remedy, facts)
        fault, remedy = self._version_fault(version)
        return StageReport("failed" if fault else "passed", fault, remedy, facts)

    def _run_convolution(self) -> StageReport:
        if self._framework is None or self._failed or self._no_gpu:
            return self._not_run()
        result = self._framework.convolve()
        facts = asdict(result)
        if result.fault:
            remedy = "try the plain check of this package, which computes without a framework"
            return StageReport("failed", result.fault, remedy, facts)
        return StageReport("passed", facts={**facts, "tolerance": TOLERANCE})

    def _run_modules(self) -> StageReport:
        is_absent = self._framework is None and not self._failed
        if self._activation is None or is_absent:
            return self._not_run()
        modules = self._modules()
        facts = {"modules": modules}
        adopted = self._activation.adopted.values()
        strangers = [
            each["path"] for each in modules if not each["inside"] and each["path"] not in adopted
        ]
        if strangers:
            reason = f"{self._name} brought its own copy of cuDNN: {', '.join(strangers)}"
            remedy = (
                f"import {PACKAGE.name} before {self._name}, and take the folder of that copy off "
                f"{'PATH' if PACKAGE.lock.is_windows else 'LD_LIBRARY_PATH'}; a copy that "
                f"{self._name} opens by full path can only be removed"
            )
            return StageReport("failed", reason, remedy, facts)
        if self._failed or self._no_gpu:
            # That nothing foreign came is no proof where nothing was computed.
            return StageReport("not-run", self._not_run().reason, facts=facts)
        return StageReport("passed", facts=facts)

    def _run_benchmark(self) -> StageReport:
        if self._framework is None or self._failed or self._no_gpu:
            return self._not_run()
        times = self._framework.benchmark()
        if isinstance(times, str):
            return StageReport("not-run", f"not timed: {times}")
        ratio = times["cudnn_off_ms"] / times["cudnn_on_ms"]
        notable = ratio >= _NOTABLE_RATIO
        doubt = "" if notable else "no faster than without cuDNN, which may not be at work"
        return StageReport("passed", doubt, facts={**times, "ratio": round(ratio, 2)})

    def _not_run(self) -> StageReport:
        if self._failed:
            return StageReport("not-run", _EARLIER)
        return StageReport("not-run", self._no_gpu or f"{self._name} {NOT_INSTALLED}")

    def _version_fault(self, version: int | str) -> tuple[str, str]:
        lock, name = PACKAGE.lock, self._name
        major, minor = split_version(version)
        own_major, own_minor = (int(part) for part in lock.version.split(".")[:2])
        if major != own_major:
            reason = (
                f"{name} wants cuDNN {major} and this package holds cuDNN {own_major}: "
                "one major version cannot stand in for the other"
            )
            return (
                reason,
                f"install a cuDNN {major} package, or a {name} that was built for {own_major}",
            )
        if isinstance(version, int) and version != lock.api_number:
            return (
                f"{name} works with cuDNN {version}, this package holds {lock.api_number}",
                f"remove the other copy of cuDNN, or import {PACKAGE.name} before it is loaded",
            )
        if isinstance(version, str) and minor > own_minor:
            return (
                f"{name} was built for cuDNN {major}.{minor}, newer than {lock.version} here",
                f"install a newer cuDNN {major}, or an older {name}",
            )
        return "", ""

    def _modules(self) -> list[dict[str, Any]]:
        paths = self._loader.modules()
        named = [(os.path.basename(path), path) for path in paths]
        folder = PACKAGE.library_folder
        return [
            {"name": name, "path": path, "inside": is_inside(path, folder)}
            for name, path in named
            if _CUDNN_FILE.fullmatch(name)
        ]


def split_version(version: int | str) -> tuple[int, int]:
    """Give major and minor of what a framework calls its cuDNN version.

    Args:
        version: 8905 or 90100, or a text: `8`, `8.6`, on Windows `64_8`.
    """
    if isinstance(version, int):
        unit = 10000 if version >= 10000 else 1000
        return version // unit, version % unit // 100
    numbers = re.findall(r"\d+", version.rsplit("_", 1)[-1])
    return int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else 0
