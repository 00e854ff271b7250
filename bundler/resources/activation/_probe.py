"""The probe that computes, a shared library beside this module.

It runs in this very process, on the libraries that activation has loaded, so what it
proves holds for whoever imports this package.
"""

from __future__ import annotations

import ctypes
import json
import os
from typing import Any

from ._activation import Package

_NAMES = {True: "cudnn-check.dll", False: "cudnn-check.so"}


def compute(package: Package) -> dict[str, Any]:
    """Run every stage of the probe and give its report.

    Args:
        package: whose libraries are to compute.

    Raises:
        OSError: the probe is missing or cannot be loaded.
    """
    path = os.path.join(package.folder, _NAMES[package.lock.is_windows])
    library = ctypes.CDLL(path)
    library.cudnn_check_json.argtypes = (ctypes.c_char_p,)
    library.cudnn_check_json.restype = ctypes.c_char_p
    report: dict[str, Any] = json.loads(
        library.cudnn_check_json(package.library_folder.encode("utf-8"))
    )
    return report
