"""cuDNN's run-time libraries, made to work by importing this package.

Importing activates: the libraries in this package are loaded by full path, so that
whatever opens cuDNN by name afterwards gets these and no others. Set the environment
variable that is this package's name in capitals to `off` to import without activating.
`python -m` with this package's name checks what works on this machine.

The libraries are NVIDIA's, unmodified, under NVIDIA's licence.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any

from ._activation import Activation
from ._check import run_check
from ._errors import ActivationError, ConflictError, DamagedError
from ._installed import ACTIVATOR, PACKAGE, process_loader
from ._needs import ResolvedNeed
from ._verify import Verification, verify_folder

__all__ = [
    "Activation",
    "ActivationError",
    "ConflictError",
    "DamagedError",
    "ResolvedNeed",
    "Verification",
    "__version__",
    "activate",
    "check",
    "deactivate",
    "library_dir",
    "loaded",
    "verify",
]

_FAMILY = re.compile(r"(lib)?(cudnn|cublas|nvblas|nvrtc|zlib|z\.so)", re.IGNORECASE)
__version__ = PACKAGE.lock.version


def activate() -> Activation:
    """Make this package's libraries the ones that the process uses.

    Does nothing the second time, and may be called from any thread. A needed library that
    is found nowhere is no error here: see `missing` of the result, and `check`.

    Raises:
        ConflictError: another copy of cuDNN has the names already.
        DamagedError: files of this package are missing.
        ActivationError: the loader refuses a library, or this is another system.
    """
    return ACTIVATOR.activate()


def deactivate() -> None:
    """Undo what can be undone: unregister the folder and drop this package's own holds.

    What cannot be undone: a library that anything else holds (cuDNN holds its own parts
    from its first call on) stays loaded, keeps its name, and its file cannot be deleted
    on Windows; on Linux nothing is unloaded at all. What another copy needs is a new
    process. Call it only when no code of cuDNN is running.
    """
    ACTIVATOR.deactivate()


def library_dir() -> str:
    """Give the folder of the libraries, whether or not they are loaded."""
    return PACKAGE.library_folder


def loaded() -> dict[str, str]:
    """Give name to path of every cuDNN, cuBLAS, NVRTC and zlib library in the process.

    Wherever they came from; of several with one name, the one that was loaded first.
    """
    found: dict[str, str] = {}
    for path in process_loader().modules():
        name = os.path.basename(path)
        if _FAMILY.match(name):
            found.setdefault(name, path)
    return found


def verify() -> Verification:
    """Hash the installed libraries and compare them with the lock."""
    return verify_folder(PACKAGE.library_folder, PACKAGE.lock)


def check(*, timeout: float = 300.0) -> dict[str, Any]:
    """Try everything in a child process, because a failing cuDNN ends its process.

    Args:
        timeout: seconds.

    Returns:
        The report as `python -m` with `--json` prints it: `result`, `first_failure` and
        `stages`.
    """
    return run_check(PACKAGE.name, timeout)


def _is_own_check() -> bool:
    # Under `python -m` with this package's name a conflict is to be reported, not raised.
    argv = getattr(sys, "orig_argv", [])
    return any(argv[position : position + 2] == ["-m", __name__] for position in range(len(argv)))


if not PACKAGE.is_off and not _is_own_check():
    ACTIVATOR.activate()
