"""Where the libraries come from that cuDNN opens by name: cuBLAS, NVRTC, zlib.

They are loaded beforehand by full path for the same reason as cuDNN's own parts. The
first place that has a loadable one wins; places are searched from the nearest (already in
the process) to the farthest (the system). Folders are listed with `os.scandir`, because a
path may hold the brackets that `glob` would interpret.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Iterator, Mapping

if TYPE_CHECKING:
    from ._loader import Library, Loader
    from ._lock import Lock, Need

_WINDOWS_FOLDERS = ("bin", "bin/x86_64", "bin/x64")
_LINUX_FOLDERS = ("lib", "lib64", "lib/x86_64", "lib/aarch64")
# cuBLAS links to cublasLt, so that one goes first.
_FIRST = ("cublaslt", "cublas")
# NVRTC opens this one by bare name from wherever it lies itself.
_BUILTINS = re.compile(r"nvrtc-builtins64_\d+\.dll|libnvrtc-builtins\.so\.[\d.]*", re.IGNORECASE)
# `nvidia/cu13` holds many libraries, and the wheels of CUDA 12 and before one each.
_WHEEL_OF_ALL = re.compile(r"cu\d+")


@dataclass(frozen=True)
class Surroundings:
    """What of the process decides where needs are searched.

    Args:
        package_folder: the import package.
        python_path: `sys.path`.
        prefix: `sys.prefix`.
        environment: `os.environ`, only read.
    """

    package_folder: str
    python_path: tuple[str, ...]
    prefix: str
    environment: Mapping[str, str]


@dataclass(frozen=True)
class ResolvedNeed:
    """What became of one need.

    Args:
        need: from the lock.
        path: what was loaded, or nothing.
        origin: in which kind of place it was found, in words.
        failures: candidates that were found and could not be loaded, with the cause.
    """

    need: Need
    path: str | None
    origin: str
    failures: tuple[str, ...]

    @property
    def is_missing(self) -> bool:
        """Say whether cuDNN will fail for want of it."""
        return self.path is None and self.need.kind == "required"

    @property
    def remedy(self) -> str:
        """How to provide it."""
        provider = self.need.provider
        source = f"from {provider}" if provider else "the library"
        return f"install {self.need.name} ({source}) or set CUDA_PATH to a CUDA toolkit that has it"


@dataclass(frozen=True)
class Place:
    """A folder to search, and what to call it."""

    folder: str
    origin: str


class NeedResolver:
    """Finds and loads what a lock needs.

    Args:
        lock: of this package.
        library_folder: where its libraries lie; companions may lie there too.
        surroundings: of this process.
        loader: of this process.
    """

    def __init__(
        self, lock: Lock, library_folder: str, surroundings: Surroundings, loader: Loader
    ) -> None:
        self._lock = lock
        self._library_folder = library_folder
        self._surroundings = surroundings
        self._loader = loader
        self.opened: list[Library] = []

    def resolve(self) -> tuple[ResolvedNeed, ...]:
        """Load every need that can be found; the driver is none, it is the system's own."""
        needs = [need for need in self._lock.needs if need.kind != "driver"]
        return tuple(self._resolve(need) for need in sorted(needs, key=_urgency))

    def _resolve(self, need: Need) -> ResolvedNeed:
        wanted = name_pattern(need.name, self._lock.cuda)
        for path in self._loader.modules():
            if wanted.fullmatch(os.path.basename(path)):
                return ResolvedNeed(need, path, "already loaded", ())
        failures: list[str] = []
        for candidate, origin in self._candidates(need, wanted):
            try:
                library = self._loader.open(candidate)
            except OSError as error:
                # Linux says no more than "not there" for a bare name: that is no failure.
                if os.path.isabs(candidate):
                    failures.append(str(error))
                continue
            self.opened.append(library)
            self._open_builtins(library.path)
            return ResolvedNeed(need, library.path, origin, tuple(failures))
        return ResolvedNeed(need, None, "", tuple(failures))

    def _candidates(self, need: Need, wanted: re.Pattern[str]) -> Iterator[tuple[str, str]]:
        for place in self._places():
            for name in _matching_files(place.folder, wanted):
                yield os.path.join(place.folder, name), place.origin
        if self._loader.opens_bare_names() and "%" not in need.name:
            yield need.name, "the system"

    def _places(self) -> Iterator[Place]:
        kinds = _WINDOWS_FOLDERS if self._lock.is_windows else _LINUX_FOLDERS
        yield Place(self._library_folder, "inside this package")
        for folder in nvidia_folders(self._surroundings, kinds):
            yield Place(folder, "NVIDIA's wheels")
        prefix = self._surroundings.prefix
        if os.path.isdir(os.path.join(prefix, "conda-meta")):
            inner = "Library/bin" if self._lock.is_windows else "lib"
            yield Place(_join(prefix, inner), "the conda environment")
        for toolkit in toolkit_folders(self._surroundings.environment, self._lock):
            for kind in kinds:
                yield Place(_join(toolkit, kind), "the CUDA toolkit")
        for folder in self._loader.system_folders():
            yield Place(folder, "the system")

    def _open_builtins(self, path: str) -> None:
        folder, name = os.path.split(path)
        if "nvrtc" not in name.lower():
            return
        for builtins in _matching_files(folder, _BUILTINS):
            try:
                self.opened.append(self._loader.open(os.path.join(folder, builtins)))
            except OSError:
                continue


