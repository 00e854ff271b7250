"""Disks that are full, small or read-only, and things that stand in the way."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.faults.conftest import Disk
from tests.faults.tool import (
    ROOT,
    Finished,
    Reference,
    Tool,
    assert_explained,
    assert_next_run_succeeds,
    assert_whole,
    ended,
    tree_of,
)

SIZES = [0.02, 0.5, 0.9, 1.3, 2.1, 2.9, 3.7, 4.5]
"""Of the disk, in sizes of the archive: each stage finds it full."""


def test_full_disk(tool: Tool, reference: Reference, disk: Disk) -> None:
    output, stages = disk.path / "dist", set()
    archive_size = tool.archive.stat().st_size
    for size in SIZES:
        shutil.rmtree(output, ignore_errors=True)
        disk.remount(f"size={int(size * archive_size)}")
        finished = tool.run(output)

        assert_whole(output, reference, size)
        if finished.code:
            assert_explained(finished, [7], size)
            assert "No space left on device" in finished.messages, finished
            assert not output.exists() or set(tree_of(output)) <= set(reference.tree), size
            stages.add(finished.messages.split("error: ")[1].split("/")[0])
        disk.remount("size=256m")
        assert_next_run_succeeds(tool, output, reference, size)
    # While unpacking, and while writing.
    assert len(stages) > 1, stages


def test_full_disk_under_a_cache(tool: Tool, reference: Reference, disk: Disk) -> None:
    """A build does not fail because it cannot be kept."""
    disk.remount("size=20m")
    environment = {**tool.environment, "CUDNN_BUNDLER_CACHE": str(disk.path / "cache")}
    output = tool.archive.parent / "uncached"

    for _ in range(2):
        finished = replace(tool, options=(), environment=environment).run(output)

        assert finished.code == 0, finished
        assert tree_of(output) == reference.tree


@pytest.mark.parametrize("verb", ["verify", "inspect"])
def test_full_temporary_folder(verb: str, tool: Tool, disk: Disk) -> None:
    disk.remount("size=1m")
    words = [sys.executable, "-m", "bundler", verb, str(tool.archive), "--sha256", tool.sha256]
    done = subprocess.run(
        words, env={**tool.environment, "TMPDIR": str(disk.path)}, capture_output=True, text=True,
        check=False, cwd=ROOT,
    )  # fmt: skip

    assert_explained(Finished(done.returncode, done.stdout, done.stderr), [7], verb)
    assert str(disk.path) in done.stderr
    assert tree_of(disk.path) == {}


def test_full_temporary_folder_does_not_matter_to_build(
    tool: Tool, reference: Reference, disk: Disk, tmp_path: Path
) -> None:
    """It works beside its output, which is on another disk here."""
    disk.remount("size=64k")
    environment = {**tool.environment, "TMPDIR": str(disk.path)}

    assert replace(tool, environment=environment).run(tmp_path / "dist").code == 0
    assert tree_of(tmp_path / "dist") == reference.tree


def test_read_only_disk(tool: Tool, reference: Reference, disk: Disk) -> None:
    disk.remount("ro")

    finished = tool.run(disk.path / "dist")

    assert_explained(finished, [7], "ro")
    assert "Read-only file system" in finished.messages
    disk.remount("rw")
    assert_next_run_succeeds(tool, disk.path / "dist", reference, "rw")


@dataclass(frozen=True)
class Nobody:
    """A user without root's rights, and a folder that is open to him."""

    tool: Tool
    folder: Path


@pytest.fixture
def nobody(tool: Tool) -> Iterator[Nobody]:
    """Run as somebody who may not write everywhere, which root may."""
    if os.getuid() == 0 and shutil.which("setpriv") is None:
        pytest.skip("needs setpriv to give root's rights away")
    rights = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    before = () if os.getuid() else rights
    # Not inside pytest's own folder, which is closed to others.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        archive = Path(shutil.copy(tool.archive, folder))
        archive.chmod(0o644)
        able = [*before, sys.executable, "-c", "import bundler.pipeline"]
        environment = {**tool.environment, "HOME": name}
        if subprocess.run(able, cwd=folder, env=environment, check=False).returncode:
            pytest.skip("the code is not readable for others")
        yield Nobody(replace(tool, archive=archive, before=before, environment=environment), folder)


@pytest.mark.parametrize("closed", ["", "win-64"], ids=["the folder", "a folder inside"])
def test_folder_without_rights(closed: str, nobody: Nobody, reference: Reference) -> None:
    output = nobody.folder / "dist"
    (output / "win-64").mkdir(parents=True)
    for folder in (output, output / "win-64"):
        folder.chmod(0o777)
    (output / closed).chmod(0o555)

    finished = nobody.tool.run(output)

    assert_explained(finished, [7], closed)
    assert "Permission denied" in finished.messages
    assert_whole(output, reference, closed)
    (output / closed).chmod(0o777)
    assert_next_run_succeeds(nobody.tool, output, reference, closed)


def test_final_paths_that_are_taken(tool: Tool, reference: Reference, tmp_path: Path) -> None:
    """By a folder with something in it, which is nobody's to remove; old files are replaced."""
    for number, name in enumerate(sorted(reference.tree)):
        output = tmp_path / str(number)
        (output / name).mkdir(parents=True)
        (output / name / "mine").write_text("mine")
        finished = tool.run(output)

        assert_explained(finished, [7], name)
        assert name in finished.messages, finished
        assert (output / name / "mine").read_text() == "mine"
        found = {path: value for path, value in tree_of(output).items() if path != f"{name}/mine"}
        assert found.items() <= reference.tree.items(), name

        shutil.rmtree(output / name)
        (output / name).write_bytes(b"an old file")
        assert_next_run_succeeds(tool, output, reference, name)


@pytest.mark.parametrize("where", ["dist", "dist/win-64"])
def test_folders_that_are_files(
    where: str, tool: Tool, reference: Reference, tmp_path: Path
) -> None:
    path = tmp_path / where
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")

    finished = tool.run(tmp_path / "dist")

    assert_explained(finished, [7], where)
    assert path.read_text() == "mine"
    path.unlink()
    assert_next_run_succeeds(tool, tmp_path / "dist", reference, where)


def test_folder_removed_under_it(tool: Tool, reference: Reference, tmp_path: Path) -> None:
    """Somebody cleans up while the tool works."""
    output = tmp_path / "dist"
    process = tool.start(output)
    while process.poll() is None:
        shutil.rmtree(output, ignore_errors=True)
    finished = ended(process)

    assert_whole(output, reference, finished)
    if finished.code:
        assert_explained(finished, [7], "removed")
    assert_next_run_succeeds(tool, output, reference, "next")
