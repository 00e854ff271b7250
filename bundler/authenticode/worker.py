"""The other side of `child`: runs in a process of its own and examines signatures.

A process, because parsing hostile bytes may take any time or crash, and because what it takes
(signify, certificates, OpenSSL) would stay in memory while artifacts are compressed.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from bundler.authenticode import Examined


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Examine every signature of a request.

    Args:
        request: `signatures`, DER in hex, and `roots`, PEM or null.

    Returns:
        `examined`: per signature a text with what is wrong, or a list of what was signed; or
        `missing`, why this machine cannot examine any.
    """
    try:
        # Here, so that what it needs and lacks can be reported.
        from bundler.authenticode.signed_data import Roots, examine  # noqa: PLC0415
    except Exception as error:  # noqa: BLE001 - oscrypto has errors of its own for a lacking OpenSSL
        return {"missing": f"{type(error).__name__}: {error}"}
    pem = request["roots"]
    roots = Roots(None if pem is None else pem.encode())
    found = [examine(bytes.fromhex(text), roots) for text in request["signatures"]]
    return {"examined": [_plain(each) for each in found]}


def _plain(examined: Examined) -> str | list[dict[str, Any]]:
    if isinstance(examined, str):
        return examined
    return [{"digest": each.digest.hex(), "signer": asdict(each.signer)} for each in examined]
