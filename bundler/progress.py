"""Telling the user which step runs: a live bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.progress import Progress as Bar


class Progress:
    """Is told what happens, and says nothing; a display overrides it."""

    def __call__(self, step: str, total: int = 0) -> None:
        """Begin a step, which ends the one before.

        Args:
            step: a few words.
            total: bytes that it will go through; 0 when it is not counted.
        """

    def advance(self, size: int) -> None:
        """Count bytes of the step, from any thread."""


class _Lines(Progress):
    """A line for each step, with the time since the start."""

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        self._console, self._clock, self._start = console, clock, clock()

    def __call__(self, step: str, total: int = 0) -> None:
        del total
        line = f"[{self._clock() - self._start:6.1f} s] {step}"
        self._console.print(line, markup=False, soft_wrap=True)


class _Live(_Lines):
    """Below the lines, a bar with rate and time left."""

    def __init__(self, console: Console, clock: Callable[[], float], bar: Bar) -> None:
        super().__init__(console, clock)
        self._bar = bar
        self._task = bar.add_task("starting", total=None)

    def __call__(self, step: str, total: int = 0) -> None:
        super().__call__(step, total)
        # Not before the first step: until then somebody may be asked for a passphrase.
        self._bar.start()
        self._bar.reset(self._task, description=step, total=total or None)

    def advance(self, size: int) -> None:
        self._bar.advance(self._task, size)


@contextmanager
def show_progress(
    stream: TextIO, clock: Callable[[], float] = time.monotonic
) -> Iterator[Progress]:
    """Give a progress to report to, and end its display afterwards.

    Args:
        stream: where to show it; colour and motion only if it is a terminal.
        clock: seconds, from any origin.
    """
    console = Console(file=stream, highlight=False)
    if not console.is_terminal:
        yield _Lines(console, clock)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    bar = Bar(*columns, console=console, transient=True, get_time=clock)
    try:
        yield _Live(console, clock, bar)
    finally:
        bar.stop()
