"""`python -m` with this package's name: check what works here, and say it."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from typing import Any

_FAILED = 5
_NO_GPU = 6


class _Arguments(argparse.Namespace):
    json: bool
    require_gpu: bool
    framework: str | None


def main() -> int:
    """Print the report and give the exit code.

    0; 5 (failed); 6 (no GPU, but required, or the framework is not installed).
    """
    package = __package__ or ""
    parser = argparse.ArgumentParser(prog=f"python -m {package}", description=__doc__)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON document")
    form.add_argument("--text", action="store_false", dest="json", help="print text (default)")
    parser.add_argument("--require-gpu", action="store_true", help="exit 6 if no GPU was used")
    frameworks = parser.add_mutually_exclusive_group()
    for name in ("torch", "tensorflow"):
        frameworks.add_argument(
            f"--{name}",
            action="store_const",
            const=name,
            dest="framework",
            help=f"check whether {name}, if installed, computes with these libraries",
        )
    arguments = parser.parse_args(namespace=_Arguments())
    report = _report(package, arguments.framework)
    text = json.dumps(report, indent=1) if arguments.json else _text(report)
    sys.stdout.write(text + "\n")
    return _exit_code(report, require_gpu=arguments.require_gpu)


def _report(package: str, framework: str | None) -> dict[str, Any]:
    if framework is None:
        report: dict[str, Any] = importlib.import_module(package).check()
    else:
        module = importlib.import_module(f"{package}._frameworks")
        report = module.run_framework_check(framework)
    return report


def _exit_code(report: dict[str, Any], *, require_gpu: bool) -> int:
    if report["result"] == "failed":
        return _FAILED
    if report["result"] == "not-run":
        return _NO_GPU
    return _NO_GPU if require_gpu and report["result"] != "passed" else 0


def _text(report: dict[str, Any]) -> str:
    lines = []
    for each in report["stages"]:
        lines.append(f"{each['stage']}: {each['status']} {each['reason']}".rstrip())
        if "framework" in report:
            lines += _fact_lines(each["facts"])
    failure = report["first_failure"]
    if failure:
        lines.append(f"next: {failure['remedy']}")
    return "\n".join([*lines, f"result: {report['result']}"])


def _fact_lines(facts: dict[str, Any]) -> list[str]:
    lines = [f"  {key}: {value}" for key, value in facts.items() if key != "modules"]
    for module in facts.get("modules", ()):
        place = "inside this package" if module["inside"] else "NOT of this package"
        lines.append(f"  {module['path']} ({place})")
    return lines


if __name__ == "__main__":
    sys.exit(main())
