"""Windows for tests: Wine and a real Windows Python, or Windows itself.

A test that needs them is skipped, with the reason, where they are not; with
CUDNN_BUNDLER_REQUIRE_WINE=1 it fails instead, so that CI cannot skip in silence.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from bundler.names import Platform
from bundler.smoke.host import CompletedRun, Host, NotRun
from bundler.smoke.windows_python import find_windows_python
from bundler.smoke.wine import find_host

FIXTURES = Path(__file__).parents[1] / "fixtures" / "cudnn8"
ACTIVATION = Path(__file__).parents[2] / "bundler" / "resources" / "activation"
PACKAGE = "cudnn_runtime_cu11"
SWITCH = PACKAGE.upper()
LOAD_ORDER = (
    "cudnn_ops_infer64_8.dll",
    "cudnn_adv_infer64_8.dll",
    "cudnn_cnn_infer64_8.dll",
    "cudnn_ops_train64_8.dll",
    "cudnn_adv_train64_8.dll",
    "cudnn_cnn_train64_8.dll",
    "cudnn64_8.dll",
)


def not_here(reason: str) -> None:
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
    else:
        with host:
            yield host


@pytest.fixture(scope="session")
def windows_python(windows_host: Host) -> Path:
    """Give a Windows `python.exe` that has pip and venv."""
    del windows_host
    python = find_windows_python(os.environ)
    if isinstance(python, NotRun):
        not_here(python.reason)
        raise AssertionError
    return python


@dataclass(frozen=True)
class Interpreter:
    """A Windows Python to run snippets with.

    Args:
        host: where it runs.
        program: its `python.exe`.
    """

    host: Host
    program: Path

    def run(
        self,
        *arguments: str,
        environment: dict[str, str] | None = None,
        cwd: Path | None = None,
    ) -> CompletedRun:
        """Run Python with arguments, speaking UTF-8, isolated from its surroundings."""
        argv = [self.host.path_argument(self.program), "-I", "-X", "utf8", *arguments]
        return self.host.run(argv, environment=environment, cwd=cwd, timeout=120.0)

    def code(
        self,
        code: str,
        *,
        sites: Sequence[Path] = (),
        environment: dict[str, str] | None = None,
    ) -> CompletedRun:
        """Run a snippet with folders first on `sys.path`."""
        paths = [self.host.path_argument(site) for site in sites]
        prelude = f"import sys; sys.path[:0] = {paths!r}\n"
        return self.run("-c", prelude + code, environment=environment)

    def answer(
        self,
        code: str,
        *,
        sites: Sequence[Path] = (),
        environment: dict[str, str] | None = None,
    ) -> object:
        """Run a snippet that ends with success and prints one JSON document last."""
        run = self.code(code, sites=sites, environment=environment)
        assert run.exit_code == 0, run.stderr
        return json.loads(run.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def interpreter(windows_host: Host, windows_python: Path) -> Interpreter:
    """Give a Windows Python, ready to run snippets."""
    return Interpreter(windows_host, windows_python)


def cudnn_folder(version: str) -> Path:
    """Name the folder of a stand-in cuDNN."""
    return FIXTURES / version


def lay_package(site: Path, libraries: Path, *, needs: Sequence[dict[str, object]] = ()) -> Path:
    """Lay the import package out as an installed wheel has it.

    Args:
        site: the folder to import it from; it is made.
        libraries: a flat folder of the seven libraries, named by their version.
        needs: run-time needs for the lock.

    Returns:
        The package's folder.
    """
    package = site / PACKAGE
    shutil.copytree(ACTIVATION, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "bin").mkdir()
    files = []
    for name in LOAD_ORDER:
        data = (libraries / name).read_bytes()
        (package / "bin" / name).write_bytes(data)
        files.append(
            {
                "path": f"bin/{name}",
                "size": len(data),
                "sha256": hashlib.sha256(data).hexdigest(),
                "role": "runtime",
                "library": {"file_version": libraries.name},
            }
        )
    lock = {
        "schema": 1,
        "identity": {"version": libraries.name, "cuda": "11", "platform": "windows-x86_64"},
        "files": files,
        "load_order": LOAD_ORDER,
        "needs": list(needs),
    }
    (package / "cudnn.lock.json").write_text(json.dumps(lock), encoding="utf-8")
    return package
