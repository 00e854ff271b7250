"""Other writers of the same conda package, from the same recipes.

They are for users whose policy asks for the well-known tools. Both take the clock and
the machine into the package, so their bytes differ from run to run.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rattler_build import (
    PlatformConfig,
    RenderConfig,
    Stage0Recipe,
    ToolConfiguration,
    VariantConfig,
)

from bundler.artifacts import CondaEngine
from bundler.artifacts.conda_recipe import CondaFile
from bundler.errors import MissingError, ReleaseError
from bundler.names import Platform
from bundler.recipe_data import read_recipe
from bundler.reproducible import FILE_MODE, PROGRAM_MODE, link_or_copy


@dataclass(frozen=True)
class EngineJob:
    """What an engine is to build.

    Args:
        scratch: an empty folder on the output's disk.
        files: what is installed.
        licence: where NVIDIA's licence lies.
        values: of the recipe's variables.
        platform: the target.
        level: zstd level, 1 to 22; conda-build keeps its own.
    """

    scratch: Path
    files: tuple[CondaFile, ...]
    licence: Path
    values: Mapping[str, str]
    platform: Platform
    level: int

    @property
    def output(self) -> Path:
        """Where the engine puts its channel folders."""
        return self.scratch / "output"

    def lay_out(self) -> None:
        """Lay the installed tree out where the recipes look for it, by links if possible."""
        payload = self.scratch / "payload"
        for file in self.files:
            target = payload / "prefix" / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(file.source, bytes):
                target.write_bytes(file.source)
            else:
                link_or_copy(file.source, target)
            target.chmod(PROGRAM_MODE if file.is_program else FILE_MODE)
        link_or_copy(self.licence, payload / "LICENSE")

    def write_recipe(self, name: str) -> Path:
        """Write a recipe into a folder of its own, away from the payload.

        rattler-build copies everything beside the recipe into the package.
        """
        path = self.scratch / "recipe" / name
        path.parent.mkdir()
        path.write_bytes(read_recipe(f"conda/{name}"))
        return path


def build_by_rattler_build(job: EngineJob, name: str) -> Path:
    """Build the package by rattler-build.

    Args:
        job: what to build.
        name: what the package must be called.

    Returns:
        where it lies.

    Raises:
        ReleaseError: rattler-build refused.
    """
    recipe = job.write_recipe("recipe.yaml")
    job.lay_out()
    variants = VariantConfig({key: [value] for key, value in job.values.items()})
    config = RenderConfig(platform=PlatformConfig(target_platform=job.platform.conda_subdir))
    try:
        for variant in Stage0Recipe.from_file(recipe).render(variants, config):
            variant.run_build(
                tool_config=ToolConfiguration(test_strategy="skip", compression_threads=2),
                output_dir=job.output,
                channels=[],
                package_format=f"conda:{job.level}",
                no_build_id=True,
                no_include_recipe=True,
            )
    except Exception as error:
        raise _refused("rattler-build", str(error)) from error
    return _take("rattler-build", job, name)


def conda_build_program() -> str:
    """Find the user's conda-build.

    Raises:
        MissingError: there is none on PATH.
    """
    program = shutil.which("conda-build")
    if program is None:
        raise MissingError(
            "there is no conda-build on PATH",
            why="conda-build is not on PyPI and comes with Miniforge or Anaconda only",
            next_step="install Miniforge, `conda install conda-build`, activate it and retry; "
            "or use --conda-engine native, which needs nothing",
        )
    return program


def build_by_conda_build(job: EngineJob, name: str) -> Path:
    """Build the package by the user's conda-build.

    Args:
        job: what to build.
        name: what the package must be called.

    Returns:
        where it lies.

    Raises:
        MissingError: there is no conda-build on PATH.
        ReleaseError: conda-build refused.
    """
    program = conda_build_program()
    recipe = job.write_recipe("meta.yaml")
    job.lay_out()
    variants = {**job.values, "target_platform": job.platform.conda_subdir}
    command = [program, "--no-test", "--no-anaconda-upload", "--package-format", "conda"]
    command += ["--override-channels", "--variants", json.dumps(variants)]
    command += ["--output-folder", str(job.output.resolve()), str(recipe.parent.resolve())]
    result = subprocess.run(  # noqa: S603 - a program that the user asked for by name
        command,
        check=False,
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
    )
    if result.returncode:
        raise _refused("conda-build", result.stderr[-2000:])
    return _take("conda-build", job, name)


ENGINES: Mapping[CondaEngine, Callable[[EngineJob, str], Path]] = {
    CondaEngine.RATTLER_BUILD: build_by_rattler_build,
    CondaEngine.CONDA_BUILD: build_by_conda_build,
}


def _refused(engine: str, why: str) -> ReleaseError:
    return ReleaseError(
        f"{engine} could not build the package",
        why=why,
        next_step="use --conda-engine native, which builds the same package",
    )


def _take(engine: str, job: EngineJob, name: str) -> Path:
    built = job.output / job.platform.conda_subdir / name
    if not built.is_file():
        found = sorted(other.name for other in job.output.rglob("*.conda"))
        raise _refused(engine, f"it made {found or 'nothing'} instead of {name}")
    return built
