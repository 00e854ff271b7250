"""A Windows Python to run snippets with, and stand-ins of cuDNN for it to load."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.unit.activation_package import lay_package

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bundler.smoke.host import CompletedRun, Host

FIXTURES = Path(__file__).parents[1] / "fixtures" / "cudnn8"
LOAD_ORDER = (
    "cudnn_ops_infer64_8.dll",
    "cudnn_adv_infer64_8.dll",
    "cudnn_cnn_infer64_8.dll",
    "cudnn_ops_train64_8.dll",
    "cudnn_adv_train64_8.dll",
    "cudnn_cnn_train64_8.dll",
    "cudnn64_8.dll",
)


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
    ) -> Any:  # noqa: ANN401 - JSON
        """Run a snippet that ends with success and prints one JSON document last."""
        run = self.code(code, sites=sites, environment=environment)
        assert run.exit_code == 0, run.stderr
        return json.loads(run.stdout.splitlines()[-1])


def cudnn_folder(version: str) -> Path:
    """Name the folder of a stand-in cuDNN."""
    return FIXTURES / version


def lay_windows_package(site: Path, version: str = "8.9.5.29", **changes: object) -> Path:
    """Lay the import package out with a stand-in cuDNN in it.

    Args:
        site: the folder to import it from; it is made.
        version: of the stand-in.
        changes: to the lock's document.

    Returns:
        The package's folder.
    """
    libraries = {name: (cudnn_folder(version) / name).read_bytes() for name in LOAD_ORDER}
    identity = {"version": version, "cuda": "11", "platform": "windows-x86_64"}
    return lay_package(site, libraries, version, identity=identity, **changes)
