"""The rule table of `bundler.trust`, row by row; the numbers are its rules."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given as given_values
from hypothesis import strategies as st

from bundler.catalogue import Catalogue, CatalogueEntry, Confidence, ManifestPin, WrongHash
from bundler.errors import ArchiveError, UsageError
from bundler.manifest import Manifest, parse_manifest
from bundler.names import parse_archive_name
from bundler.recipe_data import builtin_catalogue, read_recipe
from bundler.trust import (
    AgreedWitness,
    ArchiveDigest,
    GivenWitnesses,
    TrustDecision,
    decide,
    normalise_sha256,
)
from tests.unit import manifest_bytes as made

NAME = "cudnn-windows-x86_64-8.9.5.29_cuda11-archive.zip"
CUDA12 = "cudnn-windows-x86_64-8.9.5.29_cuda12-archive.zip"
LINUX = "cudnn-linux-x86_64-8.9.5.29_cuda12-archive.tar.xz"
OLD = "cudnn-10.1-windows10-x64-v8.0.3.33.zip"
TWINS = ("cudnn-11.0-windows-x64-v8.0.4.30.zip", "cudnn-11.1-windows-x64-v8.0.4.30.zip")
NEW = "cudnn-windows-x86_64-9.99.0.1_cuda14-archive.zip"
MANIFEST_NAME = "redistrib_8.9.5.json"
REBUILT = b"a rebuilt archive, longer than the original was at that time"


def digest_of(content: bytes) -> ArchiveDigest:
    """Digest what stands for an archive."""
    md5 = hashlib.md5(content).hexdigest()
    return ArchiveDigest(len(content), hashlib.sha256(content).hexdigest(), md5)


def original(name: str) -> bytes:
    """Make the bytes that NVIDIA's archive of this name stands for."""
    return name.encode()


def entry_for(name: str, *, bare: bool = False) -> CatalogueEntry:
    """Make the catalogue's row of an archive; a bare one knows neither size nor MD5."""
    parsed = parse_archive_name(name)
    assert parsed is not None
    digest = digest_of(original(name))
    return CatalogueEntry(
        identity=parsed.identity,
        cuda=parsed.identity.cuda,
        file_name=name,
        sha256=digest.sha256,
        md5=None if bare else digest.md5,
        size=None if bare else digest.size,
        confidence=Confidence.ONE_SOURCE if bare else Confidence.MANIFEST,
        sources=1,
    )


CATALOGUE = Catalogue(
    entries=(
        *(entry_for(name) for name in (NAME, CUDA12, LINUX)),
        *(entry_for(name, bare=True) for name in (OLD, *TWINS)),
    ),
    wrong_hashes=(WrongHash(NAME, digest_of(original(CUDA12)).sha256, CUDA12),),
)
SOUND = parse_manifest(made.encoded(made.two_variants()))


def manifest_with(cuda11: bytes | None = None, cuda12: bytes | None = None) -> Manifest:
    """Make a manifest whose Windows entries are for other bytes than the catalogue's."""
    document = made.two_variants()
    for cuda, content in (("11", cuda11), ("12", cuda12)):
        fields = made.archive_fields(made.WINDOWS, cuda, content=content)
        document = made.changed(document, f"cudnn/windows-x86_64/cuda{cuda}", fields)
    return parse_manifest(made.encoded(document))


def manifest_of_new_release() -> Manifest:
    """Make a manifest of a release that the catalogue does not know."""
    platforms: dict[str, object] = {
        made.WINDOWS: {"cuda14": made.archive_fields(made.WINDOWS, "14", "9.99.0.1")}
    }
    return parse_manifest(made.encoded(made.manifest_object(platforms, "9.99.0.1")))  # type: ignore[arg-type]


def pinned(manifest: Manifest, sha256: str | None = None) -> Catalogue:
    """Let the catalogue know the manifest's own bytes, or others as the right ones."""
    pin = ManifestPin("cudnn/redistrib_8.9.5.json", sha256 or manifest.sha256)
    return replace(CATALOGUE, pins=(pin,))


def with_manifest(manifest: Manifest, sha256: str | None = None) -> GivenWitnesses:
    """Give a manifest, and perhaps a hash."""
    return GivenWitnesses(manifest, MANIFEST_NAME, sha256)


