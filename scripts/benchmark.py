"""Time and peak memory of `build` beside well-known tools, on the same archive.

    python scripts/benchmark.py ARCHIVE [--manifest FILE] [--runs 3]

Runs are interleaved, so that a busy moment of the machine hits all of them; the table
shows medians, and ratios to `unzip -q`. Linux only: peak memory is read from the kernel.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Measurement:
    """One run of one command.

    Args:
        seconds: wall-clock time of the whole process.
        peak: resident memory at most, MiB.
    """

    seconds: float
    peak: float


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("archive", type=Path)
    parser.add_argument("--manifest", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    commands = dict(_commands(arguments.archive, arguments.manifest))
    runs: dict[str, list[Measurement]] = {name: [] for name in commands}
    for _ in range(arguments.runs):
        for name, command in commands.items():
            with tempfile.TemporaryDirectory(dir=arguments.archive.parent) as folder:
                runs[name].append(measure([*command, *_output(command, folder)], folder))
    _print_table(runs)


def _commands(archive: Path, manifest: Path | None) -> Iterator[tuple[str, list[str]]]:
    path = str(archive.resolve())
    witness = ["--manifest", str(manifest.resolve())] if manifest else []
    build = [sys.executable, "-m", "bundler", "build", path, *witness, "--no-smoke"]
    yield "build, all three (zstd 3)", build
    yield "build, app-local and wheel", [*build, "--only", "app-local", "--only", "wheel"]
    if shutil.which("unzip"):
        yield "unzip -q", ["unzip", "-q", path]
    if shutil.which("sha256sum"):
        yield "sha256sum", ["sha256sum", path]


def _output(command: list[str], folder: str) -> list[str]:
    return ["-o", folder] if "bundler" in command else []


def measure(command: list[str], folder: str) -> Measurement:
    """Run a command in a folder and read what the kernel says of it."""
    start = time.monotonic()
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"exit code {process.returncode}: {' '.join(command)}")
    return Measurement(time.monotonic() - start, usage.ru_maxrss / 1024)


def _print_table(runs: dict[str, list[Measurement]]) -> None:
    medians = {name: statistics.median(m.seconds for m in found) for name, found in runs.items()}
    unit = medians.get("unzip -q", next(iter(medians.values())))
    print("| command | seconds (median) | ratio to unzip | peak memory, MiB |")
    print("|---|---|---|---|")
    for name, found in runs.items():
        peak = max(measurement.peak for measurement in found)
        print(f"| {name} | {medians[name]:.1f} | {medians[name] / unit:.2f} | {peak:.0f} |")


if __name__ == "__main__":
    main()
