"""This package in this process: what it is, and the one activator of it."""

from __future__ import annotations

import os
import sys

from ._activation import Activator, Package
from ._loader import Loader, system_loader
from ._lock import read_lock
from ._needs import Surroundings

_folder = os.path.dirname(os.path.abspath(__file__))

PACKAGE = Package(
    name=__package__ or "",
    folder=_folder,
    lock=read_lock(_folder),
    surroundings=Surroundings(_folder, tuple(sys.path), sys.prefix, os.environ),
)


def process_loader() -> Loader:
    """Give the loader of this process, if it can load what this package holds."""
    return system_loader(is_windows=PACKAGE.lock.is_windows)


ACTIVATOR = Activator(PACKAGE, process_loader)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ACTIVATOR.renew_mutex)
