"""Keys from files: what is accepted, and each refusal with its own sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from bundler.envelope import key_id
from bundler.errors import UsageError
from bundler.signing_keys import KeySource, read_private_key, read_public_key

PRIVATE = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = PRIVATE.public_key()
FOREIGN = ec.generate_private_key(ec.SECP256R1())
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="rights are another thing there")


def private_pem(
    key: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey, passphrase: bytes = b""
) -> bytes:
    encryption: KeySerializationEncryption = NoEncryption()
    if passphrase:
        encryption = BestAvailableEncryption(passphrase)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


def public_pem(key: ed25519.Ed25519PublicKey | ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def secret(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    path.chmod(0o600)
    return path


def test_a_plain_key(tmp_path: Path) -> None:
    key = read_private_key(KeySource(secret(tmp_path / "key.pem", private_pem(PRIVATE))))

    assert key_id(key.public_key()) == key_id(PUBLIC)


def test_a_public_key_may_be_read_by_everybody(tmp_path: Path) -> None:
    path = tmp_path / "public.pem"
    path.write_bytes(public_pem(PUBLIC))
    path.chmod(0o644)

    assert key_id(read_public_key(path)) == key_id(PUBLIC)


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n"], ids=["bare", "newline", "crlf"])
def test_a_passphrase_from_a_file(tmp_path: Path, ending: bytes) -> None:
    path = secret(tmp_path / "key.pem", private_pem(PRIVATE, b"open sesame"))
    passphrase = secret(tmp_path / "passphrase", b"open sesame" + ending)

    assert read_private_key(KeySource(path, passphrase)).sign(b"") == PRIVATE.sign(b"")


def test_a_passphrase_from_a_person(tmp_path: Path) -> None:
    path = secret(tmp_path / "key.pem", private_pem(PRIVATE, "Grüße".encode()))

    assert read_private_key(KeySource(path, ask=lambda: "Grüße")).sign(b"") == PRIVATE.sign(b"")


@POSIX
def test_a_passphrase_from_a_pipe(tmp_path: Path) -> None:
    path = secret(tmp_path / "key.pem", private_pem(PRIVATE, b"open sesame"))
    reading, writing = os.pipe()
    os.write(writing, b"open sesame\n")
    os.close(writing)

    key = read_private_key(KeySource(path, Path(f"/dev/fd/{reading}")))
    os.close(reading)

    assert key.sign(b"") == PRIVATE.sign(b"")


def test_nobody_is_asked_about_a_plain_key(tmp_path: Path) -> None:
    def ask() -> str:
        raise AssertionError

    source = KeySource(secret(tmp_path / "key.pem", private_pem(PRIVATE)), ask=ask)

    assert read_private_key(source).sign(b"") == PRIVATE.sign(b"")


@dataclass(frozen=True)
class Refused:
    """A key file that is refused, and what is said."""

    data: bytes | None
    what: str
    next_step: str
    passphrase: bytes = b""


MAKE = "openssl genpkey"
REFUSED_PRIVATE = {
    "absent": Refused(None, "cannot read the private key", "give the path"),
    "empty": Refused(b"", "is not a private key in PEM form", MAKE),
    "public": Refused(public_pem(PUBLIC), "is not a private key in PEM form", MAKE),
    "garbage": Refused(b"\0\xff" * 40, "is not a private key in PEM form", MAKE),
    "damaged": Refused(private_pem(PRIVATE)[:60], "it is damaged", MAKE),
    "not ed25519": Refused(private_pem(FOREIGN), "is a private key, but not for ed25519", MAKE),
    "enormous": Refused(b"PRIVATE KEY" * 10000, "is no private key: it has more than", MAKE),
    "encrypted and nobody to ask": Refused(
        private_pem(PRIVATE, b"a"), "is encrypted, and nobody is here to ask", "--passphrase-file"),
    "a wrong passphrase": Refused(
        private_pem(PRIVATE, b"a"), "the passphrase is wrong", MAKE, passphrase=b"b"),
    "an empty passphrase": Refused(
        private_pem(PRIVATE, b"a"), "it is damaged", MAKE, passphrase=b"\n"),
}  # fmt: skip
REFUSED_PUBLIC = {
    "absent": Refused(None, "cannot read the public key", "give the path"),
    "private": Refused(private_pem(PRIVATE), "is a private key; checking needs the public one",
                       "openssl pkey"),
    "encrypted private": Refused(private_pem(PRIVATE, b"a"), "is a private key", "openssl pkey"),
    "empty": Refused(b"", "is not a public key in PEM form", "openssl pkey"),
    "not ed25519": Refused(public_pem(FOREIGN.public_key()),
                           "is a public key, but not for ed25519", "openssl pkey"),
}  # fmt: skip


def check(refused: Refused, read: Callable[[], object]) -> None:
    with pytest.raises(UsageError, match=refused.what) as caught:
        read()
    assert caught.value.exit_code == 2
    assert refused.next_step in caught.value.next_step


@pytest.mark.parametrize("refused", REFUSED_PRIVATE.values(), ids=REFUSED_PRIVATE.keys())
def test_private_keys_that_are_refused(refused: Refused, tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    if refused.data is not None:
        secret(path, refused.data)
    passphrase = None
    if refused.passphrase:
        passphrase = secret(tmp_path / "passphrase", refused.passphrase)

    check(refused, lambda: read_private_key(KeySource(path, passphrase)))


@pytest.mark.parametrize("refused", REFUSED_PUBLIC.values(), ids=REFUSED_PUBLIC.keys())
def test_public_keys_that_are_refused(refused: Refused, tmp_path: Path) -> None:
    path = tmp_path / "public.pem"
    if refused.data is not None:
        path.write_bytes(refused.data)

    check(refused, lambda: read_public_key(path))


@POSIX
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o610], ids=oct)
@pytest.mark.parametrize("which", ["private key", "passphrase"])
def test_secrets_that_others_can_read_are_refused(mode: int, which: str, tmp_path: Path) -> None:
    key = secret(tmp_path / "my key.pem", private_pem(PRIVATE, b"a"))
    passphrase = secret(tmp_path / "my passphrase", b"a")
    open_to_others = {"private key": key, "passphrase": passphrase}[which]
    open_to_others.chmod(mode)

    with pytest.raises(UsageError, match=f"others on this machine can read the {which}") as caught:
        read_private_key(KeySource(key, passphrase))

    assert caught.value.exit_code == 2
    command = caught.value.next_step.split(": ", 1)[1].split(";", 1)[0]
    assert command == f"chmod 600 '{open_to_others}'"
    subprocess.run(command, shell=True, check=True)
    assert read_private_key(KeySource(key, passphrase)).sign(b"") == PRIVATE.sign(b"")
