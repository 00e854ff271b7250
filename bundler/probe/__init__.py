"""The probe `cudnn-check` and the decoy, built from the C sources beside this file.

Prebuilt copies are kept so that a user needs no compiler; `scripts/build_native.py
--check` rebuilds them and compares bytes.
"""

from __future__ import annotations

from importlib.resources import files

from bundler.errors import MissingError
from bundler.names import Platform, ReleaseIdentity

PROBE_NAME = {True: "cudnn-check.exe", False: "cudnn-check"}
"""The probe's file name, for Windows and elsewhere."""


def probe_executable(identity: ReleaseIdentity) -> bytes:
    """Read the probe for a platform.

    Raises:
        MissingError: there is no probe for it.
    """
    return _prebuilt(identity.platform, PROBE_NAME[identity.platform.is_windows])


def probe_library(identity: ReleaseIdentity) -> tuple[str, bytes]:
    """Read the probe as a shared library: its file name and bytes.

    Raises:
        MissingError: there is none for this platform.
    """
    name = "cudnn-check.dll" if identity.platform.is_windows else "cudnn-check.so"
    return name, _prebuilt(identity.platform, name)


def decoy_library(platform: Platform) -> bytes:
    """Read a library that says it is cuDNN version 1, to lay traps with.

    Raises:
        MissingError: there is none for this platform.
    """
    return _prebuilt(platform, "decoy.dll" if platform.is_windows else "decoy.so")


def _prebuilt(platform: Platform, name: str) -> bytes:
    path = files(__name__) / "prebuilt" / str(platform) / name
    if not path.is_file():
        raise MissingError(
            f"there is no {name} for {platform}",
            next_step="this version ships cuDNN for other platforms only",
        )
    return path.read_bytes()
