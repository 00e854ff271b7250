"""Installing a conda package: solved from a channel of its own into a clean environment."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import rattler
from rattler import Subdir
from rattler.exceptions import InstallerError, LinkError, SolverError, TransactionError

from bundler.artifacts import ArtifactKind
from bundler.artifacts.conda_info import CondaIndex, read_conda_index
from bundler.artifacts.conda_recipe import installed_folders
from bundler.artifacts.reading import read_artifact_lock
from bundler.errors import SmokeError
from bundler.integrity import hash_file
from bundler.lock import Lock
from bundler.probe import PROBE_NAME
from bundler.reproducible import link_or_copy
from bundler.smoke.host import NotRun
from bundler.smoke.installation import Check, Installation, SmokeContext

_REFUSALS = (SolverError, InstallerError, LinkError, TransactionError)


def install(path: Path, context: SmokeContext) -> Installation:
    """Install a package by py-rattler from a channel on disk; see `Installer`."""
    channel, prefix = context.scratch / "channel", context.scratch / "conda environment"
    index = make_channel(path, channel)
    try:
        asyncio.run(_solve_and_install(channel, index, prefix))
    except _REFUSALS as error:
        message = f"{path.name} cannot be installed from a channel"
        raise SmokeError(message, why=str(error)) from error
    lock = read_artifact_lock(ArtifactKind.CONDA, path)
    folder = prefix / installed_folders(lock.identity.platform)[0]
    if isinstance(context.host, NotRun):
        return Installation(lock, folder, not_run=context.host.reason)
    return Installation(lock, folder, _checks(prefix, folder, lock, context))


def make_channel(path: Path, channel: Path) -> CondaIndex:
    """Lay out a channel that holds one package.

    Args:
        path: of the package.
        channel: a new folder.

    Returns:
        what the package says of itself.

    Raises:
        ArchiveError: the package cannot be read.
    """
    index, found = read_conda_index(path), hash_file(path)
    record = {**index.document, "size": found.size, "sha256": found.sha256}
    for name, packages in ((index.subdir, {index.file_name: record}), ("noarch", {})):
        folder = channel / name
        folder.mkdir(parents=True)
        repodata = {"info": {"subdir": name}, "packages": {}, "packages.conda": packages}
        (folder / "repodata.json").write_text(json.dumps(repodata), encoding="utf-8")
    link_or_copy(path, channel / index.subdir / index.file_name)
    return index


async def _solve_and_install(channel: Path, index: CondaIndex, prefix: Path) -> None:
    platform = Subdir(index.subdir)
    records = await rattler.solve(
        [rattler.Channel(channel.as_uri())],
        [f"{index.name} =={index.version} {index.build}"],
        platforms=[platform, Subdir("noarch")],
        virtual_packages=[],
    )
    await rattler.install(
        records,
        prefix,
        cache_dir=prefix.with_name("package cache"),
        platform=platform,
        show_progress=False,
    )


def _checks(prefix: Path, folder: Path, lock: Lock, context: SmokeContext) -> dict[str, Check]:
    """Reach the libraries as an activated environment does, and as a bare path does."""
    name = PROBE_NAME[lock.identity.platform.is_windows]
    own = folder / name
    application = context.scratch / "application" / name
    application.parent.mkdir()
    shutil.copyfile(own, application)
    application.chmod(0o755)
    return {
        "activated, an application elsewhere": Check(
            (application, "--expect-dir", folder), (prefix, folder), every_library=False
        ),
        "not activated, a program of the environment": Check((own,), every_library=False),
        "not activated, every library by path": Check((own, "--library-dir", folder)),
    }
