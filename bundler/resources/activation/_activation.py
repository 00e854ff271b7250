"""Activation: make the libraries of this package the ones that this process uses.

1. Refuse when another copy already has their names.
2. Load what they need, where it can be found.
3. Register the folder for modules that link to them.
4. Load each by full path, in the order of the lock.
5. Ask the loader where each came from, and refuse anything that is not this package.

Nothing is written to `os.environ`, and no setting of the whole process is changed.
"""

from __future__ import annotations

import os
import threading
import warnings
from dataclasses import dataclass
from typing import Callable

from ._errors import ActivationError, ConflictError, DamagedError
from ._loader import Cookie, Library, Loader, is_inside
from ._lock import REINSTALL, Lock
from ._needs import NeedResolver, ResolvedNeed, Surroundings

_OFF = ("off", "0", "false", "no")


@dataclass(frozen=True)
class Activation:
    """What activation did.

    Args:
        folder: the library folder of this package.
        modules: library name to the path it was loaded from.
        adopted: libraries of another copy that are used instead, name to path.
        needs: what became of each run-time need.
        not_loaded: libraries that could not be loaded for want of a need, with the cause.
    """

    folder: str
    modules: dict[str, str]
    adopted: dict[str, str]
    needs: tuple[ResolvedNeed, ...]
    not_loaded: dict[str, str]

    @property
    def missing(self) -> tuple[ResolvedNeed, ...]:
        """The needs without which cuDNN will fail."""
        return tuple(need for need in self.needs if need.is_missing)


@dataclass(frozen=True)
class Package:
    """The package as it is installed.

    Args:
        name: what it is imported as.
        folder: where its modules lie.
        lock: what it holds.
        surroundings: of the process that imports it.
    """

    name: str
    folder: str
    lock: Lock
    surroundings: Surroundings

    @property
    def library_folder(self) -> str:
        """Where the libraries lie."""
        return os.path.join(self.folder, "bin" if self.lock.is_windows else "lib")

    @property
    def switch(self) -> str:
        """The environment variable that turns activation off."""
        return self.name.upper().replace(".", "_")

    @property
    def is_off(self) -> bool:
        """Say whether the user wants no activation at import."""
        return self.surroundings.environment.get(self.switch, "").strip().lower() in _OFF

    @property
    def adopts(self) -> bool:
        """Say whether another copy may serve instead of this one."""
        value = self.surroundings.environment.get(f"{self.switch}_CONFLICT", "")
        return value.strip().lower() == "adopt"


class Activator:
    """Activates a package once, whichever thread asks.

    Args:
        package: what to activate.
        make_loader: gives the loader of this process.
    """

    def __init__(self, package: Package, make_loader: Callable[[], Loader]) -> None:
        self._package = package
        self._make_loader = make_loader
        self._mutex = threading.RLock()
        self._activation: Activation | None = None
        self._opened: list[Library] = []
        self._cookie: Cookie | None = None

    def activate(self) -> Activation:
        """Activate, or say again what activation did."""
        with self._mutex:
            if self._activation is None:
                self._activation = self._activate(self._make_loader())
            return self._activation

    def deactivate(self) -> None:
        """Undo what can be undone."""
        with self._mutex:
            if self._activation is not None:
                self._activation = None
                self._undo(self._make_loader())

    def renew_mutex(self) -> None:
        """Forget who held the lock: after a fork, that thread does not exist."""
        self._mutex = threading.RLock()

    def _activate(self, loader: Loader) -> Activation:
        foreign = self._foreign(loader)
        if foreign:
            return self._settle(foreign, loader)
        self._require_files()
        folder, lock = self._package.library_folder, self._package.lock
        resolver = NeedResolver(lock, folder, self._package.surroundings, loader)
        try:
            needs = resolver.resolve()
            self._opened += resolver.opened
            self._cookie = loader.add_folder(folder)
            may_fail = any(need.is_missing for need in needs)
            not_loaded = self._load_payload(loader, may_fail=may_fail)
            modules = self._proven_modules(loader, not_loaded)
        except BaseException:
            self._undo(loader)
            raise
        return Activation(folder, modules, {}, needs, not_loaded)

    def _foreign(self, loader: Loader) -> dict[str, str]:
        found = {name: loader.module_path(name) for name in self._package.lock.load_order}
        folder = self._package.library_folder
        return {name: path for name, path in found.items() if path and not is_inside(path, folder)}

    def _settle(self, foreign: dict[str, str], loader: Loader) -> Activation:
        lines = [
            f"{name} {loader.file_version(path) or '(version unknown)'} from {path}"
            for name, path in foreign.items()
        ]
        name, version = self._package.name, self._package.lock.version
        conflict = ConflictError(
            f"{name} cannot provide cuDNN {version}: another copy is already in this process",
            "; ".join(lines),
            f"import {name} before whatever loaded that copy, remove one of the two, "
            f"or set {self._package.switch}_CONFLICT=adopt to use that copy",
        )
        if not self._package.adopts:
            raise conflict
        # All or nothing: libraries of both copies in one process would be a silent mix.
        warnings.warn(f"adopted: {conflict.reason}", RuntimeWarning, stacklevel=5)
        return Activation(self._package.library_folder, {}, foreign, (), {})

    def _require_files(self) -> None:
        folder = self._package.library_folder
        names = self._package.lock.load_order
        missing = [name for name in names if not os.path.isfile(os.path.join(folder, name))]
        if missing:
            raise DamagedError(
                f"{folder} lacks {', '.join(missing)}",
                "the installation is incomplete, or a security program removed the files",
                REINSTALL,
            )

    def _load_payload(self, loader: Loader, *, may_fail: bool) -> dict[str, str]:
        failed: dict[str, str] = {}
        for name in self._package.lock.load_order:
            path = os.path.join(self._package.library_folder, name)
            try:
                self._opened.append(loader.open(path))
            except OSError as error:
                failed[name] = str(error)
        if failed and not may_fail:
            raise ActivationError(
                f"cannot load {', '.join(failed)}",
                "; ".join(failed.values()),
                f"run python -m {self._package.name}; if files are damaged, {REINSTALL}",
            )
        return failed

    def _proven_modules(self, loader: Loader, not_loaded: dict[str, str]) -> dict[str, str]:
        folder = self._package.library_folder
        modules: dict[str, str] = {}
        strangers: list[str] = []
        for name in self._package.lock.load_order:
            if name in not_loaded:
                continue
            path = loader.module_path(name)
            if path is None or not is_inside(path, folder):
                strangers.append(f"{name} is {path or 'not in the process'}")
            else:
                modules[name] = path
        if strangers:
            raise ConflictError(
                f"the loader does not use the libraries of {self._package.name}",
                "; ".join(strangers),
                f"import {self._package.name} earlier, or remove the other copy",
            )
        return modules

    def _undo(self, loader: Loader) -> None:
        if self._cookie is not None:
            self._cookie.close()
            self._cookie = None
        while self._opened:
            loader.release(self._opened.pop())
