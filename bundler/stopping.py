"""Ending in good order when somebody stops the process: what is unfinished is removed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, NoReturn

from bundler.errors import BundlerError


class StoppedError(BundlerError):
    """Somebody stopped the run: start it again."""

    exit_code: ClassVar[int] = 130


class TerminatedError(StoppedError):
    """As before, by SIGTERM instead of Ctrl-C."""

    exit_code: ClassVar[int] = 143


class _Terminated(KeyboardInterrupt):
    """What SIGTERM raises, so that everything which cleans up after Ctrl-C does so for it too."""


@contextmanager
def stoppable() -> Iterator[None]:
    """Turn Ctrl-C and SIGTERM inside the block into errors of this tool.

    Raises:
        StoppedError: the process was asked to stop.
    """
    previous = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    except KeyboardInterrupt as stop:
        kind = TerminatedError if isinstance(stop, _Terminated) else StoppedError
        raise kind(
            "stopped; nothing is left half-written", next_step="run the command again"
        ) from None
    finally:
        signal.signal(signal.SIGTERM, previous)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM back until the block has ended.

    For the moments in which threads are started: one whose start is interrupted is forgotten
    by its pool, which then does not wait for it, and it writes into a folder that is being
    removed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []
    previous = {
        kind: signal.signal(kind, lambda number, _: held.append(number))
        for kind in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for kind, handler in previous.items():
            signal.signal(kind, handler)
        for number in held[:1]:
            signal.raise_signal(number)


def _terminate(*_: object) -> NoReturn:
    raise _Terminated
