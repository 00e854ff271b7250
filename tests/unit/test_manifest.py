"""Manifests of every generation are read; every fault has its path inside the JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.errors import ArchiveError
from bundler.manifest import Manifest, is_authentic, parse_manifest, pinned_sha256
from bundler.recipe_data import builtin_catalogue, read_recipe, recipe_names
from tests.unit import manifest_bytes as made

if TYPE_CHECKING:
    from bundler.strict_json import JsonObject, JsonValue

STORED = (*recipe_names("manifests/cudnn"), *recipe_names("manifests/cuda"))
CATALOGUE = builtin_catalogue()


def _refused(data: bytes) -> ArchiveError:
    with pytest.raises(ArchiveError) as caught:
        parse_manifest(data)
    return caught.value


def _places(document: JsonObject) -> dict[str, str]:
    error = _refused(made.encoded(document))
    return {fault.where: fault.what for fault in error.faults}


@pytest.mark.parametrize("name", STORED)
def test_every_stored_manifest_parses_and_agrees_with_the_catalogue(name: str) -> None:
    manifest = parse_manifest(read_recipe(name))

    assert manifest.archives
    for archive in manifest.archives:
        if archive.component == "cudnn":
            entry = CATALOGUE.by_file_name(archive.file_name)
            assert entry is not None
            assert entry.sha256 == archive.sha256
            assert (entry.md5, entry.size) == (archive.md5, archive.size)
            assert entry.cuda == archive.cuda


def test_the_stored_manifests_are_as_many_as_were_collected() -> None:
    manifests = [parse_manifest(read_recipe(name)) for name in STORED]

    assert len([name for name in STORED if "/cudnn/" in name]) == 40
    assert len([name for name in STORED if "/cuda/" in name]) == 3
    assert sum(len(manifest.archives) for manifest in manifests) == 825
    assert sum(len(manifest.components) for manifest in manifests) == 221
    assert sum(is_authentic(manifest, CATALOGUE.pins) for manifest in manifests) == 29


@pytest.mark.parametrize(
    ("name", "component", "version", "path"),
    [
        ("cuda/redistrib_11.8.0", "libcublas", "11.11.3.6", "libcublas.windows-x86_64"),
        ("cuda/redistrib_12.6.3", "cuda_nvrtc", "12.6.85", "cuda_nvrtc.windows-x86_64"),
        ("cuda/redistrib_13.0.2", "cuda_cudart", "13.0.96", "cuda_cudart.windows-x86_64"),
        ("cudnn/redistrib_8.9.4.25", "cudnn", "8.9.4.25", "cudnn.windows-x86_64"),
        ("cudnn/redistrib_9.6.0", "cudnn", "9.6.0.74", "cudnn.windows-x86_64.cuda12"),
    ],
)
def test_a_known_archive_is_found_where_it_stands(
    name: str, component: str, version: str, path: str
) -> None:
    manifest = parse_manifest(read_recipe(f"manifests/{name}.json"))

    versions = {part.key: part.version for part in manifest.components}
    assert versions[component] == version
    assert path in {archive.json_path for archive in manifest.archives}


def test_first_generation_has_no_label_and_no_licence_path() -> None:
    document = made.manifest_object({made.WINDOWS: made.archive_fields(made.WINDOWS, "11")})
    document = made.changed(document, "release_label", None)
    document = made.changed(document, "release_product", None)
    document = made.changed(document, "cudnn/license_path", None)

    manifest = parse_manifest(made.encoded(document))

    assert (manifest.release_label, manifest.product) == (None, None)
    assert manifest.components[0].licence_path is None
    assert [archive.cuda for archive in manifest.archives] == ["11"]
    assert pinned_sha256(manifest, CATALOGUE.pins) is None


def test_irregular_platform_gives_both_its_archives() -> None:
    manifest = parse_manifest(made.encoded(made.irregular_9_27()))

    arm = [a for a in manifest.archives if a.platform == "windows-arm64"]
    assert [(a.cuda, a.json_path) for a in arm] == [
        ("13.4", "cudnn.windows-arm64"),
        ("13", "cudnn.windows-arm64.cuda13"),
    ]
    assert arm[0].sha256 != arm[1].sha256


def test_unknown_keys_that_hold_text_are_left_alone() -> None:
    document = made.changed(made.two_variants(), "release_note", "new")
    document = made.changed(document, "cudnn/homepage", "somewhere")
    document = made.changed(document, "cudnn/windows-x86_64/cuda11/sha512", "ab")

    assert len(parse_manifest(made.encoded(document)).archives) == 3


def test_a_byte_order_mark_is_tolerated_and_not_authentic() -> None:
    data = read_recipe("manifests/cudnn/redistrib_9.6.0.json")

    plain, marked = parse_manifest(data), parse_manifest(b"\xef\xbb\xbf" + data)

    assert marked.archives == plain.archives
    assert is_authentic(plain, CATALOGUE.pins)
    assert not is_authentic(marked, CATALOGUE.pins)
    assert pinned_sha256(marked, CATALOGUE.pins) == plain.sha256


CUDA11 = "cudnn/windows-x86_64/cuda11"
PATH = "cudnn/windows-x86_64/cudnn-windows-x86_64-8.9.5.29_cuda11-archive.zip"
_BAD: list[tuple[str, str, JsonValue, str, str]] = [
    ("date missing", "release_date", None, "release_date", "is missing"),
    ("date form", "release_date", "15 March", "release_date", "must be a date"),
    ("label type", "release_label", 9, "release_label", "must be a string, not a number"),
    ("label form", "release_label", "../9", "release_label", "must be a version"),
    ("component type", "cudnn", [], "cudnn", "must be an object, not an array"),
    ("component empty", "cudnn", {}, "cudnn.version", "is missing"),
    ("name missing", "cudnn/name", None, "cudnn.name", "is missing"),
    ("licence type", "cudnn/license", True, "cudnn.license", "must be a string, not true"),
    ("licence path", "cudnn/license_path", "../x", "cudnn.license_path", "must be a relative"),
    ("version form", "cudnn/version", "8.x", "cudnn.version", "must be a version"),
    ("variants type", "cudnn/cuda_variant", "11", "cudnn.cuda_variant", "must be an array"),
    ("variant type", "cudnn/cuda_variant", ["11", 12], "cudnn.cuda_variant[1]", "not a number"),
    ("platform type", "cudnn/linux-sbsa", "x", "cudnn.linux-sbsa", "not a string"),
    ("platform empty", "cudnn/linux-sbsa", {}, "cudnn.linux-sbsa", "holds neither"),
    ("variant name", "cudnn/linux-sbsa", {"hip6": {}}, "cudnn.linux-sbsa.hip6", "is not a CUDA"),
    ("variant no object", CUDA11, "x", "cudnn.windows-x86_64.cuda11", "must be an object"),
    ("hash missing", f"{CUDA11}/sha256", None, "{}.sha256", "is missing"),
    ("hash upper case", f"{CUDA11}/sha256", "A" * 64, "{}.sha256", "64 lower-case"),
    ("hash short", f"{CUDA11}/sha256", "a" * 63, "{}.sha256", "64 lower-case"),
    ("hash newline", f"{CUDA11}/sha256", "a" * 64 + "\n", "{}.sha256", "64 lower-case"),
    ("hash prefixed", f"{CUDA11}/sha256", "sha256sum" + "a" * 64, "{}.sha256", "64 lower-case"),
    ("md5 of sha form", f"{CUDA11}/md5", "a" * 64, "{}.md5", "32 lower-case"),
    ("size a number", f"{CUDA11}/size", 712, "{}.size", "must be a string, not a number"),
    ("size in words", f"{CUDA11}/size", "712 MB", "{}.size", "must be a decimal"),
    ("size negative", f"{CUDA11}/size", "-1", "{}.size", "must be a decimal"),
    ("size zero", f"{CUDA11}/size", "0", "{}.size", "must be a decimal"),
    ("size other digits", f"{CUDA11}/size", "\u0663\u0664", "{}.size", "'\\u0663\\u0664'"),
    ("size a float", f"{CUDA11}/size", 1.5, "{}.size", "must be a string, not a number"),
    ("traversal", f"{CUDA11}/relative_path", "cudnn/../../x.zip", "{}.relative_path", "below"),
    ("absolute", f"{CUDA11}/relative_path", "/etc/passwd", "{}.relative_path", "below"),
    ("drive", f"{CUDA11}/relative_path", "C:\\x.zip", "{}.relative_path", "below"),
    ("folder", f"{CUDA11}/relative_path", f"x/{PATH}", "{}.relative_path", "must be 'cudnn/windo"),
    (
        "other platform's folder",
        f"{CUDA11}/relative_path",
        PATH.replace("windows-x86_64/", "linux-sbsa/"),
        "{}.relative_path",
        "must be 'cudnn/windows-x86_64/...'",
    ),
    (
        "no archive name",
        f"{CUDA11}/relative_path",
        "cudnn/windows-x86_64/setup.exe",
        "{}.relative_path",
        "is not that of a redist archive",
    ),
    (
        "other version",
        f"{CUDA11}/relative_path",
        PATH.replace("5.29", "7.29"),
        "{}.relative_path",
        "says version 8.9.7.29, not 8.9.5.29",
    ),
    (
        "other variant",
        f"{CUDA11}/relative_path",
        PATH.replace("cuda11", "cuda10.2"),
        "{}.relative_path",
        "is not one for CUDA 11",
    ),
    (
        "other component's file",
        f"{CUDA11}/relative_path",
        PATH.replace("cudnn-w", "cublas-w"),
        "{}.relative_path",
        "of another component or platform",
    ),
]


@pytest.mark.parametrize(
    ("path", "value", "where", "what"), [row[1:] for row in _BAD], ids=[row[0] for row in _BAD]
)
def test_a_fault_is_named_by_its_place(path: str, value: JsonValue, where: str, what: str) -> None:
    document = made.changed(made.two_variants(), path, value)

    faults = _places(document)

    assert what in faults[where.format("cudnn.windows-x86_64.cuda11")]


def test_all_faults_are_listed_at_once() -> None:
    document = made.changed(made.two_variants(), f"{CUDA11}/sha256", "x")
    document = made.changed(document, "cudnn/windows-x86_64/cuda12/size", "x")
    document = made.changed(document, "release_date", None)

    assert set(_places(document)) == {
        "release_date",
        "cudnn.windows-x86_64.cuda11.sha256",
        "cudnn.windows-x86_64.cuda12.size",
    }


def test_one_file_name_with_two_hashes_is_a_contradiction() -> None:
    document = made.two_variants()
    twin = made.archive_fields(made.WINDOWS, "11", content=b"other bytes")
    document = made.changed(document, "cudnn/windows-x86_64/cuda11.0", twin)

    faults = _places(document)

    assert list(faults) == ["cudnn.windows-x86_64.cuda11.0.sha256"]
    assert "contradicts cudnn.windows-x86_64.cuda11" in next(iter(faults.values()))


def test_one_hash_for_two_files_is_a_contradiction() -> None:
    document = made.two_variants()
    twin = made.archive_fields(made.WINDOWS, "12", content=b"same")
    document = made.changed(document, "cudnn/windows-x86_64/cuda12", twin)
    twin = made.archive_fields(made.WINDOWS, "11", content=b"same")
    document = made.changed(document, "cudnn/windows-x86_64/cuda11", twin)

    faults = _places(document)

    assert (
        "another file, cudnn-windows-x86_64-8.9.5.29_cuda11-archive.zip"
        in (faults["cudnn.windows-x86_64.cuda12.sha256"])
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(b"", "it is empty", id="empty"),
        pytest.param(b" \n", "it is empty", id="white space"),
        pytest.param(b"<!DOCTYPE html><html>", "is an HTML or XML page", id="html"),
        pytest.param(b"\n<?xml version='1.0'?>", "is an HTML or XML page", id="xml"),
        pytest.param(b"{", "it is not JSON", id="cut off"),
        pytest.param(b"PK\x03\x04 \xff\xfe", "byte 5 is not UTF-8", id="zip"),
        pytest.param(b"[]", "its top level is an array", id="array"),
        pytest.param(b"null", "its top level is null", id="null"),
        pytest.param(b"[" * 200_000, "nested too deeply", id="deep"),
        pytest.param(b'{"a":' * 40 + b"1" + b"}" * 40, "more than 16 levels", id="quite deep"),
        pytest.param(b'{"a": ' + b"9" * 5000 + b"}", "number too long", id="huge number"),
        pytest.param(b'{"a": "' + b"x" * 2_200_000 + b'"}', "more than 2,097,152", id="huge"),
        pytest.param(b'{"a": {"b": NaN}}', "a.b: NaN and infinity", id="not a number"),
        pytest.param(b'{"a": 1e999}', "a: NaN and infinity", id="infinite"),
        pytest.param(b'{"a": {"b": 1, "b": 2}}', "a.b: the key is given more", id="duplicate"),
        pytest.param(b'{"a": "\\ud800"}', "half a surrogate pair", id="surrogate"),
        pytest.param(b'{"\\u001b[31m": 1}', r"'\x1b[31m': must be an object", id="escape"),
        pytest.param(b"{}", "lists no component", id="nothing"),
    ],
)
def test_what_is_no_manifest_is_refused_in_words(data: bytes, words: str) -> None:
    error = _refused(data)

    assert words in str(error)
    assert error.exit_code == 3
    assert error.next_step
    str(error).encode("ascii")


def test_very_many_faults_are_cut_short() -> None:
    document: JsonObject = {f"component{n}": n for n in range(500)}

    error = _refused(made.encoded(document))

    assert len(error.faults) == 101
    assert str(error.faults[-1]) == "and 402 more faults"


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)
_POINTS = st.sampled_from(
    ["release_date", "cudnn", "cudnn/version", "cudnn/windows-x86_64", CUDA11]
    + [f"{CUDA11}/{key}" for key in ("relative_path", "sha256", "md5", "size")]
)


def _read_or_refused(data: bytes) -> Manifest | None:
    try:
        return parse_manifest(data)
    except ArchiveError as error:
        str(error).encode("ascii")
        return None


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    assert _read_or_refused(data) is None


@given(_VALUES)
def test_no_json_raises_anything_else(value: JsonValue) -> None:
    assert _read_or_refused(json.dumps(value).encode()) is None


@given(_POINTS, _VALUES)
def test_no_value_in_a_sound_manifest_raises_anything_else(path: str, value: JsonValue) -> None:
    document = made.changed(made.two_variants(), path, value)

    _read_or_refused(made.encoded(document))


@given(st.data())
def test_no_cut_or_flip_raises_anything_else(data: st.DataObject) -> None:
    sound = bytearray(made.encoded(made.two_variants()))
    place = data.draw(st.integers(0, len(sound) - 1))
    sound[place] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(place, len(sound)))

    _read_or_refused(bytes(sound[:end]))
