"""The SBOM: what a release consists of, as CycloneDX 1.6, the same bytes in every artifact.

It follows from the lock and this version of the tool alone. cyclonedx-python-lib makes the
document; its final form is ours, so that another version of the library, which may order
things otherwise, gives the same bytes.

Source: CycloneDX 1.6 (ECMA-424).
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Final

from bundler.lock import Lock

FILE_NAME: Final = "cudnn.sbom.cdx.json"
"""Its name inside an artifact; beside them it begins with the release's stem."""


@lru_cache(maxsize=1)
def sbom_bytes(lock: Lock) -> bytes:
    """Write a release's SBOM as UTF-8 JSON with sorted keys and a final newline.

    Raises:
        MissingError: there is no probe for this platform.
    """
    # Here, because the library costs every other verb 0.2 s.
    from bundler.cyclonedx_document import describe  # noqa: PLC0415

    document = json.loads(describe(lock))
    # The library always takes the clock.
    document["metadata"].pop("timestamp", None)
    text = json.dumps(_in_order(document), indent=1, sort_keys=True, ensure_ascii=False)
    return (text + "\n").encode()


def _in_order(value: object) -> object:
    """Sort every array: in this document each is a set."""
    if isinstance(value, dict):
        return {key: _in_order(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted(map(_in_order, value), key=lambda item: json.dumps(item, sort_keys=True))
    return value
