"""Signing a build and checking it, as a user does both."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from bundler import __main__, __version__
from bundler.__main__ import main
from bundler.compression import LIBRARY
from bundler.envelope import key_id, seal, unseal
from tests.sample_archives import NAME, SampleArchive, sha256_of
from tests.unit.test_signing_keys import private_pem, public_pem, secret

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(32))
STEM = "cudnn-8.9.5.29-cuda11-windows-x86_64"
ENVELOPE = f"{STEM}.provenance.dsse.json"
PROVENANCE = f"{STEM}.provenance.json"
BUNDLE = f"{STEM}-applocal.zip"
WHEEL = "cudnn_runtime_cu11-8.9.5.29-py3-none-win_amd64.whl"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    secret(folder / "key.pem", private_pem(KEY))
    (folder / "public.pem").write_bytes(public_pem(KEY.public_key()))
    (folder / "other.pem").write_bytes(public_pem(OTHER.public_key()))
    return folder


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return SampleArchive().write(tmp_path_factory.mktemp("archive") / NAME)


def build(archive: Path, output: Path, *more: str) -> int:
    return main(
        ["build", str(archive), "--sha256", sha256_of(archive), "-o", str(output), "--no-smoke",
         *more]
    )  # fmt: skip


@pytest.fixture(scope="module")
def signed(archive: Path, keys: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("signed")
    assert build(archive, folder, "--sign", str(keys / "key.pem")) == 0
    return folder


@pytest.fixture
def dist(signed: Path, tmp_path: Path) -> Path:
    """Give a copy of the signed build to spoil."""
    return shutil.copytree(signed, tmp_path / "dist")


def artifacts(folder: Path) -> list[Path]:
    return [folder / BUNDLE, folder / WHEEL, *folder.glob("win-64/*.conda")]


def verify(path: Path, keys: Path, *more: str, key: str = "public.pem") -> int:
    return main(["verify", str(path), "--key", str(keys / key), *more])


def statement(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / PROVENANCE).read_bytes())
    return found


def test_the_statement_speaks_of_every_file(signed: Path, archive: Path) -> None:
    said = {item["name"]: item["digest"]["sha256"] for item in statement(signed)["subject"]}
    made = [
        path for path in signed.rglob("*") if path.is_file() and ".provenance." not in path.name
    ]

    assert len(made) == 5
    assert said == {path.name: sha256_of(path) for path in made}
    predicate = statement(signed)["predicate"]
    assert predicate["buildDefinition"]["resolvedDependencies"] == [
        {"name": NAME, "digest": {"sha256": sha256_of(archive)}}
    ]
    versions = predicate["runDetails"]["builder"]["version"]
    assert versions["cudnn-bundler"] == __version__
    assert f"libzstd {versions['libzstd']}" == LIBRARY
    assert versions.keys() == {
        "cudnn-bundler", "cyclonedx-python-lib", "libzstd", "py-rattler-build",
    }  # fmt: skip


def test_the_envelope_holds_the_statement(signed: Path) -> None:
    payload = unseal((signed / ENVELOPE).read_bytes(), ENVELOPE, KEY.public_key())

    assert payload == (signed / PROVENANCE).read_bytes()


def test_a_second_build_gives_the_same_files(
    signed: Path, archive: Path, keys: Path, tmp_path: Path
) -> None:
    assert build(archive, tmp_path / "again", "--sign", str(keys / "key.pem")) == 0

    first, second = (
        {
            path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }
        for folder in (signed, tmp_path / "again")
    )
    assert second == first


def test_the_manifest_is_named_by_hash(archive: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "redistrib_8.9.5.29.json"
    facts = {
        "relative_path": f"cudnn/windows-x86_64/{NAME}", "sha256": sha256_of(archive),
        "md5": hashlib.md5(archive.read_bytes()).hexdigest(), "size": str(archive.stat().st_size),
    }  # fmt: skip
    product = {"name": "NVIDIA CUDA Deep Neural Network library", "license": "cudnn",
               "version": "8.9.5.29", "windows-x86_64": {"cuda11": facts}}  # fmt: skip
    manifest.write_text(json.dumps({"release_date": "2023-10-01", "cudnn": product}))

    assert build(archive, tmp_path, "--only", "app-local", "--manifest", str(manifest)) == 0

    definition = statement(tmp_path)["predicate"]["buildDefinition"]
    assert definition["externalParameters"]["manifest"] == manifest.name
    assert definition["resolvedDependencies"][1] == {
        "name": manifest.name, "digest": {"sha256": sha256_of(manifest)},
    }  # fmt: skip


def test_the_builder_and_the_moment_are_in_the_statement(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")

    assert (
        build(archive, tmp_path, "--only", "wheel", "--builder-id", "https://ci.example.com") == 0
    )

    predicate = statement(tmp_path)["predicate"]
    assert predicate["runDetails"]["builder"]["id"] == "https://ci.example.com"
    assert predicate["buildDefinition"]["externalParameters"]["sourceDateEpoch"] == 1_700_000_000


@pytest.mark.parametrize("place", range(3), ids=["app-local", "wheel", "conda"])
def test_an_artifact_is_verified(
    place: int, signed: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = artifacts(signed)[place]

    assert verify(path, keys) == 0

    assert f"signed for in {ENVELOPE} by key {key_id(KEY.public_key())}" in capsys.readouterr().out


@pytest.mark.parametrize("ending", [".lock.json", ".sbom.cdx.json", ".provenance.json"])
def test_a_side_file_is_verified(ending: str, signed: Path, keys: Path) -> None:
    assert verify(signed / (STEM + ending), keys) == 0


def test_an_envelope_is_verified_with_all_that_lies_beside_it(
    dist: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (dist / WHEEL).unlink()

    assert verify(dist / ENVELOPE, keys, "--json") == 0

    document = json.loads(capsys.readouterr().out)
    assert document["absent"] == [WHEEL]
    assert len(document["present"]) == 4
    assert document["key_id"] == key_id(KEY.public_key())


def test_the_envelope_may_lie_elsewhere_and_the_artifact_be_renamed(
    dist: Path, keys: Path, tmp_path: Path
) -> None:
    envelope = (dist / ENVELOPE).rename(tmp_path / "elsewhere.json")
    renamed = (dist / BUNDLE).rename(tmp_path / "mine-applocal.zip")

    assert verify(renamed, keys, "--provenance", str(envelope)) == 0


Spoil = Callable[[Path], Path]
"""Spoils a signed build and says which file to verify."""


def another_comment(path: Path) -> Path:
    with zipfile.ZipFile(path, "a") as bundle:
        bundle.comment = b"changed"
    return path


def same_wheel_of_another_lock(dist: Path) -> Path:
    """Sign for the artifact and for another lock than it holds."""
    said = json.loads((dist / PROVENANCE).read_bytes())
    for item in said["subject"]:
        if item["name"].endswith(".lock.json"):
            item["digest"]["sha256"] = "0" * 64
    (dist / ENVELOPE).write_bytes(seal(json.dumps(said).encode(), KEY))
    return dist / WHEEL


def without_the_lock(dist: Path) -> Path:
    said = json.loads((dist / PROVENANCE).read_bytes())
    said["subject"] = [s for s in said["subject"] if not s["name"].endswith(".lock.json")]
    (dist / ENVELOPE).write_bytes(seal(json.dumps(said).encode(), KEY))
    return dist / WHEEL


def appended(name: str) -> Spoil:
    def spoil(dist: Path) -> Path:
        path = dist / name
        path.write_bytes(path.read_bytes() + b"\n")
        return path

    return spoil


def other_statement(**changes: object) -> Spoil:
    def spoil(dist: Path) -> Path:
        said = {**json.loads((dist / PROVENANCE).read_bytes()), **changes}
        (dist / ENVELOPE).write_bytes(seal(json.dumps(said).encode(), KEY))
        return dist / WHEEL

    return spoil


def other_payload(dist: Path) -> Path:
    envelope = json.loads((dist / ENVELOPE).read_bytes())
    envelope["payload"] = base64.b64encode(b"{}").decode()
    (dist / ENVELOPE).write_text(json.dumps(envelope))
    return dist / WHEEL


def spoilt_beside(dist: Path) -> Path:
    another_comment(dist / BUNDLE)
    appended(PROVENANCE)(dist)
    return dist / ENVELOPE


SUBJECT = {"name": "a", "digest": {"sha256": "a" * 64}}
NO_PROVENANCE = "does not hold a provenance"
REFUSED: dict[str, tuple[Spoil, str]] = {
    "a changed bundle": (lambda d: another_comment(d / BUNDLE), "signed was sha256"),
    "a changed wheel": (lambda d: another_comment(d / WHEEL), "signed was sha256"),
    "a changed lock": (appended(f"{STEM}.lock.json"), "signed was sha256"),
    "a changed SBOM": (appended(f"{STEM}.sbom.cdx.json"), "signed was sha256"),
    "a changed statement": (appended(PROVENANCE), "differs from the provenance that was signed"),
    "changed files beside the envelope": (spoilt_beside, "signed was sha256"),
    "an artifact of another build": (
        lambda d: another_comment((d / BUNDLE).rename(d / "mine-applocal.zip")),
        "is none of the files signed for",
    ),
    "another lock": (same_wheel_of_another_lock, "the lock inside: signed was sha256"),
    "no lock": (without_the_lock, "nobody signed for the lock"),
    "a changed envelope": (other_payload, "was changed after it was signed"),
    "no subjects": (other_statement(subject=[]), NO_PROVENANCE),
    "subjects that are none": (other_statement(subject=[1]), NO_PROVENANCE),
    "a subject twice": (other_statement(subject=[SUBJECT, SUBJECT]), NO_PROVENANCE),
    "a subject that is a path": (
        other_statement(subject=[{**SUBJECT, "name": "../a"}]), NO_PROVENANCE),
    "a subject without a hash": (other_statement(subject=[{"name": "a"}]), NO_PROVENANCE),
    "a subject with a bad hash": (
        other_statement(subject=[{"name": "a", "digest": {"sha256": "1"}}]), NO_PROVENANCE),
    "another predicate": (other_statement(predicateType="x"), "predicateType: must be"),
    "another statement": (other_statement(_type="x"), "_type: must be"),
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "what"), REFUSED.values(), ids=REFUSED.keys())
def test_what_differs_from_what_was_signed_is_refused(
    spoil: Spoil, what: str, dist: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify(spoil(dist), keys) == 3

    assert what in capsys.readouterr().err


def test_the_faults_beside_an_envelope_are_all_listed(
    dist: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verify(spoilt_beside(dist), keys)

    text = capsys.readouterr().err
    assert f"- {BUNDLE}: signed was" in text
    assert f"- {PROVENANCE}: differs" in text


def test_the_signature_of_somebody_else_is_refused(
    signed: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify(signed / WHEEL, keys, key="other.pem") == 3

    assert "is not signed by the key you gave" in capsys.readouterr().err


USAGE: dict[str, tuple[Callable[[Path, Path], list[str]], str]] = {
    "a private key": (
        lambda dist, keys: [str(dist / WHEEL), "--key", str(keys / "key.pem")],
        "is a private key; checking needs the public one",
    ),
    "no such key": (
        lambda dist, keys: [str(dist / WHEEL), "--key", str(keys / "absent.pem")],
        "cannot read the public key",
    ),
    "no envelope": (
        lambda dist, keys: [str((dist / WHEEL).rename(dist.parent.parent / WHEEL)), "--key",
                            str(keys / "public.pem")],
        f"there is no {ENVELOPE} beside",
    ),
    "no such envelope": (
        lambda dist, keys: [str(dist / WHEEL), "--key", str(keys / "public.pem"),
                            "--provenance", str(dist / "absent")],
        "cannot read the provenance",
    ),
    "no such file": (
        lambda dist, keys: [str(dist / f"x{STEM}.lock.json"), "--key", str(keys / "public.pem"),
                            "--provenance", str(dist / ENVELOPE)],
        "cannot read",
    ),
    "an archive": (
        lambda dist, keys: [str(dist / NAME), "--key", str(keys / "public.pem")],
        "is not something that `build --sign` signs for",
    ),
    "an envelope with an envelope": (
        lambda dist, keys: [str(dist / ENVELOPE), "--key", str(keys / "public.pem"),
                            "--provenance", str(dist / ENVELOPE)],
        "leave out --provenance",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "what"), USAGE.values(), ids=USAGE.keys())
def test_wrong_usage(
    arguments: Callable[[Path, Path], list[str]],
    what: str,
    dist: Path,
    keys: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["verify", *arguments(dist, keys)]) == 2

    assert what in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["build", "a.zip", "--passphrase-file", "p"],
        ["verify", "a.whl", "--provenance", "p"],
        ["build", "a.zip", "--builder-id", "somebody"],
        ["build", "a.zip", "--builder-id", "https://a b"],
    ],
    ids=["passphrase without key", "envelope without key", "no URI", "a URI with a space"],
)
def test_options_that_make_no_sense(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert "error: " in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="rights are another thing there")
def test_a_key_that_others_can_read_stops_the_build_before_any_work(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = secret(tmp_path / "key.pem", private_pem(KEY))
    key.chmod(0o644)

    assert build(archive, tmp_path / "dist", "--sign", str(key)) == 2

    text = capsys.readouterr().err
    assert f"chmod 600 {key}" in text
    assert "reading" not in text
    assert not (tmp_path / "dist").exists()


def test_a_terminal_is_asked_for_the_passphrase(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = secret(tmp_path / "key.pem", private_pem(KEY, b"open sesame"))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(__main__, "getpass", lambda prompt: "open sesame" if prompt else "")

    assert build(archive, tmp_path, "--only", "wheel", "--sign", str(key)) == 0
    assert (tmp_path / ENVELOPE).is_file()


def test_an_old_envelope_stays_while_it_is_true(archive: Path, dist: Path) -> None:
    before = (dist / ENVELOPE).read_bytes()

    assert build(archive, dist) == 0
    assert (dist / ENVELOPE).read_bytes() == before


@pytest.mark.parametrize("old", ["another build", "garbage"])
def test_an_old_envelope_goes_when_it_speaks_of_something_else(
    old: str, archive: Path, dist: Path
) -> None:
    if old == "garbage":
        (dist / ENVELOPE).write_bytes(b"garbage")

    assert build(archive, dist, "--only", "wheel", "--conda-level", "4") == 0
    assert not (dist / ENVELOPE).exists()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_the_readmes_commands_make_keys_that_work(
    archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key, public = tmp_path / "key.pem", tmp_path / "public.pem"
    run("genpkey", "-algorithm", "ed25519", "-out", str(key))
    run("pkey", "-in", str(key), "-pubout", "-out", str(public))

    assert build(archive, tmp_path, "--only", "wheel", "--sign", str(key)) == 0
    assert verify(tmp_path / WHEEL, tmp_path) == 0

    der = run("pkey", "-in", str(key), "-pubout", "-outform", "DER")
    assert hashlib.sha256(der).hexdigest() in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_openssl_verifies_the_signature(signed: Path, keys: Path, tmp_path: Path) -> None:
    envelope = json.loads((signed / ENVELOPE).read_bytes())
    payload = base64.b64decode(envelope["payload"])
    kind = envelope["payloadType"].encode()
    message, signature = tmp_path / "message", tmp_path / "signature"
    message.write_bytes(b"DSSEv1 %d %s %d " % (len(kind), kind, len(payload)) + payload)
    signature.write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))

    output = run(
        "pkeyutl", "-verify", "-pubin", "-inkey", str(keys / "public.pem"), "-rawin",
        "-in", str(message), "-sigfile", str(signature),
    )  # fmt: skip

    assert b"Signature Verified Successfully" in output


def run(*arguments: str) -> bytes:
    return subprocess.run(["openssl", *arguments], capture_output=True, check=True).stdout
