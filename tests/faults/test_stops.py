"""The main job stopped anywhere: by kill -9, by Ctrl-C, by SIGTERM."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.tool import (
    Reference,
    Tool,
    assert_explained,
    assert_next_run_succeeds,
    assert_whole,
    ended,
    tree_of,
    wait_for_line,
)

MOMENTS = 12


def test_killed_after_any_line(tool: Tool, reference: Reference, tmp_path: Path) -> None:
    for number, line in enumerate(reference.lines):
        output = tmp_path / f"line-{number}"
        process = tool.start(output)
        wait_for_line(process, number)
        process.kill()

        assert ended(process).code == -signal.SIGKILL
        assert_whole(output, reference, line)
        assert_next_run_succeeds(tool, output, reference, line)


def kill_at_any_time(tool: Tool, reference: Reference, output: Path) -> None:
    """Over an older run's files, which stay or are replaced whole; never a mixture in one file."""
    killed, slower = 0, 1.0
    for moment in reference.moments(MOMENTS):
        process = tool.start(output)
        wait_for_line(process, 0)
        time.sleep(moment * slower)
        process.kill()
        was_killed = ended(process).code == -signal.SIGKILL
        killed += was_killed
        # The machine was busier when it was measured than it is now.
        slower *= 1 if was_killed else 0.5

        assert_whole(output, reference, moment)
    assert_next_run_succeeds(tool, output, reference, "at last")
    assert killed > MOMENTS // 4


def test_killed_at_any_time(tool: Tool, reference: Reference, tmp_path: Path) -> None:
    kill_at_any_time(tool, reference, tmp_path / "dist")


def test_killed_at_any_time_with_a_cache(tool: Tool, reference: Reference, tmp_path: Path) -> None:
    """Killed while a build is being kept, taken, or both."""
    caching = replace(
        tool,
        options=(),
        environment={**tool.environment, "CUDNN_BUNDLER_CACHE": str(tmp_path / "cache")},
    )
    kill_at_any_time(caching, reference, tmp_path / "dist")
    assert_next_run_succeeds(caching, tmp_path / "other", reference, "from the cache")


@pytest.mark.parametrize(
    ("kind", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_stopped_after_any_line(
    kind: signal.Signals, code: int, tool: Tool, reference: Reference, tmp_path: Path
) -> None:
    """What is unfinished goes at once, and one JSON document says so."""
    for number, line in enumerate(reference.lines):
        output = tmp_path / f"line-{number}"
        process = replace(tool, options=(*tool.options, "--json")).start(output)
        seen = wait_for_line(process, number)
        process.send_signal(kind)
        finished = ended(process, seen)

        assert_explained(finished, [code], line)
        assert json.loads(finished.output)["exit_code"] == code
        assert_whole(output, reference, line)
        assert not output.exists() or set(tree_of(output)) <= set(reference.tree), line


def test_rivals_in_one_folder(tool: Tool, reference: Reference, tmp_path: Path) -> None:
    output = tmp_path / "dist"
    rivals = [tool.start(output) for _ in range(4)]

    assert [ended(rival).code for rival in rivals] == [0, 0, 0, 0]
    assert tree_of(output) == reference.tree


def test_a_rival_that_is_killed_harms_nobody(
    tool: Tool, reference: Reference, tmp_path: Path
) -> None:
    output = tmp_path / "dist"
    victim, survivor = tool.start(output), tool.start(output)
    wait_for_line(victim, len(reference.lines) - 1)
    victim.kill()

    ended(victim)
    assert ended(survivor).code == 0
    assert_whole(output, reference, "survivor")
    assert_next_run_succeeds(tool, output, reference, "next")


def test_output_that_nobody_reads(tool: Tool, tmp_path: Path) -> None:
    """`| head` closes the pipe; `> /dev/full` stands for a full disk."""
    command = tool.command(tmp_path / "dist")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, env=tool.environment, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 7
    assert b"cannot write to standard output: No space left" in done.stderr

    process = tool.start(tmp_path / "dist")
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    assert ended(process).code == 0
