"""The script that rebuilds the catalogue: deterministic, sorted, and able to say no."""

from __future__ import annotations

import hashlib
import json
import runpy
from pathlib import Path

import pytest

from bundler.catalogue import load_catalogue
from bundler.recipe_data import read_recipe, recipe_names

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "update_catalogue.py"))
MANIFEST = b'{\n    "release_date": "2024-03-15"\r\n}'


def _archive(version: str, **more: str | int) -> dict[str, object]:
    name = f"cudnn-windows-x86_64-{version}_cuda12-archive.zip"
    return {
        "version": version,
        "cuda": "12",
        "platform": "windows-x86_64",
        "filename": name,
        "sha256": hashlib.sha256(name.encode()).hexdigest(),
        "url_path": f"somewhere/{name}",
        "independent_sources": ["one", "two"],
        "confidence": "multi-source",
        **more,
    }


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Make a small source folder."""
    folder = tmp_path / "source"
    for name in ("redistrib", "redistrib_cuda"):
        (folder / name).mkdir(parents=True)
    (folder / "redistrib" / "redistrib_9.6.0.json").write_bytes(MANIFEST)
    (folder / "redistrib_cuda" / "redistrib_12.6.3.json").write_bytes(MANIFEST + b"\n")
    archives = [_archive("9.10.0.56"), _archive("9.9.0.52", md5="b" * 32, size=5)]
    _write(folder / "cudnn_archives.json", archives)
    conflict = {"filename": "a.zip", "rejected": "c" * 64, "rejected_is_hash_of": ["b.zip"]}
    _write(folder / "archive_hash_conflicts.json", {"conflicts": [conflict]})
    pins = {"cudnn/redistrib_9.6.0.json": {"sha256": "d" * 64, "saved_copy": "byte-exact"}}
    _write(folder / "manifest_pins.json", {"pins": pins})
    return folder


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def _run(source: Path, recipes: Path, *options: str) -> int:
    return int(SCRIPT["main"]([str(source), "--recipes", str(recipes), *options]))


def test_written_tables_load_and_are_sorted_as_numbers(source: Path, tmp_path: Path) -> None:
    assert _run(source, tmp_path / "recipes") == 0

    names = ("catalogue.json", "known_wrong_hashes.json", "manifest_pins.json")
    archives, wrong, pins = ((tmp_path / "recipes" / name).read_bytes() for name in names)
    catalogue = load_catalogue(archives, wrong_hashes=wrong, pins=pins)
    assert [str(entry.identity.version) for entry in catalogue.entries] == ["9.9.0.52", "9.10.0.56"]
    assert [(e.md5, e.size, e.sources) for e in catalogue.entries] == [
        ("b" * 32, 5, 2),
        (None, None, 2),
    ]
    assert [wrong.belongs_to for wrong in catalogue.wrong_hashes] == ["b.zip"]
    assert [pin.sha256 for pin in catalogue.pins] == ["d" * 64]
    assert archives.count(b"\n") == 4


def test_manifests_are_copied_byte_for_byte(source: Path, tmp_path: Path) -> None:
    _run(source, tmp_path)

    assert (tmp_path / "manifests/cudnn/redistrib_9.6.0.json").read_bytes() == MANIFEST
    assert (tmp_path / "manifests/cuda/redistrib_12.6.3.json").read_bytes() == MANIFEST + b"\n"


def test_order_of_the_source_does_not_matter(source: Path) -> None:
    before = SCRIPT["render"](source)
    archives = json.loads((source / "cudnn_archives.json").read_bytes())
    _write(source / "cudnn_archives.json", archives[::-1])

    assert SCRIPT["render"](source) == before


def test_check_writes_nothing_and_names_what_differs(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipes = tmp_path / "recipes"
    assert _run(source, recipes, "--check") == 1
    assert not recipes.exists()
    assert _run(source, recipes) == 0
    assert _run(source, recipes, "--check") == 0
    capsys.readouterr()

    (recipes / "manifests/cudnn/redistrib_9.6.0.json").write_bytes(MANIFEST + b"\n")
    (recipes / "manifests/cudnn/redistrib_1.0.0.json").write_bytes(MANIFEST)

    assert _run(source, recipes, "--check") == 1
    assert capsys.readouterr().err.splitlines() == [
        "manifests/cudnn/redistrib_9.6.0.json is not up to date",
        "manifests/cudnn/redistrib_1.0.0.json has no source",
    ]


@pytest.mark.parametrize("key", ["filename", "sha256"])
def test_a_name_or_hash_given_twice_is_refused(source: Path, key: str) -> None:
    one = _archive("9.9.0.52")
    other = _archive("9.10.0.56") | {key: one[key]}
    _write(source / "cudnn_archives.json", [one, other])

    with pytest.raises(SystemExit, match=f"{key} occurs more than once"):
        SCRIPT["render"](source)


def test_committed_tables_have_one_record_a_line_and_stay_small() -> None:
    for name in ("catalogue.json", "known_wrong_hashes.json", "manifest_pins.json"):
        data = read_recipe(name)
        (rows,) = json.loads(data).values()
        assert data.count(b"\n") == len(rows) + 2, name
        assert len(data) < 256 * 1024, name


def test_pinned_manifests_are_stored_as_nvidia_serves_them() -> None:
    """Fails when a checkout or an editor changes line ends."""
    pins = {
        row["file"]: row["sha256"] for row in json.loads(read_recipe("manifest_pins.json"))["pins"]
    }
    names = (*recipe_names("manifests/cudnn"), *recipe_names("manifests/cuda"))
    stored = {name.removeprefix("manifests/"): read_recipe(name) for name in names}

    pinned = pins.keys() & stored.keys()

    assert len(pinned) == 29
    assert {n for n in pinned if hashlib.sha256(stored[n]).hexdigest() != pins[n]} == set()
