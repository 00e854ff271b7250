"""What signatures mean for a whole release, from the archive to the lock and the exit code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bundler import ingest as flow
from bundler.__main__ import main
from bundler.errors import Fault, ReleaseError
from bundler.lock import Lock, Signer
from bundler.lock_reading import parse_lock
from bundler.presentation import lock_lines
from bundler.progress import Progress
from bundler.signature_policy import (
    Signature,
    SignaturePolicy,
    signature_faults,
    signature_warnings,
)
from tests.sample_archives import NAME, SampleArchive, libraries, sha256_of
from tests.sample_builds import ingest_options
from tests.signed_libraries import SIGNER, Signing, roots, sign

VENDOR = Signer("NVIDIA Corporation", "A CA", "0636af", "2023-09-07T07:12:54Z", "sha256")
STRANGER = replace(VENDOR, organisation="Somebody")
NOBODY = replace(VENDOR, organisation="")
NONE = "none of the 2 libraries is signed"

SETS: dict[str, tuple[dict[str, Signature], list[Fault]]] = {
    "all": ({"a": (VENDOR,), "b": (VENDOR,)}, []),
    "all, one twice": ({"a": (VENDOR, VENDOR), "b": (VENDOR,)}, []),
    "one by a stranger": ({"a": (VENDOR,), "b": (STRANGER,)},
        [Fault("b", "is signed by Somebody, not by NVIDIA Corporation")]),
    "one by nobody": ({"a": (VENDOR,), "b": (NOBODY,)},
        [Fault("b", "is signed by somebody without an organisation, not by NVIDIA Corporation")]),
    "one not": ({"a": (VENDOR,), "b": ()},
        [Fault("b", "is not signed, though other libraries of this archive are")]),
    "one unsound, one not": ({"a": "is odd", "b": ()},
        [Fault("a", "is odd"), Fault("b", "is not signed, though other libraries of this "
         "archive are")]),
    "no libraries": ({}, []),
}  # fmt: skip


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize(("found", "faults"), SETS.values(), ids=SETS.keys())
def test_a_set(found: Mapping[str, Signature], faults: list[Fault], required: bool) -> None:
    assert list(signature_faults(found, required=required)) == faults
    assert list(signature_warnings(found)) == []


def test_a_set_without_signatures() -> None:
    found: dict[str, Signature] = {"a": (), "b": ()}

    assert list(signature_warnings(found)) == [NONE]
    assert list(signature_faults(found, required=False)) == []
    (fault,) = signature_faults(found, required=True)
    assert fault.what == f"{NONE}, and --require-signature asks for it"


def examined(changes: Mapping[str, bytes | None], folder: Path, *, required: bool = False) -> Lock:
    archive = SampleArchive(changes=changes).write(folder / NAME)
    policy = SignaturePolicy(required, roots())
    with flow.ingest(
        replace(ingest_options(archive, folder), signatures=policy), Progress()
    ) as release:
        return release.lock


def signed() -> dict[str, bytes | None]:
    return {f"bin/{name}": sign(data) for name, data in libraries().items()}


def test_the_lock_says_who_signed(tmp_path: Path) -> None:
    lock = examined(signed(), tmp_path, required=True)

    signers = [file.library.signer for file in lock.runtime_files if file.library]
    assert {signer and signer.in_words for signer in signers} == {
        "signed by NVIDIA Corporation, 2019-05-06"
    }
    assert not any("signed" in text for text in lock.warnings)
    assert parse_lock(lock.to_bytes(), "lock") == lock
    assert "\n".join(lock_lines(lock)).count("signed by NVIDIA Corporation, 2019-05-06") == 7


def test_a_lock_without_signatures_says_so(tmp_path: Path) -> None:
    lock = examined({}, tmp_path)

    assert "none of the 7 libraries is signed" in lock.warnings
    assert {file.library.signer for file in lock.runtime_files if file.library} == {None}


SUB = "cudnn_adv_infer64_8.dll"
STRANGE = Signing(replace(SIGNER, subject=(("organization", "Somebody"),)))
UNFIT: dict[str, tuple[bytes, str]] = {
    "one is not signed": (libraries()[SUB], "is not signed, though"),
    "one is signed by a stranger": (sign(libraries()[SUB], STRANGE), "is signed by Somebody"),
    "one was changed": (
        sign(libraries()[SUB]).replace(b"This program", b"That program"),
        "was changed after it was signed",
    ),
    "one has no timestamp": (sign(libraries()[SUB], Signing(stamped=None)), "without a timestamp"),
}


@pytest.mark.parametrize(("library", "what"), UNFIT.values(), ids=UNFIT.keys())
def test_one_unfit_library_makes_the_release_unfit(
    library: bytes, what: str, tmp_path: Path
) -> None:
    with pytest.raises(ReleaseError) as caught:
        examined({**signed(), f"bin/{SUB}": library}, tmp_path)

    assert [fault.where for fault in caught.value.faults] == [f"bin/{SUB}"]
    assert what in caught.value.faults[0].what
    assert caught.value.exit_code == 4


def test_a_signature_nobody_here_trusts_is_unfit(tmp_path: Path) -> None:
    """The stand-ins of these tests, under Microsoft's roots, through a real process."""
    archive = SampleArchive(changes=signed()).write(tmp_path / NAME)

    with (
        pytest.raises(ReleaseError) as caught,
        flow.ingest(ingest_options(archive, tmp_path), Progress()),
    ):
        pass

    assert len(caught.value.faults) == 7


@pytest.mark.parametrize("verb", ["build", "verify"])
def test_require_signature(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = SampleArchive().write(tmp_path / NAME)
    words = [verb, str(archive), "--sha256", sha256_of(archive)]
    if verb == "build":
        words += ["--no-smoke", "-o", str(tmp_path / "dist"), "--only", "app-local"]

    assert main(words) == 0
    assert "note: none of the 7 libraries is signed" in capsys.readouterr().out
    assert main([*words, "--require-signature"]) == 4
    assert "none of the 7 libraries is signed, and --require" in capsys.readouterr().err


def test_inspect_shows_that_nothing_is_signed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = SampleArchive().write(tmp_path / NAME)

    assert main(["inspect", str(archive)]) == 0
    assert capsys.readouterr().out.count("not signed") == 7


def test_require_signature_of_an_artifact(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = SampleArchive().write(tmp_path / NAME)
    words = ["build", str(archive), "--sha256", sha256_of(archive), "--no-smoke", "--json"]
    assert main([*words, "--only", "wheel", "-o", str(tmp_path / "dist")]) == 0
    (artifact,) = json.loads(capsys.readouterr().out)["artifacts"]

    assert main(["verify", artifact["path"]]) == 0
    assert main(["verify", artifact["path"], "--require-signature"]) == 4
