"""Installing an app-local bundle: unpacked, the probe standing for the application."""

from __future__ import annotations

import zipfile
from pathlib import Path

from bundler.artifacts import ArtifactKind
from bundler.artifacts.reading import read_artifact_lock
from bundler.probe import PROBE_NAME
from bundler.smoke.host import NotRun
from bundler.smoke.installation import Check, Installation, SmokeContext


def install(path: Path, context: SmokeContext) -> Installation:
    """Unpack a bundle as a user would; see `Installer`."""
    # A space, because applications live in "Program Files".
    folder = context.scratch / "application folder"
    lock = read_artifact_lock(ArtifactKind.APP_LOCAL, path)
    with zipfile.ZipFile(path) as bundle:
        bundle.extractall(folder)
    if isinstance(context.host, NotRun):
        return Installation(lock, folder, not_run=context.host.reason)
    probe = folder / PROBE_NAME[lock.identity.platform.is_windows]
    probe.chmod(0o755)
    return Installation(
        lock,
        folder,
        {
            "as an application": Check((probe,), every_library=False),
            "every library by path": Check((probe, "--library-dir", folder)),
        },
    )
