"""The few functions of cuDNN that a check calls, through `ctypes`."""

from __future__ import annotations

import ctypes
from typing import Protocol

# Every generation's; a release answers to those that it has.
_VERSION_CHECKS = tuple(
    f"cudnn{part}VersionCheck"
    for part in (
        "OpsInfer",
        "OpsTrain",
        "CnnInfer",
        "CnnTrain",
        "AdvInfer",
        "AdvTrain",
        "Graph",
        "Ops",
        "Cnn",
        "Adv",
        "SubquadraticOps",
    )
)
_TENSOR_DESCRIPTOR = 17
FINALIZE = "cudnnBackendFinalize"
# An empty tensor is a bad parameter, which is the answer of a library set that is whole.
BAD_PARAMETER = 2000
# What SubquadraticOpsVersionCheck of 9.28 answers although its library is there.
NOT_SUPPORTED = 3000


class Api(Protocol):
    """cuDNN, as a check sees it; tests play one in memory."""

    def version(self) -> int:
        """Call `cudnnGetVersion`."""
        ...

    def cudart_version(self) -> int:
        """Call `cudnnGetCudartVersion`."""
        ...

    def version_checks(self) -> dict[str, int]:
        """Call every `VersionCheck` there is; each makes one more part answer."""
        ...

    def finalize_empty_tensor(self) -> int:
        """Make cuDNN 9 consult its engines, which nothing else does without a GPU."""
        ...

    def create(self) -> int:
        """Make a handle and destroy it; gives the status."""
        ...

    def error_text(self, status: int) -> str:
        """Call `cudnnGetErrorString`."""
        ...


class CtypesApi:
    """cuDNN through its main library.

    Args:
        path: of the main library, which is loaded already.
    """

    def __init__(self, path: str) -> None:
        self._library = ctypes.CDLL(path)

    def version(self) -> int:
        """Call `cudnnGetVersion`."""
        self._library.cudnnGetVersion.restype = ctypes.c_size_t
        return int(self._library.cudnnGetVersion())

    def cudart_version(self) -> int:
        """Call `cudnnGetCudartVersion`."""
        self._library.cudnnGetCudartVersion.restype = ctypes.c_size_t
        return int(self._library.cudnnGetCudartVersion())

    def version_checks(self) -> dict[str, int]:
        """Call every `VersionCheck` there is."""
        present = [name for name in _VERSION_CHECKS if hasattr(self._library, name)]
        return {name: int(getattr(self._library, name)()) for name in present}

    def finalize_empty_tensor(self) -> int:
        """Create a tensor descriptor, finalise it empty, and destroy it."""
        descriptor = ctypes.c_void_p()
        status = self._library.cudnnBackendCreateDescriptor(
            _TENSOR_DESCRIPTOR, ctypes.byref(descriptor)
        )
        if status != 0:
            return int(status)
        answer = int(self._library.cudnnBackendFinalize(descriptor))
        self._library.cudnnBackendDestroyDescriptor(descriptor)
        return answer

    def create(self) -> int:
        """Make a handle and destroy it."""
        handle = ctypes.c_void_p()
        status = int(self._library.cudnnCreate(ctypes.byref(handle)))
        if status == 0:
            self._library.cudnnDestroy(handle)
        return status

    def error_text(self, status: int) -> str:
        """Call `cudnnGetErrorString`."""
        self._library.cudnnGetErrorString.restype = ctypes.c_char_p
        text = self._library.cudnnGetErrorString(status)
        return text.decode("ascii", "replace") if text else f"status {status}"
