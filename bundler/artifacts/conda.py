"""The conda package, written by ourselves so that its bytes are the same every time.

The libraries' own writers take the clock into the package (measured with
conda-package-streaming, rattler-build and conda-build).

Source: the conda package format (CEP 35 for `.conda`), paths.json (CEP 34).
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import IO

from bundler.artifacts import Artifact, ArtifactKind, ArtifactOptions, CondaEngine
from bundler.artifacts.conda_engines import ENGINES, EngineJob
from bundler.artifacts.conda_recipe import CondaFile, CondaMetadata, conda_files, render, variables
from bundler.compression import compressed_limit, open_zstd_writer
from bundler.integrity import hash_file
from bundler.lock import FILE_NAME
from bundler.names import Platform
from bundler.outputs import Outputs
from bundler.release import ValidatedRelease
from bundler.reproducible import CHUNK, FILE_MODE, PROGRAM_MODE, refusing_to_write
from bundler.sbom import FILE_NAME as SBOM_NAME
from bundler.sbom import sbom_bytes
from bundler.zip_writer import GrowingMember, ZipWriter

_ARCHITECTURES = {
    Platform.WINDOWS_X86_64: ("win", "x86_64"),
    Platform.WINDOWS_ARM64: ("win", "arm64"),
    Platform.LINUX_X86_64: ("linux", "x86_64"),
    Platform.LINUX_SBSA: ("linux", "aarch64"),
    Platform.LINUX_AARCH64: ("linux", "aarch64"),
    Platform.LINUX_PPC64LE: ("linux", "ppc64le"),
}


def build(release: ValidatedRelease, options: ArtifactOptions, outputs: Outputs) -> Artifact:
    """Write the package into its channel folder, such as `win-64/`.

    Args:
        release: what to ship.
        options: engine, compression level and moment.
        outputs: where the channel folder goes.

    Raises:
        MissingError: the engine is not on this machine.
        ReleaseError: the engine refused.
        RefusedError: the package cannot be written.
    """
    files = conda_files(release)
    values = variables(release.lock.identity, files)
    metadata = render(values, release.lock.identity.platform)
    package = _Package(release, options, files, metadata)
    if options.conda_engine is CondaEngine.NATIVE:
        size, sha256 = _write(package, outputs)
    else:
        size, sha256 = _let_write(package, values, outputs)
    return Artifact(ArtifactKind.CONDA, outputs.folder / package.name, size, sha256)


@dataclass(frozen=True)
class _Package:
    release: ValidatedRelease
    options: ArtifactOptions
    files: tuple[CondaFile, ...]
    metadata: CondaMetadata

    @property
    def name(self) -> str:
        """Posix path below the channel's folder."""
        return f"{self.release.lock.identity.platform.conda_subdir}/{self.metadata.stem}.conda"


def _let_write(package: _Package, values: Mapping[str, str], outputs: Outputs) -> tuple[int, str]:
    """Let another engine build the package, and take it over."""
    release, options = package.release, package.options
    scratch = release.scratch / "conda"
    with refusing_to_write(outputs.folder / package.name):
        scratch.mkdir()
        licence, platform = release.licence.staged.location, release.lock.identity.platform
        job = EngineJob(scratch, package.files, licence, values, platform, options.conda_level)
        built = ENGINES[options.conda_engine](job, f"{package.metadata.stem}.conda")
        found = hash_file(built)
    outputs.adopt(package.name, built)
    return found.size, found.sha256


def _write(package: _Package, outputs: Outputs) -> tuple[int, str]:
    """Write both inner archives into the zip around them, in the order readers expect."""
    inner = {"pkg": package.files, "info": _info_files(package)}
    with outputs.open(package.name) as output:
        writer = ZipWriter(output, package.options.moment)
        writer.add("metadata.json", b'{"conda_pkg_format_version": 2}\n')
        for name, files in inner.items():
            limit = compressed_limit(sum(file.size + tarfile.RECORDSIZE for file in files))
            inside = f"{name}-{package.metadata.stem}.tar.zst"
            with writer.open_stored(inside, limit) as member:
                _write_tar(member, files, package.options, outputs.count)
        writer.close()
    return output.size, output.sha256


def _write_tar(
    member: GrowingMember,
    files: Iterable[CondaFile],
    options: ArtifactOptions,
    count: Callable[[int], None],
) -> None:
    with (
        open_zstd_writer(member, options.conda_level) as compressed,
        tarfile.TarFile(
            fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT, copybufsize=CHUNK
        ) as tar,
    ):
        for file in files:
            entry = tarfile.TarInfo(file.path)
            entry.size, entry.mtime = file.size, options.moment.seconds
            entry.mode = PROGRAM_MODE if file.is_program else FILE_MODE
            with _open(file) as stream:
                tar.addfile(entry, _Counted(stream, count))


@dataclass(frozen=True)
class _Counted:
    """A file whose reader is watched."""

    stream: IO[bytes]
    count: Callable[[int], None]

    def read(self, size: int = -1) -> bytes:
        data = self.stream.read(size)
        self.count(len(data))
        return data


def _open(file: CondaFile) -> IO[bytes]:
    return io.BytesIO(file.source) if isinstance(file.source, bytes) else file.source.open("rb")


def _info_files(package: _Package) -> tuple[CondaFile, ...]:
    release, metadata, installed = package.release, package.metadata, package.files
    documents: dict[str, Mapping[str, object]] = {
        "index.json": _index(package),
        "about.json": metadata.about,
        "paths.json": _paths(installed),
        "run_exports.json": {"weak": list(metadata.run_exports)},
    }
    texts = {name: _json(document) for name, document in documents.items()}
    texts["files"] = "".join(f"{file.path}\n" for file in installed).encode()
    texts[FILE_NAME] = release.lock.to_bytes()
    texts[SBOM_NAME] = sbom_bytes(release.lock)
    licence = release.licence
    result = [
        CondaFile(f"info/{name}", len(data), hashlib.sha256(data).hexdigest(), data)
        for name, data in texts.items()
    ]
    facts = licence.locked
    path = "info/licenses/LICENSE"
    result.append(CondaFile(path, facts.size, facts.sha256, licence.staged.location))
    return tuple(sorted(result, key=lambda file: file.path))


def _json(document: Mapping[str, object]) -> bytes:
    return (json.dumps(document, indent=2, sort_keys=True) + "\n").encode()


def _index(package: _Package) -> dict[str, object]:
    metadata, platform = package.metadata, package.release.lock.identity.platform
    system, architecture = _ARCHITECTURES[platform]
    return {
        "arch": architecture,
        "build": metadata.build,
        "build_number": 0,
        "constrains": list(metadata.constrains),
        "depends": [],
        "license": metadata.about["license"],
        "name": metadata.name,
        "platform": system,
        "subdir": platform.conda_subdir,
        "timestamp": package.options.moment.milliseconds,
        "version": metadata.version,
    }


def _paths(files: Iterable[CondaFile]) -> dict[str, object]:
    return {
        "paths": [
            {
                "_path": file.path,
                "path_type": "hardlink",
                "sha256": file.sha256,
                "size_in_bytes": file.size,
            }
            for file in files
        ],
        "paths_version": 1,
    }