@dataclass(frozen=True)
class Row:
    """One case: what is asked, and what must come out."""

    content: bytes
    name: str = NAME
    given: GivenWitnesses = field(default_factory=GivenWitnesses)
    catalogue: Catalogue = CATALOGUE
    agreed: tuple[AgreedWitness, ...] = ()
    words: tuple[str, ...] = ()


def _sha256(content: bytes) -> str:
    return digest_of(content).sha256


def _listed(path: str, *, authentic: bool = False) -> AgreedWitness:
    return AgreedWitness("manifest", f"{MANIFEST_NAME}: {path}", authentic=authentic)


BY_CATALOGUE = AgreedWitness("catalogue", NAME, confidence="manifest")
BY_MANIFEST = _listed("cudnn.windows-x86_64.cuda11")
BY_HASH = AgreedWitness("sha256", _sha256(REBUILT))
WRONG_ELSEWHERE = manifest_with(cuda12=b"rebuilt too")
BOTH_REBUILT = manifest_with(cuda11=REBUILT, cuda12=b"rebuilt too")

ACCEPTED = {
    "10 catalogue alone": Row(original(NAME), agreed=(BY_CATALOGUE,)),
    "10 renamed by the download site": Row(
        original(NAME),
        name="cudnn-windows-x86-64-8.9.5.29-cuda11-archive (1).zip",
        agreed=(BY_CATALOGUE,),
    ),
    "10 called something else": Row(
        original(NAME),
        name="cudnn.zip",
        agreed=(BY_CATALOGUE,),
        words=(f"the file is called cudnn.zip, but its bytes are {NAME}",),
    ),
    "10 called like another archive": Row(
        original(CUDA12),
        agreed=(AgreedWitness("catalogue", CUDA12, confidence="manifest"),),
        words=(f"is called {NAME}, but its bytes are {CUDA12}; public recipes make the same",),
    ),
    "10 called like its twin": Row(
        original(TWINS[0]),
        name=TWINS[1],
        agreed=(AgreedWitness("catalogue", TWINS[0], confidence="one source"),),
        words=(f"is called {TWINS[1]}, but its bytes are {TWINS[0]}",),
    ),
    "1 catalogue and hash": Row(
        original(NAME),
        given=GivenWitnesses(sha256=_sha256(original(NAME))),
        agreed=(BY_CATALOGUE, AgreedWitness("sha256", _sha256(original(NAME)))),
    ),
    "5 all three": Row(
        original(NAME),
        given=with_manifest(SOUND, _sha256(original(NAME))),
        agreed=(BY_CATALOGUE, BY_MANIFEST, AgreedWitness("sha256", _sha256(original(NAME)))),
    ),
    "5 authentic": Row(
        original(NAME),
        given=with_manifest(SOUND),
        catalogue=pinned(SOUND),
        agreed=(BY_CATALOGUE, _listed("cudnn.windows-x86_64.cuda11", authentic=True)),
    ),
    "5 listed under another name": Row(
        original(CUDA12),
        given=with_manifest(manifest_with(cuda11=original(CUDA12), cuda12=b"x")),
        agreed=(AgreedWitness("catalogue", CUDA12, confidence="manifest"), BY_MANIFEST),
        words=(
            f"the file is called {NAME}",
            f"lists these bytes as {NAME}, the catalogue as {CUDA12}",
            f"{MANIFEST_NAME} contradicts the catalogue",
        ),
    ),
    "5 found by hash before name": Row(
        original(CUDA12),
        given=with_manifest(SOUND),
        agreed=(
            AgreedWitness("catalogue", CUDA12, confidence="manifest"),
            _listed("cudnn.windows-x86_64.cuda12"),
        ),
        words=(f"the file is called {NAME}, but its bytes are {CUDA12}",),
    ),
    "5 found by hash whatever the name": Row(
        original(NEW),
        name="cudnn.zip",
        given=with_manifest(manifest_of_new_release()),
        agreed=(_listed("cudnn.windows-x86_64.cuda14"),),
        words=("does not know this archive", f"lists the bytes of cudnn.zip as {NEW}"),
    ),
    "8 catalogue vouches": Row(
        original(NAME),
        given=with_manifest(WRONG_ELSEWHERE),
        agreed=(BY_CATALOGUE, BY_MANIFEST),
        words=(
            (
                "contradicts the catalogue (manifest) at cudnn.windows-x86_64.cuda12: "
                f"it gives {CUDA12} sha256 {_sha256(b'rebuilt too')}"
            ),
        ),
    ),
    "8 hash vouches": Row(
        REBUILT,
        given=with_manifest(BOTH_REBUILT, _sha256(REBUILT)),
        agreed=(BY_MANIFEST, BY_HASH),
        words=(
            "only the manifest and the --sha256 you gave vouch for them",
            "contradicts the catalogue",
        ),
    ),
    "8 authentic": Row(
        REBUILT,
        given=with_manifest(BOTH_REBUILT),
        catalogue=pinned(BOTH_REBUILT),
        agreed=(_listed("cudnn.windows-x86_64.cuda11", authentic=True),),
        words=("NVIDIA's own manifest redistrib_8.9.5.json lists", "contradicts the catalogue"),
    ),
    "9 altered": Row(
        original(NAME),
        given=with_manifest(SOUND),
        catalogue=pinned(SOUND, "e" * 64),
        agreed=(BY_CATALOGUE, BY_MANIFEST),
        words=(f"{MANIFEST_NAME} is not byte for byte as NVIDIA serves it",),
    ),
    "12 authentic manifest, other catalogue": Row(
        REBUILT,
        given=with_manifest(manifest_with(cuda11=REBUILT)),
        catalogue=pinned(manifest_with(cuda11=REBUILT)),
        agreed=(_listed("cudnn.windows-x86_64.cuda11", authentic=True),),
        words=(f"the catalogue (manifest) lists sha256 {_sha256(original(NAME))} for {NAME}",),
    ),
    "13 rebuilt with its manifest": Row(
        REBUILT,
        given=with_manifest(manifest_with(cuda11=REBUILT)),
        agreed=(BY_MANIFEST,),
        words=(
            (
                "these are not the bytes of NVIDIA's own archive: the catalogue (manifest) lists "
                f"sha256 {_sha256(original(NAME))} for {NAME}; only the manifest you gave vouches"
            ),
        ),
    ),
    "13 rebuilt with its hash": Row(
        REBUILT,
        given=GivenWitnesses(sha256=_sha256(REBUILT)),
        agreed=(BY_HASH,),
        words=("only the --sha256 you gave vouches for them",),
    ),
    "14 new release, its manifest": Row(
        original(NEW),
        name=NEW,
        given=with_manifest(manifest_of_new_release()),
        agreed=(_listed("cudnn.windows-x86_64.cuda14"),),
        words=("the catalogue does not know this archive; only the manifest you gave vouches",),
    ),
    "14 new release, authentic": Row(
        original(NEW),
        name=NEW,
        given=with_manifest(manifest_of_new_release()),
        catalogue=pinned(manifest_of_new_release()),
        agreed=(_listed("cudnn.windows-x86_64.cuda14", authentic=True),),
    ),
}

