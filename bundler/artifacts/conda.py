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
import tempfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from bundler.artifacts import Artifact, ArtifactKind, ArtifactOptions, CondaEngine
from bundler.artifacts.conda_engines import ENGINES, EngineJob
from bundler.artifacts.conda_recipe import CondaFile, CondaMetadata, conda_files, render, variables
from bundler.compression import open_zstd_writer
from bundler.lock import FILE_NAME
from bundler.names import Platform
from bundler.release import ValidatedRelease
from bundler.reproducible import (
    CONDA_TIMESTAMP,
    FILE_MODE,
    PROGRAM_MODE,
    TAR_TIME,
    Written,
    atomic_output,
    refusing_to_write,
)
from bundler.zip_directory import STORED
from bundler.zip_writer import ZipMember, ZipWriter

_CHUNK = 1024 * 1024
_ARCHITECTURES = {
    Platform.WINDOWS_X86_64: ("win", "x86_64"),
    Platform.WINDOWS_ARM64: ("win", "arm64"),
    Platform.LINUX_X86_64: ("linux", "x86_64"),
    Platform.LINUX_SBSA: ("linux", "aarch64"),
    Platform.LINUX_AARCH64: ("linux", "aarch64"),
    Platform.LINUX_PPC64LE: ("linux", "ppc64le"),
}


def build(release: ValidatedRelease, options: ArtifactOptions, folder: Path) -> Artifact:
    """Write the package into its channel folder (`win-64/` below the given one).

    Args:
        release: what to ship.
        options: engine and compression level.
        folder: where the channel folder goes.

    Raises:
        MissingError: the engine is not on this machine.
        ReleaseError: the engine refused.
        RefusedError: the package cannot be written.
    """
    platform = release.lock.identity.platform
    files = conda_files(release)
    values = variables(release.lock.identity, files)
    metadata = render(values, platform)
    path = folder / platform.conda_subdir / f"{metadata.stem}.conda"
    with (
        refusing_to_write(path),
        tempfile.TemporaryDirectory(prefix="conda-", dir=release.scratch) as scratch,
    ):
        if options.conda_engine is CondaEngine.NATIVE:
            info = _info_files(release, metadata, files)
            content = _Content(metadata.stem, files, info, options.conda_level)
            written = _write(content, path, Path(scratch))
        else:
            licence = release.licence.staged.location
            job = EngineJob(Path(scratch), files, licence, values, platform, options.conda_level)
            written = ENGINES[options.conda_engine](job, path)
    return Artifact(ArtifactKind.CONDA, path, written.size, written.sha256)


@dataclass(frozen=True)
class _Content:
    stem: str
    installed: tuple[CondaFile, ...]
    info: tuple[CondaFile, ...]
    level: int


def _write(content: _Content, path: Path, scratch: Path) -> Written:
    """Write both inner archives, then the zip around them, in the order readers expect."""
    package, info = scratch / "pkg.tar.zst", scratch / "info.tar.zst"
    _write_tar(package, content.installed, content.level)
    _write_tar(info, content.info, content.level)
    with atomic_output(path, scratch) as output:
        writer = ZipWriter(output)
        writer.add("metadata.json", b'{"conda_pkg_format_version": 2}\n')
        _add_stored(writer, f"pkg-{content.stem}.tar.zst", package)
        _add_stored(writer, f"info-{content.stem}.tar.zst", info)
        writer.close()
    return Written(path, output.size, output.sha256)


def _add_stored(writer: ZipWriter, name: str, source: Path) -> None:
    with source.open("rb") as stream:
        crc32 = 0
        for chunk in iter(lambda: stream.read(_CHUNK), b""):
            crc32 = zlib.crc32(chunk, crc32)
        size = stream.tell()
        stream.seek(0)
        member = ZipMember(name, STORED, crc32, size, size)
        writer.add_stream(member, iter(lambda: stream.read(_CHUNK), b""))


def _write_tar(path: Path, files: Iterable[CondaFile], level: int) -> None:
    with (
        open_zstd_writer(path, level) as compressed,
        tarfile.open(fileobj=compressed, mode="w|", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for file in files:
            entry = tarfile.TarInfo(file.path)
            entry.size, entry.mtime = file.size, TAR_TIME
            entry.mode = PROGRAM_MODE if file.is_program else FILE_MODE
            with _open(file) as stream:
                tar.addfile(entry, stream)


def _open(file: CondaFile) -> IO[bytes]:
    return io.BytesIO(file.source) if isinstance(file.source, bytes) else file.source.open("rb")


def _info_files(
    release: ValidatedRelease, metadata: CondaMetadata, installed: tuple[CondaFile, ...]
) -> tuple[CondaFile, ...]:
    documents: dict[str, Mapping[str, object]] = {
        "index.json": _index(metadata, release.lock.identity.platform),
        "about.json": metadata.about,
        "paths.json": _paths(installed),
        "run_exports.json": {"weak": list(metadata.run_exports)},
    }
    texts = {name: _json(document) for name, document in documents.items()}
    texts["files"] = "".join(f"{file.path}\n" for file in installed).encode()
    texts[FILE_NAME] = release.lock.to_bytes()
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


def _index(metadata: CondaMetadata, platform: Platform) -> dict[str, object]:
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
        "timestamp": CONDA_TIMESTAMP,
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
