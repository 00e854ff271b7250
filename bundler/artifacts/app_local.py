"""The app-local bundle: a zip whose libraries are dropped beside a program."""

from __future__ import annotations

import hashlib

from bundler.artifacts import Artifact, ArtifactKind, ArtifactOptions
from bundler.artifacts.payload import (
    add_file,
    add_payload,
    add_probe,
    fill_template,
    template_values,
)
from bundler.lock import FILE_NAME
from bundler.names import Platform
from bundler.outputs import Outputs
from bundler.release import ValidatedRelease
from bundler.sbom import FILE_NAME as SBOM_NAME
from bundler.sbom import sbom_bytes
from bundler.zip_writer import ZipWriter

_ARCHITECTURES = {Platform.WINDOWS_X86_64: "amd64", Platform.WINDOWS_ARM64: "arm64"}


def build(release: ValidatedRelease, options: ArtifactOptions, outputs: Outputs) -> Artifact:
    """Write the bundle.

    Headers and import libraries are left out: the licence allows shipping run-time files
    only.

    Args:
        release: what to ship.
        options: only the moment matters here.
        outputs: where the bundle goes.

    Raises:
        RefusedError: it cannot be written.
    """
    file_name = f"{release.lock.identity.stem}-applocal.zip"
    texts = _texts(release)
    with outputs.open(file_name) as output:
        writer = ZipWriter(output, options.moment)
        add_payload(writer, release, "")
        add_file(writer, release, release.licence, "LICENSE")
        added = add_probe(writer, release.lock.identity, "")
        for name, data in texts.items():
            writer.add(name, data)
        writer.add("SHA256SUMS", _checksums(release, {**texts, **added}))
        writer.close()
        release.archive.check_unchanged()
    return Artifact(ArtifactKind.APP_LOCAL, outputs.folder / file_name, output.size, output.sha256)


def _texts(release: ValidatedRelease) -> dict[str, bytes]:
    values = template_values(release)
    return {
        "README.txt": fill_template("app_local/README.txt", values).replace(b"\n", b"\r\n"),
        FILE_NAME: release.lock.to_bytes(),
        SBOM_NAME: sbom_bytes(release.lock),
        f"{values['assembly']}.manifest": _assembly_manifest(release, values),
    }


def _assembly_manifest(release: ValidatedRelease, values: dict[str, str]) -> bytes:
    """Describe the libraries as a private assembly, so a sub-folder can hold them.

    Source: "Manifest Files Reference" of Win32; an assembly's version has four numbers.
    """
    parts = (*release.lock.identity.version.parts, 0, 0, 0)[:4]
    return fill_template(
        "app_local/assembly.manifest",
        {
            "assembly": values["assembly"],
            "version": ".".join(str(part) for part in parts),
            "architecture": _ARCHITECTURES[release.lock.identity.platform],
            "files": "".join(f'  <file name="{file.name}"/>\n' for file in release.payload),
        },
    )


def _checksums(release: ValidatedRelease, others: dict[str, bytes]) -> bytes:
    """List every other file, as `sha256sum -c` reads it."""
    sums = {file.name: file.locked.sha256 for file in release.payload}
    sums["LICENSE"] = release.licence.locked.sha256
    sums |= {name: hashlib.sha256(data).hexdigest() for name, data in others.items()}
    return "".join(f"{sums[name]}  {name}\n" for name in sorted(sums)).encode()