REFUSED = {
    "2 hash of nothing": Row(
        original(NAME),
        given=GivenWitnesses(sha256="f" * 64),
        words=(
            f"--sha256: expected sha256 {'f' * 64}, found {_sha256(original(NAME))}",
            f"the catalogue knows these bytes as {NAME} (manifest)",
        ),
    ),
    "2 hash of another archive": Row(
        original(NAME),
        given=GivenWitnesses(sha256=_sha256(original(CUDA12))),
        words=(
            f"{_sha256(original(CUDA12))} (that is the hash of {CUDA12})",
            f"{_sha256(original(NAME))} (that is the hash of {NAME})",
            f"public recipes give that hash wrongly for {NAME}",
        ),
    ),
    "2 manifest agrees and hash does not": Row(
        original(NAME),
        given=with_manifest(SOUND, "f" * 64),
        words=("--sha256: expected",),
    ),
    "3 not listed": Row(
        original(OLD),
        name=OLD,
        given=with_manifest(SOUND),
        words=(
            (
                f"{MANIFEST_NAME}: neither {OLD} nor sha256 {_sha256(original(OLD))} "
                f"(that is the hash of {OLD}) is listed in it (it lists: {NAME}, {CUDA12})"
            ),
        ),
    ),
    "3 not listed, no name to go by": Row(
        b"unknown",
        name="cudnn.zip",
        given=with_manifest(SOUND),
        words=(f"(it lists: {NAME}, {CUDA12}, {LINUX})",),
    ),
    "6 cut off": Row(
        original(NAME)[:-8],
        given=with_manifest(SOUND),
        words=(
            f"{MANIFEST_NAME}: cudnn.windows-x86_64.cuda11: incomplete download: 40 of 48 bytes",
            f"the catalogue (manifest): {NAME}: incomplete download: 40 of 48 bytes",
        ),
    ),
    "6 too long": Row(
        original(NAME) + b"!!",
        given=with_manifest(SOUND),
        words=("cuda11: 50 bytes, 2 more than the 48 expected",),
    ),
    "6 same length": Row(
        original(NAME)[::-1],
        given=with_manifest(SOUND),
        words=(f"cuda11: expected sha256 {_sha256(original(NAME))} (that is the hash of {NAME})",),
    ),
    "6 under a renamed name": Row(
        b"short",
        name="cudnn-windows-x86-64-8.9.5.29-cuda11-archive.zip",
        given=with_manifest(SOUND),
        words=("cuda11: incomplete download: 5 of 48 bytes",),
    ),
    "6 authentic": Row(
        REBUILT,
        given=with_manifest(SOUND),
        catalogue=pinned(SOUND),
        words=(f"{MANIFEST_NAME} is NVIDIA's own, byte for byte", "60 bytes, 12 more than the 48"),
    ),
    "6 the manifest is the one that is wrong": Row(
        original(NAME),
        given=with_manifest(manifest_with(cuda11=REBUILT)),
        words=(
            f"cuda11: expected sha256 {_sha256(REBUILT)}, found",
            f"the catalogue knows these bytes as {NAME}",
            "or the witness that belongs to this one",
        ),
    ),
    "7 wrong elsewhere": Row(
        REBUILT,
        given=with_manifest(BOTH_REBUILT),
        words=(f"{MANIFEST_NAME}: contradicts the catalogue (manifest)",),
    ),
    "11 cut off": Row(
        original(NAME)[:10],
        words=(
            f"the catalogue (manifest): {NAME}: incomplete download: 10 of 48 bytes",
            "give --manifest FILE or --sha256 HASH",
        ),
    ),
    "11 no size known": Row(
        b"x", name=OLD, words=(f"the catalogue (one source): {OLD}: expected sha256",)
    ),
    "11 two candidates": Row(
        b"x", name=f"{TWINS[0][:-4]} (1).zip", words=(f"{TWINS[0]}: exp", f"{TWINS[1]}: exp")
    ),
    "15 unknown": Row(
        b"x",
        name="something.zip",
        words=(
            f"nothing vouches for something.zip\n  why: its sha256 is {_sha256(b'x')} (1 bytes)",
            "give --manifest FILE, the redistrib_*.json",
            "or --sha256 HASH",
        ),
    ),
}


