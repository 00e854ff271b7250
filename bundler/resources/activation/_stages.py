"""The stages of a check, each told as it begins and as it ends.

They run in a process of their own, which cuDNN may end at any call; what was told until
then is what the parent reports. What computes is a probe in C, the same as in the other
artifacts.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Callable

from . import _driver
from ._activation import Activation, Activator, Package
from ._api import BAD_PARAMETER, FINALIZE, NOT_SUPPORTED, Api
from ._errors import ActivationError
from ._loader import Loader, is_inside
from ._lock import REINSTALL
from ._probe import compute

_NO_DRIVER = "no NVIDIA driver"
_OWN_FAMILY = ("cudnn", "libcudnn")


@dataclass(frozen=True)
class StageReport:
    """How one stage ended.

    Args:
        status: `passed`, `failed` or `not-run`.
        reason: why it did not pass.
        remedy: what to do about a failure.
        facts: what was seen.
    """

    status: str
    reason: str = ""
    remedy: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


class Check:
    """The state that the stages share.

    Args:
        package: what is checked.
        loader: of this process.
        make_api: opens cuDNN's main library.
        run_probe: runs the probe that computes and gives its report.
    """

    def __init__(
        self,
        package: Package,
        loader: Loader,
        make_api: Callable[[str], Api],
        run_probe: Callable[[Package], dict[str, Any]] = compute,
    ) -> None:
        self.package = package
        self.loader = loader
        self.make_api = make_api
        self.compute = run_probe
        self.computed: dict[str, Any] = {}
        self.has_handle = False
        self.driver: Any = None
        self.no_gpu = ""
        self.activation: Activation | None = None
        self.versions_are_right = False

    def api(self) -> Api:
        """Open cuDNN's main library, wherever it was loaded from."""
        name = self.package.lock.main_library
        return self.make_api(self.loader.module_path(name) or name)


def _run_driver(check: Check) -> StageReport:
    check.driver = _driver.open_driver()
    if check.driver is None:
        check.no_gpu = _NO_DRIVER
        return StageReport("not-run", _NO_DRIVER)
    return StageReport("passed", facts={"version": _driver.driver_version(check.driver)})


def _run_device(check: Check) -> StageReport:
    if check.driver is None:
        return StageReport("not-run", _NO_DRIVER)
    status = _driver.start_driver(check.driver)
    names = _driver.device_names(check.driver) if status == 0 else []
    if not names:
        check.no_gpu = f"no usable GPU (cuInit returned {status})"
        return StageReport("not-run", check.no_gpu)
    return StageReport("passed", facts={"devices": names})


def _run_library(check: Check) -> StageReport:
    activator = Activator(check.package, lambda: check.loader)
    try:
        activation = activator.activate()
    except ActivationError as error:
        return StageReport("failed", error.reason, error.remedy, {"modules": _modules(check)})
    facts = {"modules": _modules(check), "needs": _need_facts(activation)}
    if activation.not_loaded:
        reason = "; ".join(activation.not_loaded.values())
        return StageReport("failed", reason, _need_remedies(activation), facts)
    check.activation = activation
    return StageReport("passed", facts=facts)


def _run_versions(check: Check) -> StageReport:
    if check.activation is None:
        return StageReport("not-run", "the libraries are not loaded")
    api, lock = check.api(), check.package.lock
    checks = dict(api.version_checks())
    if lock.has_engines:
        checks[FINALIZE] = api.finalize_empty_tensor()
    facts: dict[str, Any] = {
        "cudnnGetVersion": api.version(),
        "cudnnGetCudartVersion": api.cudart_version(),
        "checks": [{"function": name, "status": status} for name, status in checks.items()],
        "file_versions": _file_versions(check),
    }
    faults = _version_faults(check, facts, checks)
    if faults:
        remedy = f"remove the other copies of cuDNN, or {REINSTALL}"
        return StageReport("failed", "; ".join(faults), remedy, facts)
    check.versions_are_right = True
    return StageReport("passed", facts=facts)


def _run_create(check: Check) -> StageReport:
    if check.activation is None or not check.versions_are_right:
        return StageReport("not-run", "an earlier stage failed")
    if check.no_gpu:
        return StageReport("not-run", check.no_gpu)
    if check.activation.missing:
        names = ", ".join(each.need.name for each in check.activation.missing)
        reason = f"cuDNN would end the process for want of {names}"
        return StageReport("failed", reason, _need_remedies(check.activation))
    api = check.api()
    status = api.create()
    if status != 0:
        return _explain_create(check, f"cudnnCreate returned {status}, {api.error_text(status)}")
    check.has_handle = True
    return StageReport("passed")