def name_pattern(name: str, cuda: str) -> re.Pattern[str]:
    """Turn a file name or printf pattern of a need into a regular expression.

    The first number of a pattern begins with the CUDA version, so that the NVRTC of
    another CUDA beside it is not taken: `nvrtc64_%d_0.dll` with `11` fits
    `nvrtc64_112_0.dll` and not `nvrtc64_120_0.dll`.

    Args:
        name: a file name, or a pattern with `%d` in it.
        cuda: the CUDA label, such as `11` or `10.1`.
    """
    first, *others = name.split("%d")
    text = re.escape(first)
    for position, other in enumerate(others):
        text += (rf"{cuda.replace('.', '')}\d*" if position == 0 else r"\d+") + re.escape(other)
    return re.compile(text, re.IGNORECASE)


def nvidia_folders(surroundings: Surroundings, kinds: tuple[str, ...]) -> list[str]:
    """List the library folders of NVIDIA's wheels, those beside this package first.

    In a site the folders of one library each come before `cu13`, which has all of CUDA.

    Args:
        surroundings: of this process.
        kinds: folders inside a wheel's folder that may hold libraries.
    """
    sites = [os.path.dirname(surroundings.package_folder), *surroundings.python_path]
    folders = []
    for site in dict.fromkeys(os.path.abspath(each) for each in sites if each):
        nvidia = os.path.join(site, "nvidia")
        names = _names(nvidia, folders=True)
        for name in sorted(names, key=lambda each: _WHEEL_OF_ALL.fullmatch(each) is not None):
            folders += [_join(nvidia, name, kind) for kind in kinds]
    return [folder for folder in folders if os.path.isdir(folder)]


def toolkit_folders(environment: Mapping[str, str], lock: Lock) -> list[str]:
    """List CUDA toolkits: the chosen one, then those of the wanted CUDA, the newest first.

    Args:
        environment: holds `CUDA_PATH` and `CUDA_PATH_V11_8`, and their like.
        lock: says which CUDA is wanted.
    """
    wanted = int(lock.cuda.split(".")[0])
    versions: list[tuple[int, str]] = []
    for variable, folder in environment.items():
        match = re.fullmatch(r"CUDA_PATH_V(\d+)_(\d+)", variable, re.IGNORECASE)
        if match and folder and int(match[1]) == wanted:
            versions.append((int(match[2]), folder))
    newest_first = [folder for _, folder in sorted(versions, reverse=True)]
    folders = [environment.get("CUDA_PATH", ""), *newest_first]
    if not lock.is_windows:
        folders += [f"/usr/local/cuda-{wanted}", "/usr/local/cuda"]
    return [folder for folder in dict.fromkeys(folders) if os.path.isabs(folder)]


def _urgency(need: Need) -> int:
    plain = need.name.lower()
    plain = plain[3 * plain.startswith("lib") :]
    for position, prefix in enumerate(_FIRST):
        if plain.startswith(prefix):
            return position
    return len(_FIRST)


def _matching_files(folder: str, wanted: re.Pattern[str]) -> list[str]:
    names = [name for name in _names(folder, folders=False) if wanted.fullmatch(name)]
    # The newest of several first: a number that is longer is larger.
    return sorted(names, key=lambda name: (len(name), name), reverse=True)


def _names(folder: str, *, folders: bool) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(each.name for each in entries if each.is_dir() == folders)
    except OSError:
        return []


def _join(folder: str, *parts: str) -> str:
    return os.path.normpath(os.path.join(folder, *parts))
