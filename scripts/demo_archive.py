"""Rebuild the layout of NVIDIA's Windows archive from NVIDIA's wheel on PyPI.

    python scripts/demo_archive.py [-o demo]

The result is NOT NVIDIA's own zip: its files are NVIDIA's, byte for byte, and their
compressed streams too, but the zip around them is ours. So its hash is in no catalogue,
and a manifest of NVIDIA's form is written beside it that vouches for it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bundler.archive import Archive, open_archive
from bundler.moment import Moment
from bundler.reproducible import Written, atomic_output, write_bytes
from bundler.trust import ArchiveDigest
from bundler.zip_directory import ZipEntry
from bundler.zip_writer import ZipMember, ZipWriter

WHEEL = "nvidia_cudnn_cu11-8.9.5.29-py3-none-win_amd64.whl"
WHEEL_SHA256 = "ba6358cafcbf9ab66887099f5c821dde3968d7b4580cb87c56b548947917b54d"
ROOT = "cudnn-windows-x86_64-8.9.5.29_cuda11-archive"
FILES, UNPACKED = 31, 1_105_292_435


def main() -> None:
    """Make the archive and its manifest, unless they are there already."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("-o", "--output", type=Path, default=Path("demo"), help="folder")
    output: Path = parser.parse_args().output
    manifest = output / "redistrib_8.9.5.29_rebuilt.json"
    archive = output / f"{ROOT}.zip"
    if not (archive.is_file() and manifest.is_file()):
        write_manifest(rebuild(fetch(output), archive), manifest)
    print(f"demo archive: {archive}")
    print("  rebuilt from NVIDIA's wheel; not NVIDIA's own zip, so give its manifest:")
    print(f"  --manifest {manifest}")


def fetch(folder: Path) -> Path:
    """Download the wheel through pip, pinned by hash, unless it is there."""
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / WHEEL
    if not wheel.is_file() or _sha256(wheel) != WHEEL_SHA256:
        requirement = folder / "requirement.txt"
        line = f"nvidia-cudnn-cu11==8.9.5.29 --hash=sha256:{WHEEL_SHA256}\n"
        requirement.write_text(line, encoding="ascii")
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes"]
        command += ["--only-binary=:all:", "--platform", "win_amd64", "--no-cache-dir"]
        command += ["-d", str(folder), "-r", str(requirement)]
        if subprocess.run(command, check=False).returncode:
            sys.exit("pip could not download NVIDIA's wheel: see its message above")
        requirement.unlink()
    return wheel


def rebuild(wheel: Path, path: Path) -> Written:
    """Copy the wheel's compressed streams into a zip of NVIDIA's layout."""
    with open_archive(wheel) as (source, _), atomic_output(path) as output:
        members = dict(sorted(_members(source)))
        if (len(members), sum(entry.size for entry in members.values())) != (FILES, UNPACKED):
            sys.exit("the wheel does not hold the archive's 31 files")
        writer = ZipWriter(output, Moment())
        for name, entry in members.items():
            member = ZipMember(name, entry.method, entry.crc32, entry.size, entry.compressed_size)
            writer.add_stream(member, source.read_raw(entry))
        writer.close()
    return Written(path, output.size, output.sha256)


def _members(source: Archive) -> Iterator[tuple[str, ZipEntry]]:
    for entry in source.entries:
        if entry.name.endswith("License.txt"):
            yield f"{ROOT}/LICENSE", entry
        elif entry.name.endswith((".dll", ".h", ".lib")):
            yield f"{ROOT}/{entry.name.removeprefix('nvidia/cudnn/')}", entry


def write_manifest(archive: Written, path: Path) -> None:
    """Write a manifest of the form of NVIDIA's `redistrib_8.9.5.29.json`."""
    with archive.path.open("rb") as stream:
        md5 = hashlib.file_digest(stream, "md5").hexdigest()
    digest = ArchiveDigest(size=archive.size, sha256=archive.sha256, md5=md5)
    document = {
        "release_date": "2023-09-13",
        "release_label": "8.9.5.29",
        "release_product": "cudnn-v8-9-cuda-11",
        "cudnn": {
            "name": "NVIDIA cuDNN, archive rebuilt from NVIDIA's wheel; not NVIDIA's own zip",
            "license": "cudnn",
            "license_path": "cudnn/LICENSE.txt",
            "version": "8.9.5.29",
            "windows-x86_64": {
                "relative_path": f"cudnn/windows-x86_64/{ROOT}.zip",
                "sha256": digest.sha256,
                "md5": digest.md5,
                "size": str(digest.size),
            },
        },
    }
    write_bytes(path, json.dumps(document, indent=4).encode())


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


if __name__ == "__main__":
    main()
