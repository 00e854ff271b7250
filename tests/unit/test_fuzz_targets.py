"""The fuzzer's targets work without the fuzzer: on their seeds, on changed ones, and on a bug."""

from __future__ import annotations

import random
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import NoReturn

import pytest

from bundler.errors import BundlerError
from tests.fuzz import targets
from tests.fuzz.targets import TARGETS, Target

ALL = pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
WITH_SEEDS = [name for name in TARGETS if not name.endswith("lies")]


@pytest.mark.parametrize("name", WITH_SEEDS)
def test_seeds_are_sound(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A seed that is refused would keep the fuzzer at the door."""
    if name.startswith("conda"):
        monkeypatch.setattr(targets, "suppress", lambda *_: nullcontext())
    for seed in TARGETS[name].seeds():
        TARGETS[name].run(seed, tmp_path)


@ALL
def test_changed_seeds_are_read_or_refused(target: Target, tmp_path: Path) -> None:
    choices = random.Random(1)
    for _ in range(60):
        data = bytearray(choices.choice(target.seeds()))
        for _ in range(choices.randrange(5)):
            data[choices.randrange(len(data))] = choices.randrange(256)
        with suppress(BundlerError):
            target.run(bytes(data[: choices.choice([len(data), choices.randrange(len(data))])]),
                       tmp_path)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "door"),
    [
        ("archive", "open_archive"),
        ("archive-lies", "open_archive"),
        ("manifest", "decide"),
        ("manifest-lies", "parse_manifest"),
        ("lock", "parse_lock"),
        ("lock-lies", "parse_lock"),
        ("zip-artifact", "verify_artifact"),
        ("conda-package", "verify_artifact"),
        ("conda-tar", "read_conda_index"),
        ("library", "read_binary_facts"),
    ],
)
def test_a_bug_behind_the_door_is_noticed(
    name: str, door: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> NoReturn:
        message = "a bug"
        raise IndexError(message)

    monkeypatch.setattr(targets, door, broken)

    with pytest.raises(IndexError, match="a bug"):
        TARGETS[name].run(TARGETS[name].seeds()[0], tmp_path)
