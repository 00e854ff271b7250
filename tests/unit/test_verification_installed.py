"""What installers and users made of the artifacts, compared again later."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bundler.__main__ import main
from bundler.artifacts import ArtifactKind
from bundler.errors import ArchiveError, UsageError
from bundler.pipeline import verify
from bundler.verification import FaultKind, Verification
from tests.installations import INFO, PACKAGE, conda_install, pip_install, unzip, uv_install
from tests.sample_archives import LICENCE, SampleArchive, libraries
from tests.sample_builds import SampleBuild, build_sample

MAIN, OPS, CNN = "cudnn64_8.dll", "cudnn_ops_infer64_8.dll", "cudnn_cnn_train64_8.dll"
needs_uv = pytest.mark.skipif(importlib.util.find_spec("uv") is None, reason="there is no uv")


@dataclass(frozen=True)
class Installed:
    """A place that something was installed into, and the file of its lock."""

    folder: Path
    lock: Path
    archive: Path


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[ArtifactKind, SampleBuild]:
    folder = tmp_path_factory.mktemp("builds")
    return {kind: build_sample(SampleArchive(), kind, folder / kind) for kind in ArtifactKind}


@pytest.fixture(scope="module")
def lock_file(builds: dict[ArtifactKind, SampleBuild]) -> Path:
    (found,) = builds[ArtifactKind.APP_LOCAL].artifact.path.parent.glob("*.lock.json")
    return found


@pytest.fixture(scope="module")
def by_pip(
    builds: dict[ArtifactKind, SampleBuild], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Install into a virtual environment as Windows lays one out."""
    folder = tmp_path_factory.mktemp("venv")
    pip_install(builds[ArtifactKind.WHEEL].artifact.path, folder / "Lib" / "site-packages")
    return folder