def _decide(row: Row) -> TrustDecision:
    return decide(digest_of(row.content), row.name, row.given, row.catalogue)


@pytest.mark.parametrize("row", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(row: Row) -> None:
    decision = _decide(row)

    assert decision.agreed == row.agreed
    assert len(decision.warnings) == len(row.words)
    for warning, words in zip(decision.warnings, row.words, strict=True):
        assert words in warning
    known = row.catalogue.by_sha256(digest_of(row.content).sha256)
    assert decision.entry == known


@pytest.mark.parametrize("row", REFUSED.values(), ids=REFUSED.keys())
def test_refused(row: Row) -> None:
    with pytest.raises(ArchiveError) as caught:
        _decide(row)

    assert caught.value.exit_code == 3
    assert caught.value.next_step
    for words in row.words:
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("digest", "words"),
    [
        ({"size": 47}, "its sha256 agrees but it says 48 bytes, not 47"),
        ({"md5": "0" * 32}, f"not {'0' * 32}"),
        ({"sha256": "0" * 64}, "the MD5 agrees all the same"),
    ],
    ids=["4 size", "4 md5", "6 md5 alone agrees"],
)
def test_a_witness_must_agree_in_every_figure(digest: dict[str, str | int], words: str) -> None:
    found = replace(digest_of(original(NAME)), **digest)  # type: ignore[arg-type]

    with pytest.raises(ArchiveError) as caught:
        decide(found, NAME, with_manifest(SOUND), CATALOGUE)

    wheres = {fault.where for fault in caught.value.faults if words in fault.what}
    assert any(where.startswith(MANIFEST_NAME) for where in wheres)
    assert any(where.startswith("the catalogue") for where in wheres)


