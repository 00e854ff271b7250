"""What can go wrong while the libraries are activated; all of it is an `ImportError`."""

from __future__ import annotations


class ActivationError(ImportError):
    """The libraries of this package cannot be made to serve this process.

    Args:
        what: what happened, one sentence without a full stop.
        why: the cause.
        remedy: what to do about it.
    """

    def __init__(self, what: str, why: str, remedy: str) -> None:
        super().__init__(f"{what}\n  why: {why}\n  next: {remedy}")
        self.what = what
        self.why = why
        self.remedy = remedy

    @property
    def reason(self) -> str:
        """What happened and why, on one line."""
        return " ".join(f"{self.what}: {self.why}".split())


class DamagedError(ActivationError):
    """Files of this package are missing or unreadable: install it again."""


class ConflictError(ActivationError):
    """Another copy of cuDNN is already in this process, and its names are taken."""
