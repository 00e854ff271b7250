"""Few open files, little memory."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.tool import (
    Reference,
    Tool,
    assert_explained,
    assert_next_run_succeeds,
    assert_whole,
    final_tree,
)

pytestmark = pytest.mark.skipif(shutil.which("prlimit") is None, reason="needs prlimit")

FILES = [6, 8, 9, 10, 12, 16, 32]
MEMORY = [160, 200, 250, 400, 1500]
"""MiB of address space."""


def limited(tool: Tool, limit: str) -> Tool:
    return replace(tool, before=("prlimit", limit))


def starts(tool: Tool) -> bool:
    """Say whether Python gets as far as the tool's own code."""
    command = [*tool.before, sys.executable, "-c", "import bundler.__main__"]
    done = subprocess.run(command, env=tool.environment, check=False, capture_output=True)
    return done.returncode == 0


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param([f"--nofile={count}" for count in FILES], id="open files"),
        pytest.param([f"--as={size << 20}" for size in MEMORY], id="memory"),
    ],
)
def test_limit(limits: list[str], tool: Tool, reference: Reference, tmp_path: Path) -> None:
    codes = {}
    for limit in limits:
        output, small = tmp_path / limit, limited(tool, limit)
        if not starts(small):
            continue
        finished = small.run(output)
        codes[limit] = finished.code

        assert_whole(output, reference, limit)
        if finished.code:
            assert_explained(finished, [6, 7], limit)
        else:
            assert final_tree(output) == reference.tree, limit
        # Removing a folder takes descriptors too; the next run makes up for it.
        assert_next_run_succeeds(tool, output, reference, limit)
    assert 0 in codes.values(), codes
    assert any(codes.values()), codes
