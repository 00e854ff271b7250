"""What the three artifacts share: copying the payload and describing its needs."""

from __future__ import annotations

from string import Template

from bundler.lock import Lock
from bundler.names import ReleaseIdentity
from bundler.probe import PROBE_NAME, probe_executable
from bundler.recipe_data import read_recipe
from bundler.release import PayloadFile, ValidatedRelease
from bundler.reproducible import PROGRAM_MODE
from bundler.zip_writer import ZipMember, ZipWriter


def add_payload(writer: ZipWriter, release: ValidatedRelease, folder: str) -> None:
    """Copy every library's compressed stream into a folder of a zip.

    Args:
        writer: the zip.
        release: the payload's owner.
        folder: posix path inside the zip, empty or with a final slash.
    """
    for file in release.payload:
        add_file(writer, release, file, folder + file.name)


def add_file(writer: ZipWriter, release: ValidatedRelease, file: PayloadFile, name: str) -> None:
    """Copy one file's stream from the archive, as it is compressed there."""
    entry = file.staged.entry
    member = ZipMember(name, entry.method, entry.crc32, entry.size, entry.compressed_size)
    writer.add_stream(member, release.archive.read_raw(entry))


def add_probe(writer: ZipWriter, identity: ReleaseIdentity, folder: str) -> dict[str, bytes]:
    """Put the probe beside the libraries.

    Returns:
        what was added: name inside the zip, and bytes.
    """
    name, data = folder + PROBE_NAME[identity.platform.is_windows], probe_executable(identity)
    writer.add(name, data, PROGRAM_MODE)
    return {name: data}


def describe_needs(lock: Lock, bullet: str = "* ") -> str:
    """Write what the target machine must have, a line each with a final newline."""
    return "".join(f"{bullet}{line}\n" for line in lock.target_requirements)


def fill_template(recipe: str, values: dict[str, str]) -> bytes:
    """Fill a text of `recipes/`; an unknown or missing name is an error.

    Args:
        recipe: path below `recipes/`.
        values: what its `$names` stand for.
    """
    return Template(read_recipe(recipe).decode()).substitute(values).encode()


def template_values(release: ValidatedRelease) -> dict[str, str]:
    """Give the values that every template may use."""
    identity, archive = release.lock.identity, release.lock.archive
    return {
        "version": str(identity.version),
        "cuda": identity.cuda,
        "platform": str(identity.platform),
        "distribution": identity.distribution,
        "import_name": identity.import_name,
        "switch": identity.import_name.upper(),
        "archive": archive.name,
        "archive_sha256": archive.sha256,
        "needs": describe_needs(release.lock),
        "assembly": f"cudnn{identity.version.major}",
    }
