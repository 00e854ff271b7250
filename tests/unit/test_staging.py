"""Staging folders: private, gone afterwards, and what a killed run left is swept."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bundler.staging import staging_folder

HOLDER = """
import sys, time
from pathlib import Path
from bundler.staging import staging_folder
with staging_folder(Path(sys.argv[1])) as folder:
    (folder / "payload").write_bytes(b"x")
    print(folder, flush=True)
    time.sleep(60)
"""


def hold(output: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(output)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def end(process: subprocess.Popen[str], number: int) -> None:
    process.send_signal(number)
    process.communicate()


def test_nothing_is_left(tmp_path: Path) -> None:
    with staging_folder(tmp_path / "out") as folder:
        (folder / "file").touch()
        assert folder.parent == tmp_path / "out"

    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="sends POSIX signals")
def test_a_killed_run_is_swept_and_a_live_one_is_not(tmp_path: Path) -> None:
    killed, left = hold(tmp_path)
    end(killed, signal.SIGKILL)
    live, in_use = hold(tmp_path)
    try:
        assert not left.exists()
        with staging_folder(tmp_path) as own:
            assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == sorted(
                (own.name, in_use.name)
            )
            assert (in_use / "payload").is_file()
    finally:
        end(live, signal.SIGKILL)


@pytest.mark.skipif(sys.platform == "win32", reason="sends POSIX signals")
def test_an_interrupted_run_leaves_nothing(tmp_path: Path) -> None:
    process, folder = hold(tmp_path)
    end(process, signal.SIGINT)

    assert not folder.exists()
    assert list(tmp_path.iterdir()) == []
