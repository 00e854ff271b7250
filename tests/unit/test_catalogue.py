"""The committed catalogue: its figures, its look-ups, and what happens when it is damaged."""

from __future__ import annotations

from collections import Counter

import pytest

from bundler.catalogue import Confidence, load_catalogue
from bundler.errors import BundlerError, MissingError
from bundler.names import Platform, ReleaseIdentity, Version, parse_archive_name
from bundler.recipe_data import builtin_catalogue, read_recipe, recipe_names

CATALOGUE = builtin_catalogue()
ROW = (
    b'{"version": "8.9.5.29", "cuda": "11", "platform": "windows-x86_64", "filename": "a.zip", '
    b'"sha256": "' + b"a" * 64 + b'", "confidence": "manifest", "sources": 1}'
)


def test_the_catalogue_is_whole() -> None:
    assert len(CATALOGUE.entries) == 538
    assert sum(entry.identity.platform.is_windows for entry in CATALOGUE.entries) == 148
    assert Counter(entry.confidence.value for entry in CATALOGUE.entries) == {
        "pinned manifest": 174,
        "manifest": 112,
        "several sources": 108,
        "one source": 144,
    }
    assert len(CATALOGUE.wrong_hashes) == 74
    assert len(CATALOGUE.pins) == 66


def test_no_name_and_no_hash_occurs_twice() -> None:
    assert len({entry.file_name.lower() for entry in CATALOGUE.entries}) == 538
    assert len({entry.sha256 for entry in CATALOGUE.entries}) == 538


def test_each_row_says_what_its_file_name_says() -> None:
    for entry in CATALOGUE.entries:
        name = parse_archive_name(entry.file_name)
        assert name is not None, entry.file_name
        assert (name.identity, name.is_official) == (entry.identity, True), entry.file_name


def test_size_and_md5_are_known_where_a_manifest_is() -> None:
    for entry in CATALOGUE.entries:
        from_manifest = entry.confidence in {Confidence.PINNED_MANIFEST, Confidence.MANIFEST}
        assert ((entry.size or 0) > 1_000_000) == from_manifest
        assert (entry.md5 is not None) == from_manifest


def test_look_up_by_hash_name_and_identity() -> None:
    name = "cudnn-windows-x86_64-8.5.0.96_cuda11-archive.zip"
    digest = "bf277ed350addb8f97e0ab6a20b6fad869abe49ea24277d38ca79f5f23fbec6b"
    identity = ReleaseIdentity(Version((8, 5, 0, 96)), "11", Platform.WINDOWS_X86_64)

    entry = CATALOGUE.by_sha256(digest)

    assert entry is not None
    assert entry.file_name == name
    assert CATALOGUE.by_file_name(name.upper()) == entry
    assert CATALOGUE.by_identity(identity) == (entry,)
    assert CATALOGUE.by_sha256("0" * 64) is None
    assert CATALOGUE.by_file_name("cudnn.zip") is None


def test_one_identity_can_be_several_archives() -> None:
    two_toolkits = ReleaseIdentity(Version((8, 0, 4, 30)), "11", Platform.WINDOWS_X86_64)
    two_builds = ReleaseIdentity(Version((8, 9, 5)), "11", Platform.WINDOWS_X86_64)

    assert {entry.cuda for entry in CATALOGUE.by_identity(two_toolkits)} == {"11.0", "11.1"}
    assert {str(entry.identity.version) for entry in CATALOGUE.by_identity(two_builds)} == {
        "8.9.5.29",
        "8.9.5.30",
    }


def test_every_wrong_hash_is_that_of_another_known_archive() -> None:
    for wrong in CATALOGUE.wrong_hashes:
        owner = CATALOGUE.by_sha256(wrong.sha256)
        assert owner is not None
        assert owner.file_name == wrong.belongs_to
        assert owner.file_name != wrong.file_name
        assert wrong in CATALOGUE.known_wrong(wrong.sha256)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(b"", "it is empty", id="empty"),
        pytest.param(b"{}", "no rows", id="no rows"),
        pytest.param(b'{"archives": [1]}', "a row is not an object", id="row"),
        pytest.param(b'{"archives": [], "archives": []}', "more than once", id="duplicate"),
        pytest.param(b'{"archives": [{}]}', "archives[0].cuda is not a string", id="field"),
        pytest.param(
            b'{"archives": [' + ROW.replace(b'"manifest"', b'"hearsay"') + b"]}",
            "archives[0]: 'hearsay'",
            id="confidence",
        ),
        pytest.param(
            b'{"archives": [' + ROW.replace(b"a" * 64, b"a") + b"]}", "64 lower-case", id="hash"
        ),
        pytest.param(
            b'{"archives": [' + ROW.replace(b": 1}", b": true}") + b"]}", "whole number", id="count"
        ),
        pytest.param(
            b'{"archives": [' + ROW.replace(b"8.9.5.29", b"8.x") + b"]}", "not a version", id="text"
        ),
    ],
)
def test_damaged_data_is_a_bug_and_says_so(data: bytes, words: str) -> None:
    with pytest.raises(BundlerError, match="the built-in catalogue is damaged") as caught:
        load_catalogue(data)

    assert words in str(caught.value)
    assert caught.value.exit_code == 1


def test_a_sound_row_loads_without_the_other_tables() -> None:
    catalogue = load_catalogue(b'{"archives": [' + ROW + b"]}")

    assert [(e.md5, e.size, e.sources) for e in catalogue.entries] == [(None, None, 1)]
    assert catalogue.pins == ()


def test_a_recipe_that_is_not_there_is_a_broken_installation() -> None:
    with pytest.raises(MissingError, match=r"lacks its data: recipes/none\.json"):
        read_recipe("none.json")
    with pytest.raises(MissingError, match="lacks its data: recipes/none"):
        recipe_names("none")
