"""The provenance statement: what a build says of itself."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from bundler.artifacts import ArtifactKind, ArtifactOptions, CondaEngine, CudaSource
from bundler.lock import LockedArchive
from bundler.moment import Moment
from bundler.provenance import BUILDER, BuildFacts, NamedDigest, statement_bytes

ARCHIVE = LockedArchive("archive.zip", 7, "a" * 64, catalogued=True, witnesses=())
FACTS = BuildFacts(
    archive=ARCHIVE,
    archive_url=None,
    manifest=None,
    expected_sha256=None,
    kinds=tuple(ArtifactKind),
    options=ArtifactOptions(),
    subjects=(NamedDigest("b.whl", "b" * 64), NamedDigest("a.zip", "c" * 64)),
    versions={"cudnn-bundler": "1"},
)
PARAMETERS = {
    "archive": "archive.zip",
    "artifacts": ["app-local", "conda", "wheel"],
    "condaEngine": "native",
    "condaLevel": 3,
    "cudaFrom": "none",
}


def statement(facts: BuildFacts) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(statement_bytes(facts))
    return found


def definition(facts: BuildFacts) -> dict[str, Any]:
    found: dict[str, Any] = statement(facts)["predicate"]["buildDefinition"]
    return found


def test_the_whole_of_it() -> None:
    assert statement(FACTS) == {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": "a.zip", "digest": {"sha256": "c" * 64}},
            {"name": "b.whl", "digest": {"sha256": "b" * 64}},
        ],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "urn:cudnn-bundler:build:v1",
                "externalParameters": PARAMETERS,
                "resolvedDependencies": [{"name": "archive.zip", "digest": {"sha256": "a" * 64}}],
            },
            "runDetails": {"builder": {"id": BUILDER, "version": {"cudnn-bundler": "1"}}},
        },
    }


NO_CONDA = {key: value for key, value in PARAMETERS.items() if not key.startswith("conda")}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (replace(FACTS, manifest=NamedDigest("m.json", "d" * 64)),
         PARAMETERS | {"manifest": "m.json"}),
        (replace(FACTS, expected_sha256="a" * 64), PARAMETERS | {"sha256": "a" * 64}),
        (replace(FACTS, options=ArtifactOptions(conda_level=19)), PARAMETERS | {"condaLevel": 19}),
        (replace(FACTS, options=ArtifactOptions(conda_engine=CondaEngine.RATTLER_BUILD)),
         PARAMETERS | {"condaEngine": "rattler-build"}),
        (replace(FACTS, options=ArtifactOptions(cuda_from=CudaSource.PYPI)),
         PARAMETERS | {"cudaFrom": "pypi"}),
        (replace(FACTS, options=ArtifactOptions(moment=Moment(1_700_000_000))),
         PARAMETERS | {"sourceDateEpoch": 1_700_000_000}),
        (replace(FACTS, kinds=(ArtifactKind.WHEEL,)), NO_CONDA | {"artifacts": ["wheel"]}),
        (replace(FACTS, kinds=(ArtifactKind.APP_LOCAL,)),
         {"archive": "archive.zip", "artifacts": ["app-local"]}),
    ],
    ids=["manifest", "sha256", "level", "engine", "cuda", "moment", "wheel only", "bundle only"],
)  # fmt: skip
def test_options_that_change_bytes_are_parameters(
    facts: BuildFacts, expected: dict[str, Any]
) -> None:
    assert definition(facts)["externalParameters"] == expected


def test_what_went_in_is_named_by_hash_and_address() -> None:
    facts = replace(FACTS, archive_url="https://a", manifest=NamedDigest("m.json", "d" * 64))

    assert definition(facts)["resolvedDependencies"] == [
        {"name": "archive.zip", "digest": {"sha256": "a" * 64}, "uri": "https://a"},
        {"name": "m.json", "digest": {"sha256": "d" * 64}},
    ]


def test_the_builder_can_be_named() -> None:
    facts = replace(FACTS, builder="https://ci.example.com/1")

    assert statement(facts)["predicate"]["runDetails"]["builder"]["id"] == facts.builder


def test_the_order_of_what_is_told_changes_no_byte() -> None:
    turned = replace(FACTS, subjects=FACTS.subjects[::-1], kinds=FACTS.kinds[::-1])

    assert statement_bytes(turned) == statement_bytes(FACTS)
