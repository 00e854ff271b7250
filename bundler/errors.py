"""Every failure this tool can name, one class per thing the user must do about it.

The class carries the exit code; `main` catches the root once. A message says what
happened, why, and what to do next, and lists every fault that was found.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong, and where.

    Args:
        where: what is at fault: a posix path inside the archive, a path inside a JSON
            document (`cudnn.windows-x86_64.sha256`) or the name of a witness.
        what: the fault in words, without a full stop.
    """

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


class BundlerError(Exception):
    """Root of everything this tool raises on purpose.

    Args:
        what: what happened, one sentence without a full stop.
        why: the cause, where it is known and not already said.
        next_step: what the user can do about it.
        faults: all faults found, not just the first.
    """

    exit_code: ClassVar[int] = 1

    def __init__(
        self, what: str, *, why: str = "", next_step: str = "", faults: Iterable[Fault] = ()
    ) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.next_step = next_step
        self.faults = tuple(faults)

    def __str__(self) -> str:
        lines = [self.what]
        lines += [f"  - {fault}" for fault in self.faults]
        if self.why:
            lines.append(f"  why: {self.why}")
        if self.next_step:
            lines.append(f"  next: {self.next_step}")
        return "\n".join(lines)


class UsageError(BundlerError):
    """The command line or an argument makes no sense: call it differently."""

    exit_code = 2


class ArchiveError(BundlerError):
    """The archive or manifest is not what it claims: get the right bytes."""

    exit_code = 3


class ReleaseError(BundlerError):
    """The bytes are authentic but the release is not fit to ship: use another release."""

    exit_code = 4


class SmokeError(BundlerError):
    """An artifact was built and does not work: do not ship it."""

    exit_code = 5


class MissingError(BundlerError):
    """Something that is needed is not on this machine: install or provide it."""

    exit_code = 6


class RefusedError(BundlerError):
    """The destination refuses: it holds other bytes, is locked, or lacks a proof."""

    exit_code = 7
