"""Real installations of sample artifacts, by the installers that users have."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import zipfile
from pathlib import Path

import rattler

from bundler.smoke.conda import make_channel

PACKAGE = "cudnn_runtime_cu11"
INFO = f"{PACKAGE}-8.9.5.29.dist-info"


def pip_install(wheel: Path, target: Path) -> Path:
    """Install a wheel for Windows into a folder by pip, which compiles it too."""
    _run(
        sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--quiet",
        "--disable-pip-version-check", "--platform", "win_amd64", "--only-binary=:all:",
        "--target", str(target), str(wheel),
    )  # fmt: skip
    return target


def uv_install(wheel: Path, target: Path, link_mode: str = "copy") -> Path:
    """Install a wheel for Windows into a folder by uv."""
    _run(
        sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-index", "--no-deps",
        "--offline", "--python", sys.executable, "--python-platform", "windows",
        "--cache-dir", str(target.with_name("uv cache")), "--link-mode", link_mode,
        "--target", str(target), str(wheel),
    )  # fmt: skip
    return target


def conda_install(package: Path, folder: Path) -> Path:
    """Install a package into `folder/prefix` by rattler, leaving its cache beside it."""
    index = make_channel(package, folder / "channel")
    asyncio.run(_solve_and_install(folder, index.subdir))
    return folder / "prefix"


def unzip(path: Path, folder: Path) -> Path:
    """Unpack a zip."""
    with zipfile.ZipFile(path) as bundle:
        bundle.extractall(folder)
    return folder


async def _solve_and_install(folder: Path, subdir: str) -> None:
    platform = rattler.Subdir(subdir)
    records = await rattler.solve(
        [rattler.Channel((folder / "channel").as_uri())], ["cudnn"],
        platforms=[platform, rattler.Subdir("noarch")], virtual_packages=[],
    )  # fmt: skip
    await rattler.install(
        records, folder / "prefix", cache_dir=folder / "cache", platform=platform,
        show_progress=False,
    )  # fmt: skip


def _run(*command: str) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
