"""Telling what the system refuses, wherever it is asked, from a bug."""

from __future__ import annotations

import errno
from typing import Final

from bundler.errors import MissingError

SHORTAGES: Final = {
    errno.EMFILE: "open files",
    errno.ENFILE: "open files",
    errno.ENOMEM: "memory",
    errno.EAGAIN: "threads or processes",
}
"""What the system may run out of, whatever is being done; a full disk is told where it is met."""


def shortage(error: Exception) -> MissingError | None:
    """Say what ran out, when that is what an exception means.

    Args:
        error: anything that no step expected.
    """
    what = SHORTAGES.get(getattr(error, "errno", None) or 0)
    if isinstance(error, MemoryError) or "not enough memory" in str(error):
        what = "memory"
    elif isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        what = "threads or memory"
    if what is None:
        return None
    return MissingError(
        f"this process may have no more {what}",
        why=str(error),
        next_step="raise its limit (`ulimit`, the container's, the service's) or end other "
        "programs, then run the command again",
    )
