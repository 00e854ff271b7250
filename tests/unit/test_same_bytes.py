"""The same archive gives the same artifacts, wherever and whenever they are built."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bundler.artifacts import ArtifactKind
from tests.sample_archives import NAME, SampleArchive
from tests.sample_builds import build_archive

Change = Callable[[pytest.MonkeyPatch, Path, ExitStack], None]


def nothing(_patch: pytest.MonkeyPatch, _folder: Path, _stack: ExitStack) -> None:
    """Leave the surroundings as they are."""


def narrow_umask(_patch: pytest.MonkeyPatch, _folder: Path, stack: ExitStack) -> None:
    stack.callback(os.umask, os.umask(0o077))


def time_zone(patch: pytest.MonkeyPatch, _folder: Path, stack: ExitStack) -> None:
    patch.setenv("TZ", "Asia/Tokyo")
    if sys.platform != "win32":
        stack.callback(time.tzset)
        time.tzset()


def working_folder(patch: pytest.MonkeyPatch, folder: Path, _stack: ExitStack) -> None:
    patch.chdir(folder)


def later(patch: pytest.MonkeyPatch, _folder: Path, _stack: ExitStack) -> None:
    now = time.time()
    patch.setattr(time, "time", lambda: now + 10 * 365 * 86400)


def language(patch: pytest.MonkeyPatch, _folder: Path, _stack: ExitStack) -> None:
    for name in ("LANG", "LC_ALL"):
        patch.setenv(name, "tr_TR.UTF-8")


def one_processor(patch: pytest.MonkeyPatch, _folder: Path, _stack: ExitStack) -> None:
    patch.setattr(os, "cpu_count", lambda: 1)


def source_date_epoch(patch: pytest.MonkeyPatch, _folder: Path, _stack: ExitStack) -> None:
    patch.setenv("SOURCE_DATE_EPOCH", "1700000000")


@dataclass(frozen=True)
class Knob:
    """What differs from the first build."""

    name: str = NAME
    output: str = "out"
    change: Change = field(default=nothing)


KNOBS = {
    "nothing": Knob(),
    "the archive's name": Knob(name="some (1).zip"),
    "the output folder": Knob(output="another/and deeper"),
    "umask": Knob(change=narrow_umask),
    "time zone": Knob(change=time_zone),
    "working folder": Knob(change=working_folder),
    "time": Knob(change=later),
    "language": Knob(change=language),
    "processors": Knob(change=one_processor),
    "SOURCE_DATE_EPOCH": Knob(change=source_date_epoch),
}


def build(kind: ArtifactKind, folder: Path, knob: Knob) -> tuple[str, bytes, int]:
    """Build, and give name, bytes and mode of the artifact."""
    folder.mkdir()
    archive = SampleArchive().write(folder / knob.name)
    artifact = build_archive(
        archive,
        kind,
        folder / knob.output,
    ).artifact
    mode = artifact.path.stat().st_mode
    return artifact.path.name, artifact.path.read_bytes(), mode


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> dict[ArtifactKind, tuple[str, bytes, int]]:
    folder = tmp_path_factory.mktemp("first")
    return {kind: build(kind, folder / kind, Knob()) for kind in ArtifactKind}


@pytest.mark.parametrize("kind", ArtifactKind)
@pytest.mark.parametrize("knob", KNOBS.values(), ids=KNOBS.keys())
def test_nothing_outside_the_archive_changes_a_byte(
    kind: ArtifactKind,
    knob: Knob,
    first: dict[ArtifactKind, tuple[str, bytes, int]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with ExitStack() as stack:
        knob.change(monkeypatch, tmp_path, stack)
        again = build(kind, tmp_path / "again", knob)
        monkeypatch.undo()

    assert again == first[kind]


@pytest.mark.parametrize("kind", ArtifactKind)
def test_another_content_gives_other_bytes(
    kind: ArtifactKind, first: dict[ArtifactKind, tuple[str, bytes, int]], tmp_path: Path
) -> None:
    archive = SampleArchive(changes={"LICENSE": b"Another text.\n"}).write(tmp_path / NAME)

    artifact = build_archive(archive, kind, tmp_path / "out").artifact

    assert artifact.path.read_bytes() != first[kind][1]
