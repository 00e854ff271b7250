"""A build that was made before is taken from the cache, byte for byte, or made anew."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bundler import fingerprint, pipeline
from bundler.artifacts import ArtifactKind, ArtifactOptions, CondaEngine, CudaSource
from bundler.build_cache import BuildCache
from bundler.moment import Moment
from bundler.pipeline import BuildOptions, BuildResult
from bundler.progress import Progress
from tests.sample_archives import NAME, SampleArchive
from tests.sample_builds import ingest_options

FROM_CACHE = "taken from the cache: same archive, options and tool"


class Steps(Progress):
    """Remembers the steps."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __call__(self, step: str, total: int = 0) -> None:
        super().__call__(step, total)
        self.told.append(step)


def options(folder: Path, output: str = "out", cache: str = "cache") -> BuildOptions:
    archive = folder / NAME
    if not archive.exists():
        SampleArchive().write(archive)
    return BuildOptions(
        ingest=ingest_options(archive, folder / output),
        output=folder / output,
        kinds=tuple(ArtifactKind),
        artifacts=ArtifactOptions(),
        smoke=False,
        cache=BuildCache(folder / cache),
    )


def build(what: BuildOptions) -> tuple[BuildResult, bool]:
    """Build, and say whether it came from the cache."""
    steps = Steps()
    return pipeline.build(what, {}, steps), FROM_CACHE in steps.told


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_the_second_build_is_the_first(tmp_path: Path) -> None:
    first, cached = build(options(tmp_path))
    assert not cached

    second, cached = build(options(tmp_path, "again"))

    assert cached
    assert contents(tmp_path / "again") == contents(tmp_path / "out")
    assert (second.lock, second.notes) == (first.lock, first.notes)
    assert [replace(artifact, path=Path()) for artifact in second.artifacts] == [
        replace(artifact, path=Path()) for artifact in first.artifacts
    ]


def test_what_is_there_already_is_left_alone(tmp_path: Path) -> None:
    result, _ = build(options(tmp_path))
    before = [artifact.path.stat().st_ino for artifact in result.artifacts]

    _, cached = build(options(tmp_path))

    assert cached
    assert [artifact.path.stat().st_ino for artifact in result.artifacts] == before


def test_what_was_altered_in_the_output_is_put_right(tmp_path: Path) -> None:
    result, _ = build(options(tmp_path))
    reference = contents(tmp_path / "out")
    path = result.artifacts[0].path
    path.unlink()
    path.write_bytes(bytes(result.artifacts[0].size))

    _, cached = build(options(tmp_path))

    assert cached
    assert contents(tmp_path / "out") == reference


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.unlink()
    path.write_bytes(data)


def escape(path: Path) -> None:
    document = json.loads(path.read_bytes())
    document["artifacts"][0]["name"] = "../outside.zip"
    path.write_text(json.dumps(document))


DAMAGES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a changed bit": ("wheel", flip),
    "a file gone": ("conda", Path.unlink),
    "a file cut off": ("app-local", lambda path: os.truncate(path, 10)),
    "no description": ("build.json", Path.unlink),
    "an empty description": ("build.json", lambda path: path.write_text("")),
    "another description": ("build.json", lambda path: path.write_text("[]")),
    "a name that leads out": ("build.json", escape),
    "no lock": ("lock.json", Path.unlink),
    "a damaged lock": ("lock.json", lambda path: path.write_text("{}")),
}  # fmt: skip


@pytest.mark.parametrize(("name", "damage"), DAMAGES.values(), ids=DAMAGES.keys())
def test_what_was_damaged_in_the_cache_is_made_anew(
    name: str, damage: Callable[[Path], object], tmp_path: Path
) -> None:
    build(options(tmp_path))
    reference = contents(tmp_path / "out")
    (kept,) = (tmp_path / "cache").iterdir()
    # Not the output's own bytes, which the kept file may share.
    for path in kept.iterdir():
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data)
    damage(kept / name)

    _, cached = build(options(tmp_path, "again"))

    assert not cached
    assert contents(tmp_path / "again") == reference
    assert not (tmp_path / "outside.zip").exists()
    assert build(options(tmp_path, "third"))[1]


def other_level(what: BuildOptions) -> BuildOptions:
    return replace(what, artifacts=ArtifactOptions(conda_level=4))


def other_moment(what: BuildOptions) -> BuildOptions:
    return replace(what, artifacts=ArtifactOptions(moment=Moment(1_700_000_000)))


def with_dependencies(what: BuildOptions) -> BuildOptions:
    return replace(what, artifacts=ArtifactOptions(cuda_from=CudaSource.PYPI))


def fewer_kinds(what: BuildOptions) -> BuildOptions:
    return replace(what, kinds=(ArtifactKind.WHEEL,))


def other_name(what: BuildOptions) -> BuildOptions:
    renamed = what.ingest.archive.with_name("renamed.zip")
    what.ingest.archive.rename(renamed)
    return replace(what, ingest=replace(what.ingest, archive=renamed))


def other_engine(what: BuildOptions) -> BuildOptions:
    engine = ArtifactOptions(conda_engine=CondaEngine.RATTLER_BUILD)
    return replace(what, artifacts=engine, kinds=(ArtifactKind.CONDA,))


@pytest.mark.parametrize(
    "change",
    [other_level, other_moment, with_dependencies, fewer_kinds, other_name, other_engine],
    ids=lambda change: change.__name__,
)
def test_another_question_gets_its_own_answer(
    change: Callable[[BuildOptions], BuildOptions], tmp_path: Path
) -> None:
    build(options(tmp_path))

    assert not build(change(options(tmp_path)))[1]


def test_another_tool_gets_its_own_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(options(tmp_path))
    monkeypatch.setattr(fingerprint, "_version", lambda name: f"{name} 99")

    assert not build(options(tmp_path))[1]


def test_the_oldest_builds_make_room(tmp_path: Path) -> None:
    what = options(tmp_path)
    size = sum(artifact.size for artifact in build(what)[0].artifacts)
    cache = BuildCache(tmp_path / "cache", limit=2 * size + 100_000)
    (oldest,) = (tmp_path / "cache").iterdir()
    os.utime(oldest / "build.json", (1, 1))
    for level in (4, 5):
        build(replace(what, cache=cache, artifacts=ArtifactOptions(conda_level=level)))

    assert len(list((tmp_path / "cache").iterdir())) == 2
    assert not oldest.exists()


def test_a_build_larger_than_the_limit_is_not_kept(tmp_path: Path) -> None:
    build(replace(options(tmp_path), cache=BuildCache(tmp_path / "small", limit=1000)))

    assert list((tmp_path / "small").iterdir()) == []


def test_what_a_killed_run_left_goes_in_time(tmp_path: Path) -> None:
    left = tmp_path / "cache" / ".unfinished-1"
    left.mkdir(parents=True, mode=0o700)
    (tmp_path / "cache").chmod(0o700)
    os.utime(left, (1, 1))

    build(options(tmp_path))

    assert not left.exists()


@pytest.mark.skipif(os.name == "nt", reason="modes are a POSIX matter")
def test_a_cache_that_others_may_write_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache").chmod(0o777)

    build(options(tmp_path))

    assert list((tmp_path / "cache").iterdir()) == []


def test_a_cache_that_cannot_be_made_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(b"a file in the way")

    assert not build(options(tmp_path))[1]
    assert not build(options(tmp_path))[1]
