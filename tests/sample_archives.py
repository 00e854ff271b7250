"""Archives of NVIDIA's layouts, made by code from the stand-in libraries of `fixtures/`."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

FIXTURES = Path(__file__).parent / "fixtures"
NAME = "cudnn-windows-x86_64-8.9.5.29_cuda11-archive.zip"
LICENCE = b"Stand-in for NVIDIA's licence text.\n"
HEADER = """\
#define CUDNN_MAJOR {0}
#define CUDNN_MINOR {1}
#define CUDNN_PATCHLEVEL {2}
"""


def libraries(version: str = "8.9.5.29") -> dict[str, bytes]:
    """Give a stand-in set of libraries by file name."""
    folder = FIXTURES / "cudnn8" / version
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.dll"))}


def for_cuda_10(version: str = "8.9.5.29") -> dict[str, bytes | None]:
    """Give changes that make a set ask for cuBLAS of CUDA 10, as old archives do."""
    return {
        f"bin/{name}": data.replace(b"64_11.dll", b"64_10.dll")
        for name, data in libraries(version).items()
        if b"cublas64_11.dll" in data
    }


@dataclass(frozen=True)
class ArchiveLayout:
    """How an archive of some generation is laid out.

    Args:
        root: folder that everything lies in, with its slash, or empty.
        libraries: folder of the libraries below the root.
        import_libraries: folder of the import libraries below the root.
        licence: name of the licence text.
    """

    root: str = "cudnn-windows-x86_64-8.9.5.29_cuda11-archive/"
    libraries: str = "bin/"
    import_libraries: str = "lib/x64/"
    licence: str = "LICENSE"


@dataclass(frozen=True)
class SampleArchive:
    """What goes into an archive; `changes` adds, replaces or (by None) drops files.

    Args:
        version: of the stand-in libraries.
        layout: where things lie.
        changes: by path below the root.
    """

    version: str = "8.9.5.29"
    layout: ArchiveLayout = ArchiveLayout()
    changes: Mapping[str, bytes | None] = field(default_factory=dict)

    def files(self) -> dict[str, bytes]:
        """List the files by path, root included."""
        layout = self.layout
        header = HEADER.format(*self.version.split(".")).encode()
        files: dict[str, bytes | None] = {
            layout.licence: LICENCE,
            "include/cudnn.h": b"/* stand-in */\n",
            "include/cudnn_version.h": header,
            f"{layout.import_libraries}cudnn.lib": b"!<arch>\n",
        }
        files |= {layout.libraries + name: data for name, data in libraries(self.version).items()}
        files |= self.changes
        return {layout.root + path: data for path, data in files.items() if data is not None}

    def write(self, path: Path) -> Path:
        """Write the archive as a zip."""
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in self.files().items():
                archive.writestr(zipfile.ZipInfo(name, (2023, 9, 13, 20, 57, 18)), data,
                                 zipfile.ZIP_DEFLATED)  # fmt: skip
        return path


def sha256_of(path: Path) -> str:
    """Hash a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
