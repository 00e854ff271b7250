"""Windows for tests: Wine and a real Windows Python, or Windows itself.

A test that needs them is skipped, with the reason, where they are not; with
CUDNN_BUNDLER_REQUIRE_WINE=1 it fails instead, so that CI cannot skip in silence.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NoReturn

import pytest

from bundler.names import Platform
from bundler.smoke.host import Host, NotRun
from bundler.smoke.hosts import find_host
from bundler.smoke.windows_python import find_windows_python
from tests.wine.windows import Interpreter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def not_here(reason: str) -> NoReturn:
    """Skip the test, or fail it where it must run."""
    if os.environ.get("CUDNN_BUNDLER_REQUIRE_WINE") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def windows_host() -> Iterator[Host]:
    """Give a host for windows-x86_64, up for the whole session."""
    host = find_host(Platform.WINDOWS_X86_64, os.environ)
    if isinstance(host, NotRun):
        not_here(host.reason)
    with host:
        yield host


@pytest.fixture(scope="session")
def windows_python(windows_host: Host) -> Path:
    """Give a Windows `python.exe` that has pip and venv."""
    del windows_host
    python = find_windows_python(os.environ)
    if isinstance(python, NotRun):
        not_here(python.reason)
    return python


@pytest.fixture(scope="session")
def interpreter(windows_host: Host, windows_python: Path) -> Interpreter:
    """Give a Windows Python, ready to run snippets."""
    return Interpreter(windows_host, windows_python)
