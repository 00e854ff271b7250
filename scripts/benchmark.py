"""Time and peak memory of this tool beside well-known ones, on the same archive.

    python scripts/benchmark.py ARCHIVE [--sha256 HASH] [--rounds 5] [--peers] [--levels]
    python scripts/benchmark.py --growth [--rounds 3]

Runs are interleaved; the table shows medians, and ratios to `unzip -q`. Linux only: peak
memory is read from the kernel. The demo archive is in no catalogue, so its hash is given.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from grown_archive import write_archive
from measurement import Command, Summary, interleave

_UNIT = "unzip -q"
_HATCHLING = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "payload"
version = "1"
[tool.hatch.build.targets.wheel]
packages = ["payload"]
artifacts = ["*.dll"]
"""


def main() -> None:
    """Measure and print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("archive", type=Path, nargs="?")
    parser.add_argument("--sha256", help="default: the archive's own")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", action="store_true", help="the slow tools too, once")
    parser.add_argument("--levels", action="store_true", help="zstd levels 1, 3, 10 and 19, once")
    parser.add_argument("--growth", action="store_true", help="synthetic archives of four sizes")
    found = parser.parse_args()
    if found.growth:
        _measure_growth(found.rounds)
    if found.archive is not None:
        archive: Path = found.archive.resolve()
        sha256 = found.sha256 or _sha256(archive)
        with tempfile.TemporaryDirectory(prefix="benchmark-", dir=archive.parent) as folder:
            commands = dict(_commands(archive, sha256, Path(folder)))
            if found.peers:
                commands |= _peers(archive, sha256, Path(folder))
            _print_table(interleave(commands, found.rounds, archive.parent))
        if found.levels:
            _measure_levels(archive, sha256)


def _commands(archive: Path, sha256: str, folder: Path) -> Iterator[tuple[str, Command]]:
    path = str(archive)
    build = _build(path, sha256)
    yield "build, all three (zstd 3)", Command((*build, "--no-cache"))
    pair = ("--only", "app-local", "--only", "wheel")
    yield "build, app-local and wheel", Command((*build, "--no-cache", *pair))
    cached = ("env", f"CUDNN_BUNDLER_CACHE={folder / 'cache'}", *build)
    yield "build again, same folder", Command(cached, setup=cached)
    yield "build again, new folder", Command(_elsewhere(cached), setup=cached)
    yield _UNIT, Command(("unzip", "-q", path))
    yield (
        "sha256sum and unzip -t",
        Command(("sh", "-c", f"sha256sum '{path}' && unzip -tq '{path}'")),
    )
    verify = (sys.executable, "-m", "bundler", "verify", path, "--sha256", sha256)
    yield "verify the archive", Command(("env", "TMPDIR={output}", *verify))


def _build(path: str, sha256: str) -> tuple[str, ...]:
    words = (sys.executable, "-m", "bundler", "build", path, "--sha256", sha256)
    return (*words, "--no-smoke", "-o", "{output}")


def _elsewhere(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word.replace("{output}", "{output}/new") for word in words)


def _peers(archive: Path, sha256: str, folder: Path) -> dict[str, Command]:
    """Let other tools pack the same libraries."""
    project, unpacked = folder / "project", folder / "unpacked"
    (project / "payload").mkdir(parents=True)
    (project / "pyproject.toml").write_text(_HATCHLING, encoding="ascii")
    (project / "payload" / "__init__.py").touch()
    shutil.unpack_archive(archive, unpacked)
    for library in unpacked.rglob("*.dll"):
        shutil.move(library, project / "payload")
    tree = folder / "payload-1"
    (tree / "payload-1.dist-info").mkdir(parents=True)
    (tree / "payload-1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: payload\nVersion: 1\n"
    )
    (tree / "payload-1.dist-info" / "WHEEL").write_text("Wheel-Version: 1.0\nTag: py3-none-any\n")
    (tree / "payload-1.dist-info" / "RECORD").touch()
    (tree / "payload").mkdir()
    for library in (project / "payload").iterdir():
        (tree / "payload" / library.name).hardlink_to(library)
    python = sys.executable
    engine = ("--no-cache", "--only", "conda", "--conda-engine")
    return {
        "hatchling: a wheel": Command(
            ("sh", "-c", f"cd '{project}' && '{python}' -m hatchling build -t wheel -d {{output}}"),
            once=True,
        ),
        "wheel pack": Command(
            (python, "-m", "wheel", "pack", "-d", "{output}", str(tree)), once=True
        ),
        "build, conda by rattler-build (zstd 3)": Command(
            (*_build(str(archive), sha256), *engine, "rattler-build"), once=True
        ),
        "build, conda by ourselves (zstd 3)": Command(
            (*_build(str(archive), sha256), *engine, "native"), once=True
        ),
    }


def _measure_levels(archive: Path, sha256: str) -> None:
    words = (*_build(str(archive), sha256), "--no-cache", "--only", "conda", "--conda-level")
    commands, sizes = {}, archive.parent / "benchmark-sizes"
    for level in ("1", "3", "10", "19"):
        note = f"{' '.join((*words, level))} && ls -l {{output}}/*/*.conda >> '{sizes}'"
        commands[level] = Command(("sh", "-c", note), once=True)
    found = interleave(commands, 1, archive.parent)
    lines = sizes.read_text().splitlines()
    sizes.unlink()
    print("\n| level | seconds | package, MB | peak memory, MiB |\n|---|---|---|---|")
    for (level, summary), line in zip(found.items(), lines, strict=True):
        megabytes = int(line.split()[4]) / 1e6
        print(f"| {level} | {summary.seconds:.1f} | {megabytes:.1f} | {summary.peak:.0f} |")


def _measure_growth(rounds: int) -> None:
    with tempfile.TemporaryDirectory(prefix="benchmark-", dir=Path.cwd()) as name:
        folder, commands = Path(name), {}
        for part, size in (("1/10", 0.1), ("1/4", 0.25), ("1", 1), ("4", 4)):
            path = folder / f"{size}.zip"
            sha256 = write_archive(path, int(1_100_000_000 * size))
            commands[part] = Command((*_build(str(path), sha256), "--no-cache"))
        found = interleave(commands, rounds, folder)
    print("| payload (1 = 1.1 GB) | seconds (median) | seconds for 1.1 GB | peak memory, MiB |")
    print("|---|---|---|---|")
    for (part, summary), size in zip(found.items(), (0.1, 0.25, 1, 4), strict=True):
        each = summary.seconds / size
        print(f"| {part} | {summary.seconds:.1f} | {each:.1f} | {summary.peak:.0f} |")


def _print_table(found: dict[str, Summary]) -> None:
    unit = found[_UNIT].seconds
    print("| command | seconds (median) | ratio to unzip | peak memory, MiB |")
    print("|---|---|---|---|")
    for name, summary in found.items():
        ratio = summary.seconds / unit
        print(f"| {name} | {summary.seconds:.1f} | {ratio:.2f} | {summary.peak:.0f} |")


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


if __name__ == "__main__":
    main()
