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


def main() -> int:
    """Print the report and give the exit code: 0, 5 (failed) or 6 (no GPU, but required)."""
    package = __package__ or ""
    parser = argparse.ArgumentParser(prog=f"python -m {package}", description=__doc__)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON document")
    form.add_argument("--text", action="store_false", dest="json", help="print text (default)")
    parser.add_argument("--require-gpu", action="store_true", help="exit 6 if no GPU was used")
    arguments = parser.parse_args(namespace=_Arguments())
    report = importlib.import_module(package).check()
    text = json.dumps(report, indent=1) if arguments.json else _text(report)
    sys.stdout.write(text + "\n")
    return _exit_code(report, require_gpu=arguments.require_gpu)


def _exit_code(report: dict[str, Any], *, require_gpu: bool) -> int:
    if report["result"] == "failed":
        return _FAILED
    return _NO_GPU if require_gpu and report["result"] != "passed" else 0


def _text(report: dict[str, Any]) -> str:
    lines = [
        f"{each['stage']}: {each['status']} {each['reason']}".rstrip() for each in report["stages"]
    ]
    failure = report["first_failure"]
    if failure:
        lines.append(f"next: {failure['remedy']}")
    return "\n".join([*lines, f"result: {report['result']}"])


if __name__ == "__main__":
    sys.exit(main())