def test_a_given_hash_does_not_excuse_a_catalogue_that_disagrees_in_size() -> None:
    found = replace(digest_of(original(NAME)), size=47)

    with pytest.raises(ArchiveError, match="the catalogue: its sha256 agrees but it says 48 bytes"):
        decide(found, NAME, GivenWitnesses(sha256=found.sha256), CATALOGUE)


def test_every_witness_that_disagrees_is_listed() -> None:
    with pytest.raises(ArchiveError) as caught:
        decide(digest_of(b"x"), NAME, with_manifest(SOUND, "f" * 64), CATALOGUE)

    assert [fault.where for fault in caught.value.faults] == [
        f"the catalogue (manifest): {NAME}",
        f"{MANIFEST_NAME}: cudnn.windows-x86_64.cuda11",
        "--sha256",
    ]


def test_a_manifest_of_another_product_is_not_listed_rather_than_a_bad_hash() -> None:
    toolkit = parse_manifest(read_recipe("manifests/cuda/redistrib_11.8.0.json"))
    given = GivenWitnesses(toolkit, "redistrib_11.8.0.json")

    with pytest.raises(ArchiveError, match="is listed in it") as caught:
        decide(digest_of(original(NAME)), NAME, given, CATALOGUE)

    assert "and 24 more" in str(caught.value)


def test_a_real_archive_and_its_real_manifest() -> None:
    catalogue = builtin_catalogue()
    name = "cudnn-windows-x86_64-9.6.0.74_cuda12-archive.zip"
    entry = catalogue.by_file_name(name)
    assert entry is not None
    digest = ArchiveDigest(entry.size or 0, entry.sha256, entry.md5 or "")
    manifest = parse_manifest(read_recipe("manifests/cudnn/redistrib_9.6.0.json"))

    decision = decide(digest, name, GivenWitnesses(manifest, "redistrib_9.6.0.json"), catalogue)

    assert decision.agreed == (
        AgreedWitness("catalogue", name, confidence="pinned manifest"),
        AgreedWitness(
            "manifest", "redistrib_9.6.0.json: cudnn.windows-x86_64.cuda12", authentic=True
        ),
    )
    assert (decision.entry, decision.warnings) == (entry, ())


@pytest.mark.parametrize(
    "text", ["A" * 64, f" {'a' * 64}\n", f"sha256:{'a' * 64}", "SHA256:" + "A" * 64]
)
def test_a_hash_is_read_as_people_copy_it(text: str) -> None:
    assert normalise_sha256(text) == "a" * 64


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it has 0 characters"),
        ("a" * 63, "it has 63 characters"),
        ("a" * 32, "it has the length of an MD5"),
        ("a" * 128, "it has the length of an SHA-512"),
        ("g" * 64, "not a SHA-256"),
        (f"sha256sum{'a' * 64}", "it has 73 characters"),
        (f"{'a' * 64}  file.zip", "not a SHA-256"),
        ("\u0661" * 64, "not a SHA-256"),
    ],
)
def test_anything_else_is_wrong_usage(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        normalise_sha256(text)

    assert words in str(caught.value)
    assert caught.value.exit_code == 2


@given_values(
    st.sampled_from([original(NAME), original(OLD), REBUILT, b""]),
    st.sampled_from([NAME, OLD, TWINS[0], NEW, "cudnn.zip"]),
    st.sampled_from([None, SOUND, BOTH_REBUILT, manifest_of_new_release()]),
    st.sampled_from([None, _sha256(original(NAME)), _sha256(REBUILT)]),
)
def test_whatever_is_accepted_has_a_witness_for_its_very_bytes(
    content: bytes, name: str, manifest: Manifest | None, sha256: str | None
) -> None:
    found = digest_of(content)
    given = GivenWitnesses(manifest, MANIFEST_NAME, sha256)
    try:
        decision = decide(found, name, given, CATALOGUE)
    except ArchiveError:
        return

    assert decision.agreed
    assert sha256 in (None, found.sha256)
    if manifest is not None:
        assert found.sha256 in {archive.sha256 for archive in manifest.archives}
    assert CATALOGUE.by_sha256(found.sha256) is not None or given.any