@pytest.fixture(scope="module")
def by_rattler(
    builds: dict[ArtifactKind, SampleBuild], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("conda")
    conda_install(builds[ArtifactKind.CONDA].artifact.path, folder)
    return folder


def one(path: Path, lock: Path | None = None) -> Verification:
    (found,) = verify(path, lock)
    return found


def faults_of(found: Verification) -> list[tuple[str, FaultKind]]:
    return [(fault.where, fault.kind) for fault in found.faults]


def state_of(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
    }


def test_a_virtual_environment(by_pip: Path, builds: dict[ArtifactKind, SampleBuild]) -> None:
    before = state_of(by_pip)

    found = one(by_pip)

    assert found.what == "installed wheel"
    assert found.lock == builds[ArtifactKind.WHEEL].lock
    assert (found.faults, found.notes) == ((), ())
    assert found.compared[0] == "7 libraries and the licence"
    assert "files of RECORD" in found.compared[1]
    assert state_of(by_pip) == before
    assert list((by_pip / "Lib/site-packages" / PACKAGE / "__pycache__").iterdir())


@pytest.mark.parametrize("place", ["Lib/site-packages", f"Lib/site-packages/{PACKAGE}"])
def test_site_packages_and_the_import_package(by_pip: Path, place: str) -> None:
    assert one(by_pip / place).what == "installed wheel"
    assert one(by_pip / place).faults == ()


def test_a_virtual_environment_of_linux(by_pip: Path, tmp_path: Path) -> None:
    shutil.copytree(by_pip / "Lib", tmp_path / "lib" / "python3.11")
    (tmp_path / "lib64").symlink_to("lib")

    assert one(tmp_path).faults == ()


@needs_uv
def test_uv_installs_the_same(builds: dict[ArtifactKind, SampleBuild], tmp_path: Path) -> None:
    found = one(uv_install(builds[ArtifactKind.WHEEL].artifact.path, tmp_path / "site-packages"))

    assert found.faults == ()


@needs_uv
def test_uv_may_link_into_its_cache(
    builds: dict[ArtifactKind, SampleBuild], tmp_path: Path
) -> None:
    wheel = builds[ArtifactKind.WHEEL].artifact.path
    found = one(uv_install(wheel, tmp_path / "site-packages", "symlink"))

    assert {kind for _, kind in faults_of(found)} == {FaultKind.LINK}
    assert (f"{PACKAGE}/bin/{MAIN}", FaultKind.LINK) in faults_of(found)


def test_two_wheels_are_both_compared(by_pip: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(by_pip / "Lib/site-packages", site)
    shutil.copytree(site / PACKAGE, site / "cudnn_runtime_cu12")
    (site / "cudnn_runtime_cu12" / "bin" / OPS).unlink()

    first, second = verify(site, None)

    assert first.faults == ()
    assert faults_of(second) == [
        ("cudnn_runtime_cu12", FaultKind.MISSING),
        (f"cudnn_runtime_cu12/bin/{OPS}", FaultKind.MISSING),
    ]


def move(source: Path, target: Path) -> None:
    target.parent.mkdir(exist_ok=True)
    source.rename(target)


def nest(folder: Path) -> None:
    """Make `bin/bin` out of `bin`."""
    aside = folder.with_name("aside")
    folder.rename(aside)
    move(aside, folder / folder.name)


Damage = Callable[[Path], object]
WHEEL_DAMAGE: dict[str, tuple[Damage, list[tuple[str, FaultKind]]]] = {
    "a library changed": (
        lambda site: (site / PACKAGE / "bin" / OPS).write_bytes(b"x" * 4608),
        [(f"{PACKAGE}/bin/{OPS}", FaultKind.CHANGED)],
    ),
    "a library taken away": (
        lambda site: (site / PACKAGE / "bin" / OPS).unlink(),
        [(f"{PACKAGE}/bin/{OPS}", FaultKind.VANISHED)],
    ),
    "another library": (
        lambda site: (site / PACKAGE / "bin" / "cudnn64_9.dll").write_bytes(b"1"),
        [(f"{PACKAGE}/bin/cudnn64_9.dll", FaultKind.EXTRA)],
    ),
    "nested": (
        lambda site: nest(site / PACKAGE / "bin"),
        [(f"{PACKAGE}/bin/{name}", FaultKind.MISPLACED) for name in libraries()],
    ),
    "a module changed": (
        lambda site: (site / PACKAGE / "_loader.py").write_bytes(b"import os\n"),
        [(f"{PACKAGE}/_loader.py", FaultKind.CHANGED)],
    ),
    "a module more": (
        lambda site: (site / PACKAGE / "sitecustomize.py").write_bytes(b""),
        [(f"{PACKAGE}/sitecustomize.py", FaultKind.EXTRA)],
    ),
    "the licence gone": (
        lambda site: (site / INFO / "licenses/LICENSE").unlink(),
        [(f"{INFO}/licenses/LICENSE", FaultKind.VANISHED)],
    ),
    "the lock gone": (
        lambda site: (site / PACKAGE / "cudnn.lock.json").unlink(),
        [(f"{PACKAGE}/cudnn.lock.json", FaultKind.VANISHED)],
    ),
    "the lock changed": (
        lambda site: (site / PACKAGE / "cudnn.lock.json").write_bytes(b"{}"),
        [(f"{PACKAGE}/cudnn.lock.json", FaultKind.CHANGED)],
    ),
    "RECORD gone": (
        lambda site: (site / INFO / "RECORD").unlink(),
        [
            (f"{INFO}/RECORD", FaultKind.MISSING),
        ],
    ),
    "compiled files gone": (lambda site: shutil.rmtree(site / PACKAGE / "__pycache__"), []),
}  # fmt: skip


@pytest.mark.parametrize("damage", WHEEL_DAMAGE.values(), ids=WHEEL_DAMAGE.keys())
def test_an_installed_wheel_that_was_changed(
    damage: tuple[Damage, list[tuple[str, FaultKind]]], by_pip: Path, tmp_path: Path
) -> None:
    site = tmp_path / "site-packages"
    shutil.copytree(by_pip / "Lib/site-packages", site)
    change, expected = damage

    change(site)

    assert faults_of(one(site)) == expected


def test_a_module_of_another_version_is_named_where_record_agrees(
    by_pip: Path, tmp_path: Path
) -> None:
    """RECORD can be rewritten with the file; this tool's own copy cannot."""
    site = tmp_path / "site"
    shutil.copytree(by_pip / "Lib/site-packages", site)
    (site / PACKAGE / "_loader.py").write_bytes(b"import os\n")
    record = site / INFO / "RECORD"
    rows = record.read_text().splitlines()
    record.write_text("\n".join(
        f"{PACKAGE}/_loader.py,," if row.startswith(f"{PACKAGE}/_loader.py") else row
        for row in rows
    ))  # fmt: skip

    found = one(site)

    assert faults_of(found) == [
        (f"{PACKAGE}/_loader.py", FaultKind.CONTRADICTED),
        (f"{PACKAGE}/_loader.py", FaultKind.CHANGED),
    ]


def test_a_conda_prefix(by_rattler: Path, builds: dict[ArtifactKind, SampleBuild]) -> None:
    before = state_of(by_rattler / "prefix")
    found = one(by_rattler / "prefix")

    assert found.what == "conda prefix"
    assert found.lock == builds[ArtifactKind.CONDA].lock
    assert found.faults == ()
    assert found.compared[0] == "7 libraries"
    assert state_of(by_rattler / "prefix") == before


def test_a_prefix_with_a_wheel_too_is_both(by_rattler: Path, by_pip: Path, tmp_path: Path) -> None:
    shutil.copytree(by_rattler / "prefix", tmp_path / "prefix")
    shutil.copytree(by_pip / "Lib", tmp_path / "prefix" / "Lib")

    assert [found.what for found in verify(tmp_path / "prefix", None)] == [
        "conda prefix",
        "installed wheel",
    ]


PREFIX_DAMAGE: dict[str, tuple[Damage, list[tuple[str, FaultKind]]]] = {
    "changed": (
        lambda prefix: (prefix / "Library/bin" / CNN).write_bytes(b""),
        [(f"Library/bin/{CNN}", FaultKind.CHANGED)],
    ),
    "vanished": (
        lambda prefix: (prefix / "Library/bin/cudnn-check.exe").unlink(),
        [("Library/bin/cudnn-check.exe", FaultKind.VANISHED)],
    ),
    "extra": (
        lambda prefix: (prefix / "Library/bin/cudnn64_9.dll").write_bytes(b"1"),
        [("Library/bin/cudnn64_9.dll", FaultKind.EXTRA)],
    ),
    "others are none": (
        lambda prefix: (prefix / "Library/bin/cublas64_11.dll").write_bytes(b"1"),
        [],
    ),
    "misplaced": (
        lambda prefix: move(prefix / "Library/bin" / OPS, prefix / "Library/bin/bin" / OPS),
        [(f"Library/bin/{OPS}", FaultKind.MISPLACED)],
    ),
    "lock": (
        lambda prefix: (prefix / "Library/share/cudnn/cudnn.lock.json").unlink(),
        [("Library/share/cudnn/cudnn.lock.json", FaultKind.VANISHED)],
    ),
}


@pytest.mark.parametrize("damage", PREFIX_DAMAGE.values(), ids=PREFIX_DAMAGE.keys())
def test_a_prefix_that_was_changed(
    damage: tuple[Damage, list[tuple[str, FaultKind]]], by_rattler: Path, tmp_path: Path
) -> None:
    shutil.copytree(by_rattler / "prefix", tmp_path / "prefix")
    change, expected = damage

    change(tmp_path / "prefix")

    assert faults_of(one(tmp_path / "prefix")) == expected


def test_a_package_cache(by_rattler: Path) -> None:
    found = one(by_rattler / "cache")

    assert found.what == "conda package, unpacked as in a cache"
    assert found.faults == ()


def test_a_cached_package_that_was_changed(by_rattler: Path, tmp_path: Path) -> None:
    shutil.copytree(by_rattler / "cache", tmp_path / "cache")
    (package,) = (path for path in (tmp_path / "cache").iterdir() if path.is_dir())
    (package / "Library/bin" / OPS).unlink()
    (package / "info/licenses/LICENSE").write_bytes(b"")
    (package / "info/cudnn.lock.json").unlink()

    assert faults_of(one(package)) == [
        (f"Library/bin/{OPS}", FaultKind.VANISHED),
        ("info/licenses/LICENSE", FaultKind.CHANGED),
    ]


def test_another_makers_cudnn_in_a_prefix_is_not_recognised(tmp_path: Path) -> None:
    (tmp_path / "conda-meta").mkdir()
    document = {"name": "cudnn", "paths_data": {"paths": [{"_path": "Library/bin/cudnn64_8.dll"}]}}
    (tmp_path / "conda-meta" / "cudnn-8.9-0.json").write_text(json.dumps(document))

    with pytest.raises(UsageError, match="nothing is recognised"):
        verify(tmp_path, None)


@pytest.fixture
def application(builds: dict[ArtifactKind, SampleBuild], tmp_path: Path) -> Path:
    folder = unzip(builds[ArtifactKind.APP_LOCAL].artifact.path, tmp_path / "My Program")
    (folder / "program.exe").write_bytes(b"MZ")
    (folder / "plugins").mkdir()
    (folder / "plugins" / "cudnn64_7.dll").write_bytes(b"another program's")
    return folder


def test_a_bundle_beside_an_application(application: Path) -> None:
    found = one(application)

    assert found.what == "app-local bundle, unpacked beside other files"
    assert (found.faults, found.notes) == ((), ())
    assert found.compared == ("7 libraries and the licence", "13 files of SHA256SUMS")


def test_a_bundle_one_folder_down(application: Path) -> None:
    assert one(application.parent).place == str(application)


APPLICATION_DAMAGE: dict[str, tuple[Damage, list[tuple[str, FaultKind]]]] = {
    "vanished": (lambda folder: (folder / OPS).unlink(), [(OPS, FaultKind.VANISHED)]),
    "an older one": (
        lambda folder: (folder / OPS).write_bytes(libraries("8.5.0.96")[OPS]),
        [(OPS, FaultKind.CHANGED)],
    ),
    "another cuDNN": (
        lambda folder: (folder / "cudnn64_9.dll").write_bytes(b"1"),
        [("cudnn64_9.dll", FaultKind.EXTRA)],
    ),
    "too deep": (
        lambda folder: move(folder / OPS, folder / "bin" / OPS),
        [(OPS, FaultKind.MISPLACED)],
    ),
    "its case": (
        lambda folder: (folder / OPS).rename(folder / OPS.upper()),
        [(OPS, FaultKind.WRONG_CASE)],
    ),
    "no sums": (lambda folder: (folder / "SHA256SUMS").unlink(), []),
    "no lock": (
        lambda folder: (folder / "cudnn.lock.json").unlink(),
        [("cudnn.lock.json", FaultKind.VANISHED)],
    ),
}


@pytest.mark.parametrize("damage", APPLICATION_DAMAGE.values(), ids=APPLICATION_DAMAGE.keys())
def test_a_bundle_that_was_changed(
    damage: tuple[Damage, list[tuple[str, FaultKind]]], application: Path
) -> None:
    change, expected = damage

    change(application)

    assert faults_of(one(application)) == expected


def test_libraries_alone_need_a_lock(application: Path, lock_file: Path) -> None:
    for name in ("cudnn.lock.json", "SHA256SUMS", "LICENSE"):
        (application / name).unlink()

    with pytest.raises(UsageError, match="8 cuDNN libraries and no lock") as caught:
        verify(application, None)

    assert "--lock FILE" in caught.value.next_step
    assert one(application, lock_file).faults == ()


@pytest.fixture
def toolkit(builds: dict[ArtifactKind, SampleBuild], tmp_path: Path) -> Path:
    """Merge the archive into a toolkit as its guide says."""
    source = tree(builds, tmp_path / "unpacked")
    folder = tmp_path / "CUDA v11.8"
    for path in ("bin/nvcc.exe", "bin/cudart64_110.dll", "include/cuda.h", "lib/x64/cuda.lib",
                 "version.json"):  # fmt: skip
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(b"1")
    for name in ("bin", "include", "lib"):
        shutil.copytree(source / name, folder / name, dirs_exist_ok=True)
    return folder


def tree(builds: dict[ArtifactKind, SampleBuild], folder: Path) -> Path:
    (root,) = unzip(builds[ArtifactKind.WHEEL].archive, folder).iterdir()
    return root


def test_a_toolkit(toolkit: Path, lock_file: Path) -> None:
    found = one(toolkit, lock_file)

    assert found.what == "CUDA toolkit"
    assert found.faults == ()
    assert found.compared == ("7 runtime files", "1 import-library files", "2 header files")
    assert found.lock_origin == lock_file.name


TOOLKIT_DAMAGE: dict[str, tuple[Damage, list[tuple[str, FaultKind]]]] = {
    "nested": (
        lambda folder: move(folder / "bin" / OPS, folder / "bin/bin" / OPS),
        [(f"bin/{OPS}", FaultKind.MISPLACED)],
    ),
    "header of another": (
        lambda folder: (folder / "include/cudnn_version.h").write_bytes(b"#define CUDNN_MAJOR 7"),
        [("include/cudnn_version.h", FaultKind.CHANGED)],
    ),
    "older files left": (
        lambda folder: [
            (folder / path).write_bytes(b"1")
            for path in ("bin/cudnn64_7.dll", "include/cudnn_old.h", "lib/x64/cudnn64_7.lib")
        ],
        [
            ("bin/cudnn64_7.dll", FaultKind.EXTRA),
            ("include/cudnn_old.h", FaultKind.EXTRA),
            ("lib/x64/cudnn64_7.lib", FaultKind.EXTRA),
        ],
    ),
    "import library missing": (
        lambda folder: (folder / "lib/x64/cudnn.lib").unlink(),
        [("lib/x64/cudnn.lib", FaultKind.MISSING)],
    ),
    "import library where 8.5 has it": (
        lambda folder: (folder / "lib/x64/cudnn.lib").rename(folder / "lib/cudnn.lib"),
        [],
    ),
}


@pytest.mark.parametrize("damage", TOOLKIT_DAMAGE.values(), ids=TOOLKIT_DAMAGE.keys())
def test_a_toolkit_that_was_changed(
    damage: tuple[Damage, list[tuple[str, FaultKind]]], toolkit: Path, lock_file: Path
) -> None:
    change, expected = damage

    change(toolkit)

    assert faults_of(one(toolkit, lock_file)) == expected


def test_a_toolkit_with_the_archives_folder_in_it(
    toolkit: Path, lock_file: Path, builds: dict[ArtifactKind, SampleBuild]
) -> None:
    for name in libraries():
        (toolkit / "bin" / name).unlink()
    unzip(builds[ArtifactKind.WHEEL].archive, toolkit)

    found = one(toolkit, lock_file)

    assert faults_of(found) == [(f"bin/{name}", FaultKind.MISPLACED) for name in libraries()]
    assert "-archive/bin/cudnn64_8.dll" in found.faults[0].what


@pytest.mark.parametrize("with_root", [True, False], ids=["with its root", "without"])
def test_an_unpacked_archive(
    with_root: bool, builds: dict[ArtifactKind, SampleBuild], lock_file: Path, tmp_path: Path
) -> None:
    root = tree(builds, tmp_path / "unpacked")
    folder = tmp_path / "unpacked" if with_root else root

    found = one(folder, lock_file)

    assert found.what == "unpacked archive"
    assert found.faults == ()
    assert "1 licence files" in found.compared


def test_an_unpacked_archive_whose_bin_is_nested(
    builds: dict[ArtifactKind, SampleBuild], lock_file: Path, tmp_path: Path
) -> None:
    root = tree(builds, tmp_path / "unpacked")
    nest(root / "bin")

    found = faults_of(one(root, lock_file))

    assert found == [(f"bin/{name}", FaultKind.MISPLACED) for name in libraries()]


def test_an_archives_tree_needs_a_lock(
    builds: dict[ArtifactKind, SampleBuild], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="7 cuDNN libraries and no lock"):
        verify(tree(builds, tmp_path / "unpacked"), None)


@pytest.mark.parametrize("with_lock", [True, False])
def test_an_unrelated_folder(with_lock: bool, lock_file: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(LICENCE)

    with pytest.raises(UsageError, match="nothing is recognised") as caught:
        verify(tmp_path, lock_file if with_lock else None)

    assert "site-packages" in caught.value.why


def test_a_damaged_list_is_a_damaged_file(by_pip: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(by_pip / "Lib/site-packages", site)
    (site / INFO / "RECORD").write_text("../../evil,,\n")

    with pytest.raises(ArchiveError, match="RECORD is damaged"):
        verify(site, None)


def test_the_command_line_says_what_and_gives_one_document(
    application: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(application)]) == 0
    printed = capsys.readouterr()
    assert f"verified: {application}" in printed.out
    assert "7 libraries and the licence, 13 files of SHA256SUMS" in printed.out

    (application / OPS).unlink()
    (application / "cudnn64_9.dll").write_bytes(b"1")

    assert main(["verify", str(application), "--json"]) == 4
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert document["verified"] is False
    assert document["exit_code"] == 4
    assert [(f["where"], f["kind"]) for f in document["faults"]] == [
        (OPS, "vanished"),
        ("cudnn64_9.dll", "extra"),
    ]
    assert document["found"][0]["identity"]["version"] == "8.9.5.29"
    assert "antivirus" in printed.err
    assert "Protection history" in printed.err


def test_witnesses_of_archives_are_refused_here(
    application: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(application), "--sha256", "0" * 64]) == 2
    assert "vouch for an archive" in capsys.readouterr().err
