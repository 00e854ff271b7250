"""Fuzz every target, one after the other: `python -m tests.fuzz.campaign [--runs N] [NAME...]`.

The seed is fixed, so equal versions try equal inputs. Ends with exit code 1 when a target let
out anything but this tool's own errors, took too long over one input or too much memory; the
input is kept and its path shown.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.targets import TARGETS, Target

_SECONDS_FOR_ONE_INPUT = 10
_MEMORY_LIMIT = 512
"""MiB for the whole process, of which Python and the tables take 100."""

_STATUS = re.compile(r"cov: (?P<edges>\d+) ft: (?P<features>\d+) corp: (?P<corpus>\d+)/")
_EXECUTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_PEAK = re.compile(r"stat::peak_rss_mb:\s*(\d+)")
_MEMORY_DISK = Path("/dev/shm")


@dataclass(frozen=True)
class Outcome:
    """What fuzzing one target came to.

    Args:
        name: of the target.
        seconds: it took.
        log: what libFuzzer said.
        code: its exit code.
    """

    name: str
    seconds: float
    log: str
    code: int

    def line(self) -> str:
        """Say it in a line."""
        status = [*_STATUS.finditer(self.log)]
        found = status[-1].groupdict("?") if status else {}
        executed, peak = _EXECUTED.search(self.log), _PEAK.search(self.log)
        return (
            f"{self.name:<14} {'passed' if self.code == 0 else 'FAILED':<7}"
            f"{executed[1] if executed else '?':>8} executions {self.seconds:7.1f} s"
            f"  edges {found.get('edges', '?')}, features {found.get('features', '?')}, "
            f"corpus {found.get('corpus', '?')}, peak {peak[1] if peak else '?'} MiB"
        )


def main(arguments: list[str]) -> int:
    """Run the campaign and print a line for each target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200_000, help="inputs for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"), help="for bad inputs")
    parser.add_argument("names", nargs="*", help="default: all targets")
    options = parser.parse_args(arguments)
    failed = 0
    for name in options.names or TARGETS:
        options.keep.mkdir(parents=True, exist_ok=True)
        outcome = fuzz(name, options.runs, options.seed, options.keep.absolute())
        sys.stdout.write(f"{outcome.line()}\n")
        sys.stdout.flush()
        if outcome.code:
            failed += 1
            sys.stdout.write(f"{outcome.log[-6000:]}\n")
    return min(failed, 1)


def fuzz(name: str, runs: int, seed: int, keep: Path) -> Outcome:
    """Fuzz one target in a process of its own."""
    memory_disk = _MEMORY_DISK if _MEMORY_DISK.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=memory_disk) as scratch:
        folder = Path(scratch)
        options = _prepared(TARGETS[name], folder)
        (folder / "files").mkdir()
        command = [sys.executable, "-m", "tests.fuzz.one_target", name, str(folder / "files")]
        command += [f"-runs={runs}", f"-seed={seed}", f"-artifact_prefix={keep}/{name}-"]
        started = time.monotonic()
        done = subprocess.run(
            [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            check=False, text=True, errors="backslashreplace",
        )  # fmt: skip
    return Outcome(name, time.monotonic() - started, done.stdout, done.returncode)


def _prepared(target: Target, folder: Path) -> list[str]:
    """Write corpus and dictionary, and give the options that name them."""
    corpus, words = folder / "corpus", folder / "words"
    corpus.mkdir()
    for number, seed in enumerate(target.seeds()):
        (corpus / str(number)).write_bytes(seed)
    words.write_text("".join(_dictionary(target)) or "# none\n", encoding="ascii")
    limits = [f"-timeout={_SECONDS_FOR_ONE_INPUT}", f"-rss_limit_mb={_MEMORY_LIMIT}"]
    return [*limits, f"-max_len={target.longest}", f"-dict={words}", "-print_final_stats=1",
            str(corpus)]  # fmt: skip


def _dictionary(target: Target) -> Iterator[str]:
    for word in target.words:
        yield '"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n'


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
