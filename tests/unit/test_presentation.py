"""What a build says at its end, for people and as JSON."""

from __future__ import annotations

import io
import itertools
import json
import re
import time
import zipfile
from pathlib import Path

import pytest

from bundler.__main__ import main
from bundler.progress import show_progress
from tests.sample_archives import NAME, SampleArchive, sha256_of


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return SampleArchive().write(tmp_path / NAME)


def build(archive: Path, *more: str) -> list[str]:
    output = str(archive.parent / "dist")
    return ["build", str(archive), "--sha256", sha256_of(archive), "-o", output, *more]


def test_summary_names_each_artifact_with_size_hash_and_smoke_result(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(build(archive, "--no-smoke")) == 0

    text = capsys.readouterr().out
    for path in sorted((archive.parent / "dist").rglob("*")):
        if path.suffix in {".zip", ".whl", ".conda"}:
            assert str(path) in text
            assert f"{path.stat().st_size} bytes" in text
            assert sha256_of(path) in text
    assert text.count("smoke   not tested") == 3
    assert "the target machine must have:" in text
    assert "cublas64_11.dll (required, from libcublas)" in text


def test_json_is_one_document(archive: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(build(archive, "--no-smoke", "--json", "--only", "wheel")) == 0

    document = json.loads(capsys.readouterr().out)
    (wheel,) = document["artifacts"]
    assert wheel["sha256"] == sha256_of(Path(wheel["path"]))
    assert document["identity"]["version"] == "8.9.5.29"


def test_inspect_needs_no_witness_and_says_that_there_is_none(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(archive)]) == 0

    text = capsys.readouterr().out
    assert "cuDNN 8.9.5.29 for CUDA 11 on windows-x86_64" in text
    assert "note: " in text


@pytest.mark.parametrize("kind", ["app-local", "wheel", "conda"])
def test_verify_finds_an_artifact_equal_to_its_lock(
    kind: str, archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(build(archive, "--no-smoke", "--json", "--only", kind)) == 0
    (artifact,) = json.loads(capsys.readouterr().out)["artifacts"]

    assert main(["verify", artifact["path"]]) == 0
    assert "verified: " in capsys.readouterr().out


def test_verify_against_a_lock_of_another_release(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    older = SampleArchive("8.5.0.96").write(archive.parent / "older.zip")
    assert main(build(archive, "--no-smoke", "--json", "--only", "wheel")) == 0
    (artifact,) = json.loads(capsys.readouterr().out)["artifacts"]
    output = str(archive.parent / "old")
    words = ["build", str(older), "--sha256", sha256_of(older), "-o", output, "--no-smoke"]
    assert main([*words, "--only", "app-local"]) == 0
    (lock,) = Path(output).glob("*.lock.json")

    assert main(["verify", artifact["path"], "--lock", str(lock)]) == 4
    assert "cudnn64_8.dll: has " in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["app-local", "wheel"])
def test_source_date_epoch_is_the_time_of_every_member(
    kind: str, archive: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000001")

    assert main(build(archive, "--no-smoke", "--json", "--only", kind)) == 0

    (artifact,) = json.loads(capsys.readouterr().out)["artifacts"]
    with zipfile.ZipFile(artifact["path"]) as members:
        assert {info.date_time for info in members.infolist()} == {(2023, 11, 14, 22, 13, 20)}


def test_nonsense_in_source_date_epoch_is_wrong_usage(
    archive: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")

    assert main(build(archive, "--no-smoke")) == 2
    assert "SOURCE_DATE_EPOCH is 'yesterday'" in capsys.readouterr().err


def test_progress_is_plain_lines_where_there_is_no_terminal(tmp_path: Path) -> None:
    seconds = iter([0.0, 1.5])
    path = tmp_path / "log"

    with path.open("w") as stream, show_progress(stream, lambda: next(seconds)) as progress:
        progress("reading [bold]a.zip[/bold]")

    assert path.read_text() == "[   1.5 s] reading [bold]a.zip[/bold]\n"


class Terminal(io.StringIO):
    """Says of itself that it is one."""

    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal_shows_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("NO_COLOR", raising=False)
    seconds = itertools.count()
    stream = Terminal()

    with show_progress(stream, lambda: float(next(seconds))) as progress:
        progress("reading [bold]a.zip[/bold]", 1_000_000_000)
        for _ in range(200):
            progress.advance(1_000_000)
            time.sleep(0.002)

    shown = stream.getvalue()
    assert "s] reading [bold]a.zip[/bold]" in shown
    assert re.search(r"\d%.*[kM]B/s.*\d+:\d\d:\d\d", shown), shown[-500:]
