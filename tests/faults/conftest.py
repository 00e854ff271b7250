"""One archive and one undisturbed run for all of these tests."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.tool import Reference, Tool, measured, new_tool

if sys.platform != "linux":
    pytest.skip("signals, mounts and limits of Linux", allow_module_level=True)


@pytest.fixture(scope="session")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Tool:
    """The tool with the archive that all tests share."""
    return new_tool(tmp_path_factory.mktemp("tool"))


@pytest.fixture(scope="session")
def reference(tool: Tool, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    """What a good run makes; the first one fills caches, the second is measured."""
    folder = tmp_path_factory.mktemp("reference")
    first = measured(tool, folder / "first")
    second = measured(tool, folder / "second")
    assert first.tree == second.tree
    assert len(first.tree) >= 4
    return second


@dataclass(frozen=True)
class Disk:
    """A small disk in memory."""

    path: Path

    def remount(self, options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", self.path], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk of 256 MiB; only root may mount one."""
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", str(path)]
    if shutil.which("mount") is None or subprocess.run(command, check=False).returncode:
        pytest.skip("a disk of its own can be mounted by root only")
    yield Disk(path)
    subprocess.run(["umount", path], check=True)
