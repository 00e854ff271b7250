"""Running commands one after the other, again and again, and what each of them took."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
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


@dataclass(frozen=True)
class Command:
    """What is measured.

    Args:
        words: of the command line; `{output}` stands for a folder of its own.
        setup: a command to run before, unmeasured, in the same folder.
        once: measured in the first round only, for it takes minutes.
    """

    words: tuple[str, ...]
    setup: tuple[str, ...] = ()
    once: bool = False


@dataclass(frozen=True)
class Summary:
    """All runs of one command.

    Args:
        seconds: the median.
        peak: the largest, MiB.
    """

    seconds: float
    peak: float


def interleave(commands: Mapping[str, Command], rounds: int, disk: Path) -> dict[str, Summary]:
    """Run every command in every round, so that a busy moment hits all of them.

    Args:
        commands: by name.
        rounds: how often.
        disk: a folder on the disk to work on.
    """
    runs: dict[str, list[Measurement]] = {name: [] for name in commands}
    for turn in range(rounds):
        for name, command in commands.items():
            if turn and command.once:
                continue
            print(f"round {turn + 1}: {name}", file=sys.stderr, flush=True)
            runs[name].append(_run(command, disk))
    return {
        name: Summary(statistics.median(m.seconds for m in found), max(m.peak for m in found))
        for name, found in runs.items()
    }


def _run(command: Command, disk: Path) -> Measurement:
    folder = tempfile.mkdtemp(prefix="benchmark-", dir=disk)
    try:
        if command.setup:
            _measure(_filled(command.setup, folder), folder)
        return _measure(_filled(command.words, folder), folder)
    finally:
        shutil.rmtree(folder)
        # What the last command left to write must not slow the next one.
        os.sync()


def _filled(words: Sequence[str], folder: str) -> list[str]:
    return [word.replace("{output}", folder) for word in words]


def _measure(words: list[str], folder: str) -> Measurement:
    start = time.monotonic()
    with subprocess.Popen(
        words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        error = process.stderr.read() if process.stderr is not None else b""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"exit code {process.returncode}: {' '.join(words)}\n{error.decode()[-2000:]}")
    return Measurement(time.monotonic() - start, usage.ru_maxrss / 1024)
