"""The child's side of a check: it runs the stages and tells each on a line of its own."""

from __future__ import annotations

import json
import sys
from typing import Any

from ._api import CtypesApi
from ._check import MARK
from ._errors import ActivationError
from ._installed import PACKAGE, process_loader
from ._stages import Check, run_stages


def main() -> None:
    """Run the stages for the package that this module belongs to."""
    try:
        loader = process_loader()
    except ActivationError as error:
        _tell({"begins": "library"})
        sys.exit(error.reason)
    run_stages(Check(PACKAGE, loader, CtypesApi), _tell)


def _tell(document: dict[str, Any]) -> None:
    # At once, and past any buffer: the next call may be the last.
    sys.stdout.write(MARK + json.dumps(document) + "\n")
    sys.stdout.flush()
