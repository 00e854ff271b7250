"""Telling the user which step runs: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console

Progress = Callable[[str], None]
"""Called with a few words as each step begins."""


@contextmanager
def show_progress(
    stream: TextIO, clock: Callable[[], float] = time.monotonic
) -> Iterator[Progress]:
    """Give a progress to report to, and end its display afterwards.

    Args:
        stream: where to show it; colour and motion only if it is a terminal.
        clock: seconds, from any origin.
    """
    console, start = Console(file=stream, highlight=False), clock()
    live = console.status("starting") if console.is_terminal else None

    def report(step: str) -> None:
        console.print(f"[{clock() - start:6.1f} s] {step}", markup=False, soft_wrap=True)
        if live is not None:
            live.update(step)

    if live is None:
        yield report
        return
    with live:
        yield report
