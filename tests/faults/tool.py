"""The tool as a user runs it: a process, its archive, and what a good run makes."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.sample_archives import NAME, SampleArchive, libraries, sha256_of

ROOT = Path(__file__).parents[2]
PADDING = 2 * 1024 * 1024
"""Bytes behind each library, so that there is time between two steps."""

Tree = Mapping[str, str]


@dataclass(frozen=True)
class Finished:
    """A run that ended.

    Args:
        code: as the system gives it; negative for a signal.
        output: standard output.
        messages: standard error.
    """

    code: int
    output: str
    messages: str


@dataclass(frozen=True)
class Tool:
    """A command line, complete but for the output folder.

    Args:
        archive: to build from.
        environment: of the process.
        before: words before the command, such as `prlimit --nofile=16`.
        options: words after it.
    """

    archive: Path
    environment: Mapping[str, str]
    before: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    sha256: str = field(default="")

    def command(self, output: Path) -> list[str]:
        words = [*self.before, sys.executable, "-m", "bundler", "build", str(self.archive)]
        witness = self.sha256 or sha256_of(self.archive)
        return [*words, "-o", str(output), "--sha256", witness, "--no-smoke", *self.options]

    def start(self, output: Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(output), env=self.environment, cwd=self.archive.parent, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, errors="backslashreplace",
        )  # fmt: skip

    def run(self, output: Path) -> Finished:
        return ended(self.start(output))


def ended(process: subprocess.Popen[str], seen: str = "") -> Finished:
    """Wait for the end; `communicate` would lose what was read ahead with the lines."""
    watchdog = threading.Timer(120, process.kill)
    watchdog.start()
    with process:
        messages = seen + (process.stderr.read() if process.stderr else "")
        output = process.stdout.read() if process.stdout else ""
    watchdog.cancel()
    return Finished(process.returncode, output, messages)


def large_archive(path: Path) -> Path:
    """Make an archive that takes a while: 14 MB of libraries that do not compress."""
    noise = random.Random(8)
    padded = {f"bin/{name}": data + noise.randbytes(PADDING) for name, data in libraries().items()}
    return SampleArchive(changes=padded).write(path)


def new_tool(folder: Path) -> Tool:
    """Make an archive under NVIDIA's name and the tool for it."""
    archive = large_archive(folder / NAME)
    places = {"CUDNN_BUNDLER_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
    environment = {**os.environ, **places, "PYTHONDONTWRITEBYTECODE": "1"}
    return Tool(archive, environment, options=("--no-cache",), sha256=sha256_of(archive))


def tree_of(folder: Path) -> dict[str, str]:
    """Hash every file of a folder, hidden ones too."""
    files = [path for path in folder.rglob("*") if not path.is_dir()]
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def final_tree(folder: Path) -> dict[str, str]:
    """Hash what users see: hidden files and folders hold what is unfinished."""
    tree = tree_of(folder) if folder.is_dir() else {}
    return {
        path: found
        for path, found in tree.items()
        if not any(part.startswith(".") for part in path.split("/"))
    }


@dataclass(frozen=True)
class Reference:
    """What a good run makes, says, and how long it takes.

    Args:
        tree: hashes by path.
        lines: of progress.
        first: seconds until the first line.
        last: seconds until the end.
    """

    tree: Tree
    lines: tuple[str, ...]
    first: float
    last: float

    def moments(self, count: int) -> list[float]:
        """Spread seconds, from the first line on, over the time in which something is done."""
        step = (self.last - self.first) / count
        return [step * number for number in range(count)]


def measured(tool: Tool, output: Path) -> Reference:
    """Run the tool undisturbed."""
    started, lines, first = time.monotonic(), [], 0.0
    process = tool.start(output)
    for line in progress_of(process):
        first = first or time.monotonic() - started
        lines.append(line)
    finished = ended(process)
    assert finished.code == 0, finished
    return Reference(tree_of(output), tuple(lines), first, time.monotonic() - started)


def progress_of(process: subprocess.Popen[str]) -> Iterator[str]:
    """Yield the lines of progress as they come, and leave the pipe open."""
    assert process.stderr is not None
    yield from iter(process.stderr.readline, "")


def wait_for_line(process: subprocess.Popen[str], number: int) -> str:
    """Wait until so many lines of progress are there, and give them."""
    lines = progress_of(process)
    return "".join(next(lines, "") for _ in range(number + 1))


def halted(process: subprocess.Popen[str], number: int) -> str:
    """Wait for a line, then hold the process where it is."""
    seen = wait_for_line(process, number)
    process.send_signal(signal.SIGSTOP)
    return seen


def assert_whole(output: Path, reference: Reference, context: object) -> None:
    """Make sure that every file at a final path is the whole one."""
    wrong = {
        path for path, found in final_tree(output).items() if reference.tree.get(path) != found
    }
    assert wrong == set(), context


def assert_explained(finished: Finished, codes: Sequence[int], context: object) -> None:
    """Make sure that a failure says what, why or where, and what next."""
    assert finished.code in codes, (context, finished)
    assert "Traceback" not in finished.messages, (context, finished)
    assert "Exception" not in finished.messages, (context, finished)
    assert "error: " in finished.messages, (context, finished)
    assert "next: " in finished.messages, (context, finished)


def assert_next_run_succeeds(
    tool: Tool, output: Path, reference: Reference, context: object
) -> None:
    """Make sure that the next run makes everything and leaves nothing else behind."""
    finished = tool.run(output)
    assert finished.code == 0, (context, finished)
    assert tree_of(output) == reference.tree, context
