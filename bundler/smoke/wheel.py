"""Installing a wheel: by pip into a clean virtual environment of a real Python."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

from bundler.artifacts import ArtifactKind
from bundler.artifacts.reading import read_artifact_lock
from bundler.artifacts.wheel import library_folder
from bundler.lock import Lock
from bundler.smoke.host import NativeHost, NotRun
from bundler.smoke.installation import Check, Installation, SmokeContext
from bundler.smoke.windows_python import (
    find_windows_python,
    install_wheel,
    make_windows_venv,
)


def install(path: Path, context: SmokeContext) -> Installation:
    """Install a wheel by pip; where no Python can run, unpack it. See `Installer`."""
    lock = read_artifact_lock(ArtifactKind.WHEEL, path)
    folder = context.scratch / "virtual environment"
    if isinstance(context.host, NotRun):
        return _unpacked(path, lock, folder, context.host.reason)
    python = _find_python(context)
    if isinstance(python, NotRun):
        return _unpacked(path, lock, folder, python.reason)
    environment_python = make_windows_venv(context.host, python, folder)
    install_wheel(context.host, python, environment_python, path)
    return Installation(
        lock,
        folder / "Lib" / "site-packages" / library_folder(lock.identity),
        {"import": Check((environment_python, "-m", lock.identity.import_name, "--json"))},
    )


def _find_python(context: SmokeContext) -> Path | NotRun:
    """Take the Python that runs this, unless the host is another kind of machine."""
    if isinstance(context.host, NativeHost):
        return Path(sys.executable)
    return find_windows_python(context.environment)


def _unpacked(path: Path, lock: Lock, folder: Path, reason: str) -> Installation:
    with zipfile.ZipFile(path) as wheel:
        wheel.extractall(folder)
    return Installation(lock, folder / library_folder(lock.identity), not_run=reason)
