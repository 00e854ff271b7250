"""The SBOM: valid, complete, and the same bytes everywhere."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from bundler import __version__, pipeline
from bundler.artifacts import ArtifactKind, ArtifactOptions
from bundler.artifacts.conda_info import read_conda_info
from bundler.catalogue import Confidence, download_url
from bundler.lock import Lock, Need, NeedKind
from bundler.pipeline import BuildOptions, BuildResult
from bundler.progress import Progress
from bundler.recipe_data import builtin_catalogue
from bundler.sbom import sbom_bytes
from tests.sample_archives import LICENCE, NAME, SampleArchive, libraries
from tests.sample_builds import ingest_options

INFO = "cudnn_runtime_cu11-8.9.5.29.dist-info/"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> BuildResult:
    folder = tmp_path_factory.mktemp("sbom")
    archive = SampleArchive().write(folder / NAME)
    options = BuildOptions(
        ingest_options(archive, folder), folder / "dist", tuple(ArtifactKind), ArtifactOptions(),
        smoke=False,
    )  # fmt: skip
    return pipeline.build(options, {}, Progress())


@pytest.fixture(scope="module")
def document(built: BuildResult) -> dict[str, Any]:
    return parsed(built.lock)


def parsed(lock: Lock) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(sbom_bytes(lock))
    return found


def components(document: dict[str, Any]) -> dict[str, Any]:
    return {component["bom-ref"]: component for component in document["components"]}


def digest(component: dict[str, Any]) -> str:
    (found,) = component["hashes"]
    assert found["alg"] == "SHA-256"
    return str(found["content"])


def own_properties(component: dict[str, Any]) -> dict[str, str]:
    return {
        item["name"].removeprefix("cudnn-bundler:"): item["value"]
        for item in component["properties"]
    }


def depends_on(document: dict[str, Any], reference: str) -> list[str]:
    (found,) = (item for item in document["dependencies"] if item["ref"] == reference)
    return list(found.get("dependsOn", []))


def test_it_keeps_the_schema(built: BuildResult) -> None:
    validator = JsonStrictValidator(SchemaVersion.V1_6)

    assert validator.validate_str(sbom_bytes(built.lock).decode()) is None
    broken = sbom_bytes(built.lock).replace(b'"type": "library"', b'"type": "book"')
    assert validator.validate_str(broken.decode()) is not None


def test_all_artifacts_hold_the_same_bytes_and_so_does_the_file_beside(built: BuildResult) -> None:
    folder = built.artifacts[0].path.parent
    app_local, wheel, conda = (artifact.path for artifact in built.artifacts)
    with zipfile.ZipFile(app_local) as bundle, zipfile.ZipFile(wheel) as package:
        copies = {
            bundle.read("cudnn.sbom.cdx.json"),
            package.read(f"{INFO}sboms/cudnn.sbom.cdx.json"),
            read_conda_info(conda)["cudnn.sbom.cdx.json"],
            (folder / f"{built.lock.identity.stem}.sbom.cdx.json").read_bytes(),
        }

    assert copies == {sbom_bytes(built.lock)}


def test_every_file_is_there_with_its_hash(document: dict[str, Any]) -> None:
    found = components(document)

    for name, data in libraries().items():
        component = found[f"file:{name}"]
        assert component["type"] == "library"
        assert component["version"] == "8.9.5.29"
        assert component["supplier"]["name"] == "NVIDIA Corporation"
        assert digest(component) == hashlib.sha256(data).hexdigest()
    assert digest(found["file:LICENSE"]) == hashlib.sha256(LICENCE).hexdigest()
    assert {reference for reference in found if reference.startswith("file:")} == {
        "file:LICENSE", *(f"file:{name}" for name in libraries()),
    }  # fmt: skip


def test_the_probe_is_ours(document: dict[str, Any]) -> None:
    probes = [part for ref, part in components(document).items() if ref.startswith("probe:")]

    assert sorted(part["name"] for part in probes) == ["cudnn-check.dll", "cudnn-check.exe"]
    for part in probes:
        assert part["licenses"] == [{"license": {"id": "Apache-2.0"}}]
        assert len(digest(part)) == 64


def test_the_release_says_where_it_came_from(built: BuildResult, document: dict[str, Any]) -> None:
    release, archive = document["metadata"]["component"], built.lock.archive

    assert (release["name"], release["version"]) == ("cudnn", "8.9.5.29")
    assert release["licenses"] == [{"license": {"name": "NVIDIA cuDNN Software License Agreement"}}]
    assert release["purl"].startswith("pkg:generic/nvidia/cudnn@8.9.5.29?checksum=sha256:")
    assert "download_url" not in release["purl"]
    assert "cpe" not in release
    (origin,) = release["externalReferences"]
    assert (origin["type"], origin["url"]) == ("distribution", archive.name)
    assert digest(origin) == archive.sha256
    assert f"vouched for by sha256 ({archive.sha256})" in origin["comment"]


def test_an_archive_that_nvidia_lists_has_its_address(built: BuildResult) -> None:
    name = "cudnn-windows-x86_64-8.9.7.29_cuda11-archive.zip"
    entry = builtin_catalogue().by_file_name(name)
    assert entry is not None
    archive = replace(built.lock.archive, name=name, sha256=entry.sha256, catalogued=True)

    release = parsed(replace(built.lock, archive=archive))["metadata"]["component"]

    url = f"https://developer.download.nvidia.com/compute/cudnn/redist/cudnn/windows-x86_64/{name}"
    assert release["externalReferences"][0]["url"] == url
    assert f"download_url={url}" in release["purl"]


def test_only_nvidias_manifests_give_an_address() -> None:
    catalogue = builtin_catalogue()
    listed = {Confidence.PINNED_MANIFEST, Confidence.MANIFEST}

    for entry in catalogue.entries:
        assert (download_url(catalogue, entry.sha256) is not None) == (entry.confidence in listed)
    assert download_url(catalogue, "0" * 64) is None


def test_needs_are_named_and_marked_as_not_included(
    built: BuildResult, document: dict[str, Any]
) -> None:
    found = components(document)
    scopes = {"required": "required", "optional": "optional"}

    assert {f"need:{need.name}" for need in built.lock.needs} <= found.keys()
    for need in built.lock.needs:
        part = found[f"need:{need.name}"]
        assert part.get("scope") == scopes.get(need.kind)
        assert own_properties(part)["included"] == "false"
        assert part["description"].startswith("not included: ")
        assert "hashes" not in part


def test_a_companion_is_included(built: BuildResult) -> None:
    need = Need("cublas64_11.dll", ("cudnn64_8.dll",), NeedKind.REQUIRED, "r", "p", "artifact")

    part = components(parsed(replace(built.lock, needs=(need,))))["need:cublas64_11.dll"]

    assert own_properties(part)["included"] == "true"
    assert part["description"] == need.in_words


def test_dependencies_follow_imports_and_run_time_names(
    built: BuildResult, document: dict[str, Any]
) -> None:
    files = {file.name.lower(): file for file in built.lock.runtime_files}

    assert {f"file:{name}" for name in libraries()} <= set(depends_on(document, "cudnn"))
    linked = 0
    for file in files.values():
        assert file.library is not None
        wanted = {
            f"file:{files[name.lower()].name}"
            for name in file.library.imports
            if name.lower() in files
        }
        linked += len(wanted)
        needs = {f"need:{need.name}" for need in built.lock.needs if file.name in need.needed_by}
        assert set(depends_on(document, f"file:{file.name}")) == wanted | needs
    assert linked > 0


def test_it_names_tool_and_lock_and_no_clock(built: BuildResult, document: dict[str, Any]) -> None:
    metadata, sha256 = document["metadata"], hashlib.sha256(built.lock.to_bytes()).hexdigest()

    (tool,) = metadata["tools"]["components"]
    assert (tool["name"], tool["version"]) == ("cudnn-bundler", __version__)
    assert own_properties(metadata) == {"lock-sha256": sha256}
    assert "timestamp" not in metadata
    serial = uuid5(NAMESPACE_URL, f"urn:cudnn-bundler:lock:sha256:{sha256}")
    assert document["serialNumber"] == f"urn:uuid:{serial}"


def test_another_lock_is_another_document(built: BuildResult, document: dict[str, Any]) -> None:
    other: Lock = replace(built.lock, warnings=("something unusual",))

    assert parsed(other)["serialNumber"] != document["serialNumber"]


PRINT = """
import sys
from pathlib import Path
from bundler.lock_reading import parse_lock
from bundler.sbom import sbom_bytes
sys.stdout.buffer.write(sbom_bytes(parse_lock(Path(sys.argv[1]).read_bytes(), "lock")))
"""


@pytest.mark.parametrize("seed", ["1", "2"])
def test_another_process_gives_the_same_bytes(
    built: BuildResult, tmp_path: Path, seed: str
) -> None:
    lock = tmp_path / "lock.json"
    lock.write_bytes(built.lock.to_bytes())
    environment = {**os.environ, "PYTHONHASHSEED": seed}

    found = subprocess.run(
        [sys.executable, "-c", PRINT, str(lock)], env=environment, capture_output=True, check=True
    )

    assert found.stdout == sbom_bytes(built.lock)


def test_only_a_build_loads_the_library() -> None:
    command = "import sys, bundler.__main__; sys.exit('cyclonedx' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", command], check=False).returncode == 0
