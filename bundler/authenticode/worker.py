"""The other side of `child`: runs in a process of its own and examines signatures.

A process, because parsing hostile bytes may take any time or crash, and because what it takes
(signify, certificates, OpenSSL) would stay in memory while artifacts are compressed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bundler.authenticode import Examined

if TYPE_CHECKING:
    from bundler.authenticode.signed_data import Roots


def prepare() -> Roots | None:
    """Do what takes long before there is a request; `answer` says what is lacking.

    Returns:
        Microsoft's roots, or nothing.
    """
    with suppress(Exception):
        from bundler.authenticode import signed_data  # noqa: PLC0415

        roots = signed_data.Roots(None)
        # Its lists are read when they are first looked into.
        roots.named_in(())
        return roots
    return None


def answer(request: dict[str, Any], prepared: Roots | None = None) -> dict[str, Any]:
    """Examine every signature of a request.

    Args:
        request: `signatures`, DER in hex, and `roots`, PEM or null.
        prepared: from `prepare`.

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
    roots = Roots(pem.encode()) if pem else prepared or Roots(None)
    found = [examine(bytes.fromhex(text), roots) for text in request["signatures"]]
    return {"examined": [_plain(each) for each in found]}


def _plain(examined: Examined) -> str | list[dict[str, Any]]:
    if isinstance(examined, str):
        return examined
    return [{"digest": each.digest.hex(), "signer": asdict(each.signer)} for each in examined]
