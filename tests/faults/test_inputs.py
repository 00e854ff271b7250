"""The archive changed by somebody else while it is being read."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.tool import (
    Finished,
    Reference,
    Tool,
    assert_explained,
    assert_next_run_succeeds,
    assert_whole,
    ended,
    halted,
    tree_of,
)
from tests.sample_archives import NAME


def grow(archive: Path) -> None:
    with archive.open("ab") as stream:
        stream.write(b"more")


def truncate(archive: Path) -> None:
    os.truncate(archive, archive.stat().st_size // 2)


def empty(archive: Path) -> None:
    os.truncate(archive, 0)


def rewrite(archive: Path) -> None:
    """Damage every stretch of the file, and leave its length."""
    with archive.open("r+b") as stream:
        for position in range(0, archive.stat().st_size, 4096):
            stream.seek(position)
            stream.write(b"changed")


CHANGES = (grow, truncate, empty, rewrite)


def changed_at(number: int, change: Callable[[Path], None], tool: Tool, output: Path) -> Finished:
    """Build from a copy of the archive that changes after a line of progress."""
    archive = output.with_name(NAME)
    shutil.copyfile(tool.archive, archive)
    process = replace(tool, archive=archive).start(output)
    seen = halted(process, number)
    change(archive)
    process.send_signal(signal.SIGCONT)
    return ended(process, seen)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_changed_in_place(
    change: Callable[[Path], None], tool: Tool, reference: Reference, tmp_path: Path
) -> None:
    """Either all was read before, or the change is told; a wrong artifact never appears."""
    told = 0
    for number, line in enumerate(reference.lines):
        output = tmp_path / f"line-{number}"
        finished = changed_at(number, change, tool, output)

        assert_whole(output, reference, line)
        if finished.code:
            told += 1
            assert_explained(finished, [3], line)
            assert not output.exists() or tree_of(output) == {}, line
        assert_next_run_succeeds(tool, output, reference, line)
    assert told >= len(reference.lines) - 1


def replace_by_rename(archive: Path) -> None:
    other = archive.with_suffix(".new")
    other.write_bytes(b"PK\3\4 another")
    other.replace(archive)


@pytest.mark.parametrize("change", [replace_by_rename, Path.unlink], ids=["renamed", "removed"])
def test_replaced(
    change: Callable[[Path], None], tool: Tool, reference: Reference, tmp_path: Path
) -> None:
    """The open file is the one that was vouched for, wherever its name points now."""
    for number, line in enumerate(reference.lines):
        output = tmp_path / f"line-{number}"
        finished = changed_at(number, change, tool, output)

        assert_whole(output, reference, line)
        if finished.code:
            # The first line can come before the file is opened.
            assert number == 0, finished
            assert_explained(finished, [2, 3], line)
        else:
            assert tree_of(output) == reference.tree
