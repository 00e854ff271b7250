"""The wheel's import package as tests see it: laid out, imported, and with a loader in memory."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

SOURCES = Path(__file__).parents[2] / "bundler" / "resources" / "activation"
NAME = "cudnn_runtime_cu11"
SWITCH = NAME.upper()


def lay_package(
    site: Path, libraries: dict[str, bytes], file_version: str | None = None, **changes: object
) -> Path:
    """Lay the package out as an installed wheel has it.

    Args:
        site: the folder to import it from; it is made.
        libraries: name to bytes, in load order.
        file_version: what the lock says of each library's version resource.
        changes: to the lock's document.

    Returns:
        The package's folder.
    """
    package = site / NAME
    shutil.copytree(SOURCES, package, ignore=shutil.ignore_patterns("__pycache__"))
    document = lock_document(libraries, file_version) | changes
    windows = document["identity"]["platform"].startswith("windows")
    folder = package / ("bin" if windows else "lib")
    folder.mkdir()
    for name, data in libraries.items():
        (folder / name).write_bytes(data)
    (package / "cudnn.lock.json").write_text(json.dumps(document), encoding="utf-8")
    return package


def lock_document(libraries: dict[str, bytes], file_version: str | None) -> dict[str, Any]:
    """Write the part of a lock that the package reads."""
    return {
        "schema": 2,
        "identity": {"version": "8.9.5.29", "cuda": "11", "platform": "linux-x86_64"},
        "files": [
            {
                "path": f"lib/{name}",
                "size": len(data),
                "sha256": hashlib.sha256(data).hexdigest(),
                "role": "runtime",
                "library": {"file_version": file_version},
            }
            for name, data in libraries.items()
        ]
        + [{"path": "include/cudnn.h", "size": 1, "sha256": "0" * 64, "role": "header"}],
        "load_order": list(libraries),
        "needs": [],
    }


class Modules:
    """The private modules of the package, by their names without the underscore.

    They are imported from a laid-out copy, with activation off, because the sources
    themselves have no lock beside them and must not be imported in place.
    """

    def __init__(self, site: Path) -> None:
        lay_package(site, {"libcudnn.so.8": b""})
        old = os.environ.get(SWITCH)
        os.environ[SWITCH] = "off"
        sys.path.insert(0, str(site))
        try:
            self.package: ModuleType = importlib.import_module(NAME)
            for path in SOURCES.glob("_[a-z]*.py"):
                importlib.import_module(f"{NAME}.{path.stem}")
            self.main: ModuleType = importlib.import_module(f"{NAME}.__main__")
        finally:
            sys.path.remove(str(site))
            del os.environ[SWITCH]
            if old is not None:
                os.environ[SWITCH] = old

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a module's names are dynamic
        return sys.modules[f"{NAME}._{name}"]


@dataclass
class LibraryFile:
    """What the loader in memory knows of a file.

    Args:
        imports: names that it links to.
        version: of its version resource.
        damaged: it cannot be loaded.
    """

    imports: Sequence[str] = ()
    version: str | None = None
    damaged: bool = False


@dataclass
class Registration:
    """A folder that was added to the loader in memory."""

    folders: list[str]
    folder: str

    def close(self) -> None:
        """Take the folder off again."""
        self.folders.remove(self.folder)


@dataclass
class MemoryLoader:
    """The Windows loader's documented rules, in memory, as the flags 0x1100 select them.

    A bare name is first compared with the loaded modules, whichever folder they are from;
    then come the folder of the library being loaded, the program's, the added ones and
    the system's. A full path makes a module of its own.

    Args:
        files: absolute path to what is there.
        program_folder: where the program lies.
        path: folders on PATH, which these flags do not search.
    """

    files: dict[str, LibraryFile] = field(default_factory=dict)
    program_folder: str = "/program"
    path: list[str] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    holds: dict[str, int] = field(default_factory=dict)
    library_type: Any = None

    def modules(self) -> list[str]:
        """See `_loader.Loader`."""
        return list(self.loaded)

    def module_path(self, name: str) -> str | None:
        """See `_loader.Loader`."""
        lower = name.lower()
        return next((each for each in self.loaded if base_name(each).lower() == lower), None)

    def open(self, path: str) -> Any:  # noqa: ANN401 - a type of the laid-out package
        """See `_loader.Loader`."""
        self._load(path)
        self.holds[path] = self.holds.get(path, 0) + 1
        return self.library_type(path, id(path))

    def release(self, library: Any) -> None:  # noqa: ANN401 - likewise
        """See `_loader.Loader`."""
        self.holds[library.path] -= 1
        if not self.holds[library.path]:
            self.loaded.remove(library.path)

    def add_folder(self, folder: str) -> Registration:
        """See `_loader.Loader`."""
        self.added.append(folder)
        return Registration(self.added, folder)

    def file_version(self, path: str) -> str | None:
        """See `_loader.Loader`."""
        return self.files[path].version

    def system_folders(self) -> list[str]:
        """See `_loader.Loader`."""
        return ["/windows/system32", *self.path]

    def opens_bare_names(self) -> bool:
        """See `_loader.Loader`."""
        return False

    def _load(self, path: str) -> None:
        if path in self.loaded:
            return
        file = self.files.get(path)
        if file is None:
            raise OSError(126, f"{path}: not found")
        if file.damaged:
            raise OSError(193, f"{path}: damaged")
        for name in file.imports:
            if self.module_path(name) is None:
                self._load(self._find(name, path))
        self.loaded.append(path)

    def _find(self, name: str, importer: str) -> str:
        folders = [importer.rsplit("/", 1)[0], self.program_folder, *self.added]
        for folder in [*folders, "/windows/system32"]:
            if f"{folder}/{name}" in self.files:
                return f"{folder}/{name}"
        raise OSError(126, f"{importer}: {name} not found")


def base_name(path: str) -> str:
    """Take the last component of a path."""
    return path.rsplit("/", 1)[-1]
