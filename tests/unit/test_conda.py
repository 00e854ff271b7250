"""The conda package, from a sample archive, by each engine."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import io
import json
import os
import stat
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
import rattler
from rattler.exceptions import SolverError
from rattler.package import BuildString

from bundler.artifacts import ArtifactKind, ArtifactOptions, CondaEngine, conda
from bundler.artifacts.conda_info import read_conda_info
from bundler.artifacts.reading import read_artifact_lock
from bundler.compression import open_zstd_reader
from bundler.errors import MissingError, RefusedError, ReleaseError
from bundler.integrity import compare, find_files
from bundler.moment import EARLIEST
from bundler.pipeline import verify_artifact
from bundler.smoke.conda import make_channel
from tests.sample_archives import LICENCE, SampleArchive, libraries
from tests.sample_builds import SampleBuild, build_archive, build_sample

PROBE = "Library/bin/cudnn-check.exe"
LOCK = "Library/share/cudnn/cudnn.lock.json"
SBOM = "Library/share/cudnn/cudnn.sbom.cdx.json"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> SampleBuild:
    return build_sample(SampleArchive(), ArtifactKind.CONDA, tmp_path_factory.mktemp("conda"))


@dataclass(frozen=True)
class Inner:
    """What one of the two inner archives holds."""

    entries: list[tarfile.TarInfo]
    content: dict[str, bytes]


def inner(path: Path, prefix: str) -> Inner:
    with zipfile.ZipFile(path) as package:
        (name,) = (name for name in package.namelist() if name.startswith(prefix))
        with open_zstd_reader(io.BytesIO(package.read(name))) as stream:
            data = stream.read()
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        entries = tar.getmembers()
        content = {e.name: file.read() for e in entries if (file := tar.extractfile(e))}
    return Inner(entries, content)


def document(path: Path, name: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(read_conda_info(path)[name])
    return found


def test_its_name_says_the_content(built: SampleBuild) -> None:
    path = built.artifact.path
    digest = hashlib.sha256()
    for name, data in sorted(inner(path, "pkg-").content.items()):
        digest.update(f"{hashlib.sha256(data).hexdigest()}  {name}\n".encode())

    assert path.parent.name == "win-64"
    assert path.name == f"cudnn-8.9.5.29-cuda11_{digest.hexdigest()[:8]}_0.conda"


def test_the_zip_is_in_the_order_that_readers_expect(built: SampleBuild) -> None:
    stem = built.artifact.path.name.removesuffix(".conda")
    with zipfile.ZipFile(built.artifact.path) as package:
        assert package.namelist() == [
            "metadata.json",
            f"pkg-{stem}.tar.zst",
            f"info-{stem}.tar.zst",
        ]
        assert {info.compress_type for info in package.infolist()} == {zipfile.ZIP_STORED}
        assert json.loads(package.read("metadata.json")) == {"conda_pkg_format_version": 2}


def test_it_installs_the_archives_bytes_and_nothing_superfluous(built: SampleBuild) -> None:
    content = inner(built.artifact.path, "pkg-").content

    names = {f"Library/bin/{name}": data for name, data in libraries().items()}
    assert content.keys() == names.keys() | {PROBE, LOCK, SBOM}
    assert {name: content[name] for name in names} == names
    assert content[LOCK] == built.lock.to_bytes()


@pytest.mark.parametrize("prefix", ["pkg-", "info-"])
def test_the_inner_archives_say_nothing_of_the_builder(built: SampleBuild, prefix: str) -> None:
    entries = inner(built.artifact.path, prefix).entries

    assert [entry.name for entry in entries] == sorted(entry.name for entry in entries)
    assert {(e.uid, e.gid, e.uname, e.gname, e.mtime) for e in entries} == {
        (0, 0, "", "", EARLIEST)
    }
    assert {entry.name: entry.mode for entry in entries} == {
        entry.name: 0o755 if entry.name == PROBE else 0o644 for entry in entries
    }


def test_info_is_complete(built: SampleBuild) -> None:
    info = read_conda_info(built.artifact.path)

    assert info.keys() == {
        "about.json", "cudnn.lock.json", "cudnn.sbom.cdx.json", "files", "index.json",
        "licenses/LICENSE", "paths.json", "run_exports.json",
    }  # fmt: skip
    assert info["licenses/LICENSE"] == LICENCE
    assert info["cudnn.lock.json"] == built.lock.to_bytes()
    assert json.loads(info["run_exports.json"]) == {"weak": ["cudnn >=8.9.5.29,<9.0a0"]}
    assert json.loads(info["about.json"]).keys() == {"home", "license", "summary"}


def test_paths_and_files_are_true(built: SampleBuild) -> None:
    content = inner(built.artifact.path, "pkg-").content
    info = read_conda_info(built.artifact.path)

    assert info["files"].decode().splitlines() == sorted(content)
    assert json.loads(info["paths.json"]) == {
        "paths_version": 1,
        "paths": [
            {
                "_path": name,
                "path_type": "hardlink",
                "sha256": hashlib.sha256(content[name]).hexdigest(),
                "size_in_bytes": len(content[name]),
            }
            for name in sorted(content)
        ],
    }


def test_the_index(built: SampleBuild) -> None:
    index = document(built.artifact.path, "index.json")
    name, version, build = built.artifact.path.name.removesuffix(".conda").rsplit("-", 2)

    assert (index["name"], index["version"], index["build"]) == (name, version, build)
    assert (index["subdir"], index["platform"], index["arch"]) == ("win-64", "win", "x86_64")
    assert index["depends"] == []
    assert index["constrains"] == ["__cuda >=11", "cuda-version >=11,<12", "libcudnn <0.0a0"]
    assert index["timestamp"] == EARLIEST * 1000


def test_what_is_read_back_equals_the_lock(built: SampleBuild) -> None:
    path = built.artifact.path

    assert read_artifact_lock(ArtifactKind.CONDA, path) == built.lock
    assert verify_artifact(path, None) == built.lock


async def install(channel: Path, prefix: Path, cuda: str | None) -> None:
    """Install for Windows, on a machine with this CUDA driver or none."""
    platform = rattler.Subdir("win-64")
    virtual = [] if cuda is None else [
        rattler.GenericVirtualPackage(
            rattler.PackageName("__cuda"), rattler.Version(cuda), BuildString("0"))
    ]  # fmt: skip
    records = await rattler.solve(
        [rattler.Channel(channel.as_uri())], ["cudnn"],
        platforms=[platform, rattler.Subdir("noarch")], virtual_packages=virtual,
    )  # fmt: skip
    cache = prefix.with_name("cache")
    await rattler.install(records, prefix, cache_dir=cache, platform=platform, show_progress=False)


@pytest.mark.parametrize("cuda", [None, "11.0", "11.8", "12.4"])
def test_it_installs_for_windows(built: SampleBuild, cuda: str | None, tmp_path: Path) -> None:
    make_channel(built.artifact.path, tmp_path / "channel")

    asyncio.run(install(tmp_path / "channel", tmp_path / "prefix", cuda))

    assert compare(built.lock, find_files(tmp_path / "prefix" / "Library" / "bin")) == []
    assert (tmp_path / "prefix" / LOCK).read_bytes() == built.lock.to_bytes()


def test_an_older_driver_is_refused_by_the_solver(built: SampleBuild, tmp_path: Path) -> None:
    make_channel(built.artifact.path, tmp_path / "channel")

    with pytest.raises(SolverError, match="__cuda"):
        asyncio.run(install(tmp_path / "channel", tmp_path / "prefix", "10.2"))


def test_another_content_has_another_build_string(built: SampleBuild, tmp_path: Path) -> None:
    changes = {"include/extra.h": b"1\n"}  # not installed, yet the lock lists it
    other = build_sample(SampleArchive(changes=changes), ArtifactKind.CONDA, tmp_path)

    assert other.artifact.path.name != built.artifact.path.name


def test_another_level_changes_the_bytes_and_nothing_else(
    built: SampleBuild, tmp_path: Path
) -> None:
    options = ArtifactOptions(conda_level=19)
    other = build_sample(SampleArchive(), ArtifactKind.CONDA, tmp_path, options)

    assert other.artifact.path.name == built.artifact.path.name
    assert other.artifact.size < built.artifact.size
    for prefix in ("pkg-", "info-"):
        assert inner(other.artifact.path, prefix).content == (
            inner(built.artifact.path, prefix).content
        )


@pytest.fixture(scope="module")
def by_rattler(tmp_path_factory: pytest.TempPathFactory) -> SampleBuild:
    options = ArtifactOptions(conda_engine=CondaEngine.RATTLER_BUILD)
    folder = tmp_path_factory.mktemp("rattler-build")
    return build_sample(SampleArchive(), ArtifactKind.CONDA, folder, options)


def test_rattler_build_makes_the_same_package(built: SampleBuild, by_rattler: SampleBuild) -> None:
    ours, theirs = built.artifact.path, by_rattler.artifact.path

    assert theirs.name == ours.name
    assert inner(theirs, "pkg-").content == inner(ours, "pkg-").content
    for name in ("paths.json", "run_exports.json", "about.json"):
        assert document(theirs, name) == document(ours, name)
    assert document(theirs, "index.json") | {"timestamp": 0} == (
        document(ours, "index.json") | {"timestamp": 0}
    )
    assert read_conda_info(theirs)["licenses/LICENSE"] == LICENCE
    assert verify_artifact(theirs, None) == built.lock


def test_rattler_builds_package_names_no_folder_of_the_builder(by_rattler: SampleBuild) -> None:
    folder = str(by_rattler.archive.parent).encode()

    for name, data in read_conda_info(by_rattler.artifact.path).items():
        assert folder not in data, name


def test_rattler_builds_package_may_be_served(by_rattler: SampleBuild) -> None:
    mode = by_rattler.artifact.path.stat().st_mode

    assert stat.S_IMODE(mode) == 0o644
    assert not [entry for entry in by_rattler.artifact.path.parents[1].iterdir()
                if entry.name.startswith(".")]  # fmt: skip


def test_two_packages_of_one_release_do_not_clash(tmp_path: Path) -> None:
    archive = SampleArchive().write(tmp_path / "archive.zip")
    engines = (CondaEngine.NATIVE, CondaEngine.RATTLER_BUILD, CondaEngine.NATIVE)

    made = [
        build_archive(
            archive,
            ArtifactKind.CONDA,
            tmp_path / f"out{number}",
            ArtifactOptions(conda_engine=engine),
        ).artifact
        for number, engine in enumerate(engines)
    ]

    assert made[0].path.read_bytes() == made[2].path.read_bytes()


def test_a_full_disk_is_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(conda, "open_zstd_writer", full)

    with pytest.raises(RefusedError, match="No space left"):
        build_sample(SampleArchive(), ArtifactKind.CONDA, tmp_path)

    assert [entry for entry in (tmp_path / "out").rglob("*") if entry.is_file()] == []


CONDA_BUILD = ArtifactOptions(conda_engine=CondaEngine.CONDA_BUILD)


def build_by_conda_build(folder: Path) -> SampleBuild:
    return build_sample(SampleArchive(), ArtifactKind.CONDA, folder, CONDA_BUILD)


def test_an_absent_conda_build_is_named_with_the_way_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(MissingError, match="no conda-build on PATH") as caught:
        build_by_conda_build(tmp_path)

    assert caught.value.exit_code == 6
    assert "Miniforge" in caught.value.next_step
    assert list((tmp_path / "out").rglob("*")) == []


FAKE = """\
#!{python}
import json, os, sys
from pathlib import Path
arguments = sys.argv[1:]
recipe = Path(arguments[-1])
output = Path(arguments[arguments.index("--output-folder") + 1])
variants = json.loads(arguments[arguments.index("--variants") + 1])
payload = recipe / "../payload"
seen = {{
    "arguments": arguments,
    "meta": (recipe / "meta.yaml").read_text(),
    "payload": sorted(p.relative_to(payload).as_posix() for p in payload.rglob("*") if p.is_file()),
    "executable": os.access(payload / "prefix/{probe}", os.X_OK),
}}
Path({seen!r}).write_text(json.dumps(seen))
{ending}
"""
WRITE = """\
name = f"cudnn-{variants['cudnn_version']}-{variants['build_string']}.conda"
(output / "win-64").mkdir(parents=True)
(output / "win-64" / name).write_bytes(b"made by conda-build")
"""


def put_on_path(folder: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a program that notes how it was called."""
    seen, program = folder / "seen.json", folder / "programs" / "conda-build"
    program.parent.mkdir()
    program.write_text(
        FAKE.format(python=sys.executable, probe=PROBE, seen=str(seen), ending=ending)
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return seen


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script")
def test_conda_build_gets_the_recipe_and_the_payload(
    built: SampleBuild, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen_path = put_on_path(tmp_path, WRITE, monkeypatch)

    made = build_by_conda_build(tmp_path)

    assert made.artifact.path.name == built.artifact.path.name
    assert made.artifact.path.read_bytes() == b"made by conda-build"
    seen = json.loads(seen_path.read_text())
    *options, _, variants, output_option, _, _ = seen["arguments"]
    assert options == [
        "--no-test", "--no-anaconda-upload", "--package-format", "conda", "--override-channels",
    ]  # fmt: skip
    assert output_option == "--output-folder"
    values = json.loads(variants)
    assert (values["target_platform"], values["cudnn_version"]) == ("win-64", "8.9.5.29")
    assert set(seen["payload"]) == {
        "LICENSE", f"prefix/{PROBE}", f"prefix/{LOCK}", f"prefix/{SBOM}",
        *(f"prefix/Library/bin/{name}" for name in libraries()),
    }  # fmt: skip
    assert seen["executable"]
    assert "{{ build_string }}" in seen["meta"]


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a script")
@pytest.mark.parametrize(
    ("ending", "why"),
    [
        ("sys.exit('no space for the build')", "no space for the build"),
        ("", "it made nothing instead of cudnn-8.9.5.29-cuda11_"),
        (WRITE.replace('f"cudnn-', 'f"other-'), "it made ['other-8.9.5.29-cuda11_"),
    ],
    ids=["it fails", "it makes nothing", "it makes another package"],
)
def test_a_conda_build_that_fails_is_quoted(
    ending: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_on_path(tmp_path, ending, monkeypatch)

    with pytest.raises(ReleaseError, match="conda-build could not build") as caught:
        build_by_conda_build(tmp_path)

    assert why in caught.value.why
    assert list((tmp_path / "out").rglob("*")) == []
