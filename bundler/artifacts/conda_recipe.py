"""What the conda package says of itself, rendered from `recipes/conda`.

The recipe is the one source: every engine builds from it, and the native writer takes
its metadata from the same rendering.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

from bundler.lock import FILE_NAME
from bundler.names import Platform, ReleaseIdentity
from bundler.probe import PROBE_NAME, probe_executable
from bundler.recipe_data import read_recipe
from bundler.release import ValidatedRelease
from bundler.sbom import FILE_NAME as SBOM_NAME
from bundler.sbom import sbom_bytes


@dataclass(frozen=True)
class CondaFile:
    """One file the package installs.

    Args:
        path: posix path below the environment's prefix.
        size: bytes.
        sha256: lowercase hex SHA-256.
        source: its bytes, or where they lie.
        is_program: it gets the executable mode.
    """

    path: str
    size: int
    sha256: str
    source: bytes | Path
    is_program: bool = False


@dataclass(frozen=True)
class CondaMetadata:
    """The rendered recipe, as far as a package carries it.

    Args:
        name: of the package.
        version: of the package.
        build: the build string.
        constrains: what else may be in the environment.
        run_exports: what a package built against this one depends on.
        about: what `about.json` holds: home page, licence and summary.
    """

    name: str
    version: str
    build: str
    constrains: tuple[str, ...]
    run_exports: tuple[str, ...]
    about: Mapping[str, str]

    @property
    def stem(self) -> str:
        """The file name without its ending."""
        return f"{self.name}-{self.version}-{self.build}"


def conda_files(release: ValidatedRelease) -> tuple[CondaFile, ...]:
    """List what the package installs, sorted by path."""
    identity = release.lock.identity
    libraries, share = installed_folders(identity.platform)
    files = [
        CondaFile(libraries + f.name, f.locked.size, f.locked.sha256, f.staged.location)
        for f in release.payload
    ]
    probe = libraries.replace("lib/", "bin/") + PROBE_NAME[identity.platform.is_windows]
    files.append(_from_bytes(probe, probe_executable(identity), is_program=True))
    files.append(_from_bytes(share + FILE_NAME, release.lock.to_bytes()))
    files.append(_from_bytes(share + SBOM_NAME, sbom_bytes(release.lock)))
    return tuple(sorted(files, key=lambda file: file.path))


def installed_folders(platform: Platform) -> tuple[str, str]:
    """Name the folders for libraries and for texts below a prefix, with their slashes."""
    if platform.is_windows:
        return "Library/bin/", "Library/share/cudnn/"
    return "lib/", "share/cudnn/"


def _from_bytes(path: str, data: bytes, *, is_program: bool = False) -> CondaFile:
    return CondaFile(path, len(data), hashlib.sha256(data).hexdigest(), data, is_program)


def variables(identity: ReleaseIdentity, files: Iterable[CondaFile]) -> dict[str, str]:
    """Give the values of the recipe's variables.

    The build string holds a digest of the installed files, so that a package with other
    content has another name.

    Args:
        identity: of the release.
        files: what is installed.
    """
    digest = hashlib.sha256("".join(f"{f.sha256}  {f.path}\n" for f in files).encode())
    return {
        "cudnn_version": str(identity.version),
        "cudnn_upper": f"{identity.version.major + 1}.0a0",
        "cuda_lower": identity.cuda,
        "cuda_upper": _next(identity.cuda),
        # Solvers allow letters, digits and underscores only.
        "build_string": f"cuda{identity.cuda.replace('.', '')}_{digest.hexdigest()[:8]}_0",
    }


def _next(cuda: str) -> str:
    *front, last = cuda.split(".")
    return ".".join((*front, str(int(last) + 1)))


def render(values: Mapping[str, str], platform: Platform) -> CondaMetadata:
    """Render recipe.yaml for one release.

    Args:
        values: from `variables`.
        platform: the target.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "recipe.yaml")
        path.write_bytes(read_recipe("conda/recipe.yaml"))
        config = RenderConfig(platform=PlatformConfig(target_platform=platform.conda_subdir))
        recipe = Stage0Recipe.from_file(path)
        variants = VariantConfig({key: [value] for key, value in values.items()})
        (rendered,) = recipe.render(variants, config)
        # Only through JSON: the binding's own classes differ between its versions.
        document = json.loads(json.dumps(rendered.recipe.to_dict()))
    requirements, about = document["requirements"], document["about"]
    return CondaMetadata(
        name=document["package"]["name"],
        version=document["package"]["version"],
        build=document["build"]["string"],
        constrains=tuple(requirements["run_constraints"]),
        run_exports=tuple(requirements["run_exports"]["weak"]),
        about={
            "home": about["homepage"],
            "license": about["license"],
            "summary": about["summary"],
        },
    )
