"""The three artifacts: same payload, same lock, three ways to install it.

Each builder has one signature, and none imports another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from bundler.moment import Moment


class ArtifactKind(StrEnum):
    """The ways to ship a release."""

    APP_LOCAL = "app-local"
    WHEEL = "wheel"
    CONDA = "conda"


class CudaSource(StrEnum):
    """Where a wheel's user gets cuBLAS and NVRTC from."""

    NONE = "none"
    PYPI = "pypi"


class CondaEngine(StrEnum):
    """Who writes the conda package; only `native` gives the same bytes every time."""

    NATIVE = "native"
    RATTLER_BUILD = "rattler-build"
    CONDA_BUILD = "conda-build"


@dataclass(frozen=True)
class ArtifactOptions:
    """What may differ between two builds of one archive.

    Args:
        cuda_from: `pypi` makes the wheel depend on NVIDIA's wheels.
        conda_level: zstd level of the conda package, 1 to 22.
        conda_engine: who writes it.
        moment: the time that every file bears.
    """

    cuda_from: CudaSource = CudaSource.NONE
    conda_level: int = 3
    conda_engine: CondaEngine = CondaEngine.NATIVE
    moment: Moment = field(default_factory=Moment)


@dataclass(frozen=True)
class Artifact:
    """One finished artifact.

    Args:
        kind: which of the three.
        path: where it lies.
        size: bytes.
        sha256: lowercase hex SHA-256.
    """

    kind: ArtifactKind
    path: Path
    size: int
    sha256: str