def _explain_create(check: Check, reason: str) -> StageReport:
    """Ask the probe, which knows what driver and GPU this cuDNN wants."""
    try:
        failure = check.compute(check.package)["first_failure"]
    except (OSError, ValueError):
        failure = None
    if failure and failure["stage"] in ("driver", "device"):
        return StageReport("failed", f"{reason}: {failure['reason']}", failure["remedy"])
    remedy = "check that the driver is new enough for this CUDA and the GPU is free"
    return StageReport("failed", reason, remedy)


def _run_convolution(check: Check) -> StageReport:
    if not check.has_handle:
        return StageReport("not-run", check.no_gpu or "an earlier stage failed")
    try:
        check.computed = check.compute(check.package)
    except (OSError, ValueError) as error:
        return StageReport("failed", f"the probe cannot run: {error}", REINSTALL)
    report = _computed_stage(check, "convolution")
    failure = check.computed["first_failure"]
    if report.status == "not-run" and failure:
        # An earlier stage of the probe saw what this check did not.
        return StageReport("failed", failure["reason"], failure["remedy"], check.computed)
    return report


def _run_benchmark(check: Check) -> StageReport:
    if not check.computed:
        return StageReport("not-run", check.no_gpu or "an earlier stage failed")
    return _computed_stage(check, "benchmark")


def _computed_stage(check: Check, name: str) -> StageReport:
    (stage,) = (each for each in check.computed["stages"] if each["stage"] == name)
    remedy = stage.get("remedy", "")
    return StageReport(stage["status"], stage["reason"], remedy, stage["facts"])


# Without a GPU those that need one are not run.
STAGES: tuple[tuple[str, Callable[[Check], StageReport]], ...] = (
    ("driver", _run_driver),
    ("device", _run_device),
    ("library", _run_library),
    ("versions", _run_versions),
    ("create", _run_create),
    ("convolution", _run_convolution),
    ("benchmark", _run_benchmark),
)


def run_stages(check: Check, tell: Callable[[dict[str, Any]], None]) -> None:
    """Run every stage.

    Args:
        check: the state that they share.
        tell: is given `{"begins": name}` before a stage and its report after it.
    """
    for name, run in STAGES:
        tell({"begins": name})
        tell(_document(name, run(check)))


def _document(name: str, report: StageReport) -> dict[str, Any]:
    return {
        "stage": name,
        "status": report.status,
        "reason": report.reason,
        "remedy": report.remedy,
        "facts": report.facts,
    }


def _modules(check: Check) -> list[dict[str, Any]]:
    folder = check.package.library_folder
    paths = [path for path in check.loader.modules() if _is_own_family(path)]
    return [
        {"name": os.path.basename(path), "path": path, "inside": is_inside(path, folder)}
        for path in paths
    ]


def _is_own_family(path: str) -> bool:
    return os.path.basename(path).lower().startswith(_OWN_FAMILY)


def _need_facts(activation: Activation) -> list[dict[str, Any]]:
    return [
        {
            "name": each.need.name,
            "kind": each.need.kind,
            "path": each.path,
            "origin": each.origin,
            "failures": list(each.failures),
        }
        for each in activation.needs
    ]


def _need_remedies(activation: Activation) -> str:
    return "; ".join(each.remedy for each in activation.missing)


def _file_versions(check: Check) -> list[dict[str, Any]]:
    activation = check.activation
    modules = {**activation.modules, **activation.adopted} if activation else {}
    versions = {name: check.loader.file_version(path) for name, path in modules.items()}
    return [{"name": name, "version": version} for name, version in versions.items() if version]


def _version_faults(check: Check, facts: dict[str, Any], checks: dict[str, int]) -> list[str]:
    lock, faults = check.package.lock, []
    if facts["cudnnGetVersion"] != lock.api_number:
        answer = facts["cudnnGetVersion"]
        faults.append(f"cudnnGetVersion answers {answer}, expected {lock.api_number}")
    for name, status in checks.items():
        good = (BAD_PARAMETER,) if name == FINALIZE else (0, NOT_SUPPORTED)
        if status not in good:
            faults.append(f"{name} returned {status}")
    locked = {file.name: file.file_version for file in lock.files}
    for entry in facts["file_versions"]:
        expected = locked.get(entry["name"])
        if expected and entry["version"] != expected:
            faults.append(f"{entry['name']} is {entry['version']}, expected {expected}")
    # The calls above opened what they wanted: nothing may have come from elsewhere.
    adopted = check.activation.adopted if check.activation else {}
    strangers = [module for module in _modules(check) if not module["inside"]]
    faults += [
        f"{module['name']} came from {module['path']}"
        for module in strangers
        if module["path"] not in adopted.values()
    ]
    return faults
