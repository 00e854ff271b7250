"""Making the artifacts of a trusted archive: from the cache, or from its unpacked files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bundler.artifacts import (
    Artifact,
    ArtifactKind,
    ArtifactOptions,
    CondaEngine,
    app_local,
    conda,
    wheel,
)
from bundler.build_cache import BuildCache, KeptBuild, build_key
from bundler.fingerprint import tool_fingerprint
from bundler.ingest import TrustedArchive, unpack
from bundler.outputs import Outputs
from bundler.progress import Progress
from bundler.release import ValidatedRelease
from bundler.stopping import uninterrupted

BUILDERS = {
    ArtifactKind.APP_LOCAL: app_local.build,
    ArtifactKind.WHEEL: wheel.build,
    ArtifactKind.CONDA: conda.build,
}

COPIES = (ArtifactKind.APP_LOCAL, ArtifactKind.WHEEL)
"""These take over compressed streams; the conda package is compressed anew."""


@dataclass(frozen=True)
class Making:
    """What to make, and where.

    Args:
        output: the folder for artifacts.
        kinds: which artifacts.
        options: what may differ between builds of one archive.
        cache: where finished builds are kept; none are when there is none.
    """

    output: Path
    kinds: tuple[ArtifactKind, ...]
    options: ArtifactOptions
    cache: BuildCache | None


def make(archive: TrustedArchive, scratch: Path, making: Making, progress: Progress) -> KeptBuild:
    """Take the artifacts from the cache, or make them and keep them there.

    Args:
        archive: what they come from.
        scratch: a private folder on the output's disk.
        making: what to make.
        progress: told of each step.

    Raises:
        BundlerError: any of the tree; nothing is left half-written at a final path.
    """
    cache = making.cache
    if cache is None or making.options.conda_engine is not CondaEngine.NATIVE:
        return _make(archive, scratch, making, progress)
    key = _key(archive, making)
    kept = cache.restore(key, making.output, scratch)
    if kept is not None:
        archive.file.check_unchanged()
        progress("taken from the cache: same archive, options and tool")
        return kept
    made = _make(archive, scratch, making, progress)
    cache.keep(key, made, making.output)
    return made


def _key(archive: TrustedArchive, making: Making) -> str:
    return build_key(
        {
            "tool": tool_fingerprint(),
            "archive": [archive.file.name, archive.file.digest],
            "trust": [archive.decision, archive.signatures],
            "kinds": making.kinds,
            "options": making.options,
        }
    )


def _make(archive: TrustedArchive, scratch: Path, making: Making, progress: Progress) -> KeptBuild:
    with unpack(archive, scratch, progress) as release:
        progress(f"writing {', '.join(making.kinds)}", _bytes_to_read(release, making.kinds))
        return KeptBuild(release.lock, release.notes, _write(release, making, progress))


def _bytes_to_read(release: ValidatedRelease, kinds: tuple[ArtifactKind, ...]) -> int:
    compressed = sum(file.staged.entry.compressed_size for file in release.payload)
    unpacked = sum(file.locked.size for file in release.payload)
    return sum(compressed if kind in COPIES else unpacked for kind in kinds)


def _write(release: ValidatedRelease, making: Making, progress: Progress) -> tuple[Artifact, ...]:
    """Write the copies side by side, and then compress: all at once, they crowd the cache."""
    made: dict[ArtifactKind, Artifact] = {}
    with (
        Outputs(making.output, release.scratch, progress.advance) as outputs,
        ThreadPoolExecutor() as pool,
    ):

        def write(kind: ArtifactKind) -> Artifact:
            return BUILDERS[kind](release, making.options, outputs)

        for group in (COPIES, making.kinds):
            kinds = [kind for kind in group if kind in making.kinds and kind not in made]
            with uninterrupted():
                working = pool.map(write, kinds)
            made |= zip(kinds, working, strict=True)
    return tuple(made[kind] for kind in making.kinds)
