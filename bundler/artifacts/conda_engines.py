"""Other writers of the same conda package, from the same recipes.

They are for users whose policy asks for the well-known tools. Both take the clock and
the machine into the package, so their bytes differ from run to run.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from rattler_build import (
    PlatformConfig,
    RenderConfig,
    Stage0Recipe,
    ToolConfiguration,
    VariantConfig,
)

from bundler.artifacts import ArtifactOptions, CondaEngine
from bundler.artifacts.conda_recipe import CondaFile, conda_files
from bundler.errors import MissingError, ReleaseError
from bundler.names import Platform
from bundler.recipe_data import read_recipe
from bundler.release import ValidatedRelease
from bundler.reproducible import FILE_MODE, PROGRAM_MODE, Written


def build_with_engine(
    release: ValidatedRelease, options: ArtifactOptions, values: Mapping[str, str], path: Path
) -> Written:
    """Build the package by another engine and put it where ours would be.

    Args:
        release: what to ship.
        options: engine and compression level.
        values: of the recipe's variables; `payload` is the folder to fill.
        path: where the package goes.

    Raises:
        MissingError: the engine is not on this machine.
        ReleaseError: the engine refused.
    """
    payload, scratch = Path(values["payload"]), release.scratch / "conda-engine"
    _lay_out(conda_files(release), release.licence.staged.location, payload)
    recipe, output = scratch / "recipe", scratch / "output"
    recipe.mkdir(parents=True)
    platform = release.lock.identity.platform
    if options.conda_engine is CondaEngine.RATTLER_BUILD:
        _run_rattler_build(recipe, output, values, (platform, options.conda_level))
    else:
        _run_conda_build(recipe, output, values, platform)
    return _take(output / platform.conda_subdir, path)


def _lay_out(files: tuple[CondaFile, ...], licence: Path, payload: Path) -> None:
    """Lay the installed tree out once; links where the file system allows, else copies."""
    for file in files:
        target = payload / "prefix" / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(file.source, bytes):
            target.write_bytes(file.source)
        else:
            _link(file.source, target)
        target.chmod(PROGRAM_MODE if file.is_program else FILE_MODE)
    _link(licence, payload / "LICENSE")


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _run_rattler_build(
    recipe: Path, output: Path, values: Mapping[str, str], settings: tuple[Platform, int]
) -> None:
    platform, level = settings
    path = recipe / "recipe.yaml"
    path.write_bytes(read_recipe("conda/recipe.yaml"))
    variants = VariantConfig({key: [value] for key, value in values.items()})
    config = RenderConfig(platform=PlatformConfig(target_platform=platform.conda_subdir))
    try:
        for variant in Stage0Recipe.from_file(path).render(variants, config):
            variant.run_build(
                tool_config=ToolConfiguration(test_strategy="skip", compression_threads=2),
                output_dir=output,
                channels=[],
                package_format=f"conda:{level}",
                no_build_id=True,
                no_include_recipe=True,
            )
    except Exception as error:
        raise _refused("rattler-build", str(error)) from error


def _run_conda_build(
    recipe: Path, output: Path, values: Mapping[str, str], platform: Platform
) -> None:
    program = shutil.which("conda-build")
    if program is None:
        raise MissingError(
            "there is no conda-build on PATH",
            why="conda-build is not on PyPI and comes with Miniforge or Anaconda only",
            next_step="install Miniforge, `conda install conda-build`, activate it and retry; "
            "or use --conda-engine native, which needs nothing",
        )
    (recipe / "meta.yaml").write_bytes(read_recipe("conda/meta.yaml"))
    variants = {**values, "target_platform": platform.conda_subdir}
    result = subprocess.run(  # noqa: S603 - a program that the user asked for by name
        [program, "--no-test", "--no-anaconda-upload", "--package-format", "conda",
         "--override-channels", "--variants", json.dumps(variants),
         "--output-folder", str(output), str(recipe)],
        check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    if result.returncode:
        raise _refused("conda-build", result.stderr[-2000:])


def _refused(engine: str, why: str) -> ReleaseError:
    return ReleaseError(
        f"{engine} could not build the package",
        why=why,
        next_step="use --conda-engine native, which builds the same package",
    )


def _take(folder: Path, path: Path) -> Written:
    """Move the engine's package to its final path and hash it."""
    (built,) = folder.glob("*.conda")
    path.parent.mkdir(parents=True, exist_ok=True)
    # rattler-build writes 0600, which no web server may read.
    built.chmod(FILE_MODE)
    with built.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        size = stream.seek(0, os.SEEK_END)
    built.replace(path)
    return Written(path, size, digest)
