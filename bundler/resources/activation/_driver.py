"""The NVIDIA driver, as far as cuDNN needs it; found by name only, never shipped."""

from __future__ import annotations

import ctypes
import sys

# LOAD_LIBRARY_SEARCH_SYSTEM32, which is how cuDNN itself looks for it.
_SYSTEM32_ONLY = 0x00000800


def open_driver() -> ctypes.CDLL | None:
    """Open the driver, if there is one."""
    try:
        if sys.platform == "win32":
            return ctypes.CDLL("nvcuda.dll", winmode=_SYSTEM32_ONLY)
        else:  # noqa: RET505 - type checkers know the platform of a branch only
            return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


def driver_version(driver: ctypes.CDLL) -> int:
    """Give the CUDA version that the driver serves: 12040 is 12.4; 0 when it does not say."""
    version = ctypes.c_int(0)
    status = driver.cuDriverGetVersion(ctypes.byref(version))
    return version.value if status == 0 else 0


def start_driver(driver: ctypes.CDLL) -> int:
    """Call `cuInit`; 0 is success, 100 is no device."""
    return int(driver.cuInit(0))


def device_names(driver: ctypes.CDLL) -> list[str]:
    """Name every device that this process may use."""
    count = ctypes.c_int(0)
    if driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return []
    names = []
    for position in range(count.value):
        device = ctypes.c_int(0)
        text = ctypes.create_string_buffer(256)
        found = driver.cuDeviceGet(ctypes.byref(device), position) == 0
        if found and driver.cuDeviceGetName(text, len(text), device) == 0:
            names.append(text.value.decode("utf-8", "replace"))
    return names
