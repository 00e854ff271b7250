"""The wheel: the payload in an import package that activates it.

Source: the binary distribution format (PEP 427), core metadata 2.4 (PEP 639), recording
installed projects (PEP 376), SBOMs in wheels (PEP 770).
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field

from bundler import __version__
from bundler.artifacts import Artifact, ArtifactKind, ArtifactOptions, CudaSource
from bundler.artifacts.payload import add_file, add_payload, fill_template, template_values
from bundler.errors import UsageError
from bundler.lock import FILE_NAME
from bundler.names import ReleaseIdentity
from bundler.outputs import Outputs
from bundler.probe import probe_library
from bundler.recipe_data import read_recipe
from bundler.release import ValidatedRelease
from bundler.resources import activation_sources
from bundler.sbom import FILE_NAME as SBOM_NAME
from bundler.sbom import sbom_bytes
from bundler.zip_writer import ZipWriter

_WHEEL = """\
Wheel-Version: 1.0
Generator: cudnn-bundler {version}
Root-Is-Purelib: false
Tag: {tag}
"""


@dataclass
class _Record:
    """The rows of RECORD, in the order of the zip."""

    rows: list[str] = field(default_factory=list)

    def add(self, name: str, sha256: str, size: int) -> None:
        digest = base64.urlsafe_b64encode(bytes.fromhex(sha256)).rstrip(b"=").decode()
        self.rows.append(f"{name},sha256={digest},{size}\n")


def build(release: ValidatedRelease, options: ArtifactOptions, outputs: Outputs) -> Artifact:
    """Write the wheel.

    Args:
        release: what to ship.
        options: moment, and `cuda_from`, which decides whether NVIDIA's wheels become dependencies.
        outputs: where the wheel goes.

    Raises:
        UsageError: NVIDIA has no wheels for this CUDA, and dependencies were asked for.
        RefusedError: it cannot be written.
    """
    identity = release.lock.identity
    tag = f"py3-none-{identity.platform.wheel_tag}"
    stem = f"{identity.import_name}-{identity.version}"
    file_name = f"{stem}-{tag}.whl"
    metadata = _metadata(release, options.cuda_from)
    with outputs.open(file_name) as output:
        writer, record = ZipWriter(output, options.moment), _Record()
        _add_package(writer, record, release)
        dist_info = f"{stem}.dist-info/"
        texts = {
            "METADATA": metadata,
            "WHEEL": _wheel_file(tag),
            f"sboms/{SBOM_NAME}": sbom_bytes(release.lock),
        }
        for name, data in texts.items():
            _add(writer, record, dist_info + name, data)
        licence = dist_info + "licenses/LICENSE"
        add_file(writer, release, release.licence, licence)
        record.add(licence, release.licence.locked.sha256, release.licence.locked.size)
        record.rows.append(f"{dist_info}RECORD,,\n")
        writer.add(f"{dist_info}RECORD", "".join(record.rows).encode())
        writer.close()
        release.archive.check_unchanged()
    return Artifact(ArtifactKind.WHEEL, outputs.folder / file_name, output.size, output.sha256)


def _wheel_file(tag: str) -> bytes:
    return _WHEEL.format(tag=tag, version=__version__).encode()


def library_folder(identity: ReleaseIdentity) -> str:
    """Name the folder of the import package that holds the libraries, with its slash."""
    return f"{identity.import_name}/{'bin' if identity.platform.is_windows else 'lib'}/"


def _add_package(writer: ZipWriter, record: _Record, release: ValidatedRelease) -> None:
    package = f"{release.lock.identity.import_name}/"
    probe, data = probe_library(release.lock.identity)
    sources = activation_sources() | {FILE_NAME: release.lock.to_bytes(), probe: data}
    for name, data in sorted(sources.items()):
        _add(writer, record, package + name, data)
    folder = library_folder(release.lock.identity)
    add_payload(writer, release, folder)
    for file in release.payload:
        record.add(folder + file.name, file.locked.sha256, file.locked.size)


def _add(writer: ZipWriter, record: _Record, name: str, data: bytes) -> None:
    writer.add(name, data)
    record.add(name, hashlib.sha256(data).hexdigest(), len(data))


def _metadata(release: ValidatedRelease, cuda_from: CudaSource) -> bytes:
    identity = release.lock.identity
    requires = cuda_requirements(identity) if cuda_from is CudaSource.PYPI else ()
    values = template_values(release) | {
        "requires": "".join(f"Requires-Dist: {requirement}\n" for requirement in requires),
        "operating_system": (
            "Microsoft :: Windows" if identity.platform.is_windows else "POSIX :: Linux"
        ),
    }
    return fill_template("wheel/METADATA", values)


def cuda_requirements(identity: ReleaseIdentity) -> tuple[str, ...]:
    """Name NVIDIA's wheels that bring what cuDNN opens at run time.

    Raises:
        UsageError: there are none for this CUDA.
    """
    table = json.loads(read_recipe("cuda_wheels.json"))
    row = table.get(identity.cuda)
    if row is None:
        raise UsageError(
            f"NVIDIA publishes no wheels of cuBLAS for CUDA {identity.cuda}",
            next_step="leave out --cuda-from pypi, and install the CUDA toolkit on the target",
        )
    return tuple(sorted(row.values()))
