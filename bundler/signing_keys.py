"""Reading ed25519 keys from files, with the care that a private key needs.

A private key and its passphrase come from files, or the passphrase from a terminal; never
from the command line, which every user of a machine can read. A key that others can read
has to be taken for stolen, so it is refused.
"""

from __future__ import annotations

import os
import shlex
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bundler.errors import UsageError
from bundler.windows_rights import file_descriptor, others_who_can_read, rights_command

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

_MAXIMUM_SIZE = 64 * 1024
_MAKE_KEY = "make one: openssl genpkey -algorithm ed25519 -out KEY.pem"
_MAKE_PUBLIC = "make one: openssl pkey -in KEY.pem -pubout -out PUBLIC.pem"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True)
class KeySource:
    """Where a private key comes from.

    Args:
        path: of a PEM file.
        passphrase: of a file that holds its passphrase.
        ask: asks a person for the passphrase, where there is one to ask.
    """

    path: Path
    passphrase: Path | None = None
    ask: Callable[[], str] | None = None


def read_private_key(source: KeySource) -> Ed25519PrivateKey:
    """Read the key to sign with.

    Raises:
        UsageError: the file cannot be read, others can read it, or it is no such key.
    """
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - costs 10 MB
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    data = _read_secret(source.path, "private key")
    if b"PRIVATE KEY" not in data:
        raise _wrong(source.path, "is not a private key in PEM form", _MAKE_KEY)
    passphrase = _passphrase(source) if _is_encrypted(data) else None
    try:
        key = load_pem_private_key(data, passphrase)
    except Exception as error:
        # The library raises a dozen kinds, among them plain ones of its parser.
        what = "cannot be read as a private key: " + (
            "the passphrase is wrong, or the file damaged" if passphrase else "it is damaged"
        )
        raise _wrong(source.path, what, _MAKE_KEY) from error
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise _wrong(source.path, "is a private key, but not for ed25519", _MAKE_KEY)
    return key


def read_public_key(path: Path) -> Ed25519PublicKey:
    """Read the key to check signatures with.

    Raises:
        UsageError: the file cannot be read or is no such key.
    """
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - costs 10 MB
    from cryptography.hazmat.primitives.serialization import load_pem_public_key  # noqa: PLC0415

    data = _read(path, "public key")
    if b"PRIVATE KEY" in data:
        what = "is a private key; checking needs the public one, and the private one stays secret"
        raise _wrong(path, what, _MAKE_PUBLIC)
    try:
        key = load_pem_public_key(data)
    except Exception as error:
        raise _wrong(path, "is not a public key in PEM form", _MAKE_PUBLIC) from error
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise _wrong(path, "is a public key, but not for ed25519", _MAKE_PUBLIC)
    return key


def _passphrase(source: KeySource) -> bytes:
    if source.passphrase is not None:
        return _read_secret(source.passphrase, "passphrase").rstrip(b"\r\n")
    if source.ask is None:
        raise UsageError(
            f"the private key {source.path} is encrypted, and nobody is here to ask",
            next_step="give --passphrase-file FILE (a pipe will do: /dev/fd/3), or run it on a "
            "terminal",
        )
    return source.ask().encode()


def _is_encrypted(data: bytes) -> bool:
    """Tell both encrypted forms of PEM: PKCS #8, and OpenSSL's older header."""
    return b"ENCRYPTED PRIVATE KEY" in data or b"Proc-Type: 4,ENCRYPTED" in data


def _read_secret(path: Path, what: str) -> bytes:
    return _read(path, what, secret=True)


def _read(path: Path, what: str, *, secret: bool = False) -> bytes:
    """Read a small file; a secret one only when nobody else can."""
    try:
        with path.open("rb") as stream:
            # Of what was opened, not of what lies at the path by now.
            others = _others(path, os.fstat(stream.fileno()).st_mode) if secret else ()
            if others:
                raise _readable_by_others(path, what, others)
            data = stream.read(_MAXIMUM_SIZE + 1)
    except OSError as error:
        message = f"cannot read the {what} {path}: {error.strerror or error}"
        raise UsageError(message, next_step=f"give the path of a {what} file") from error
    if len(data) > _MAXIMUM_SIZE:
        raise _wrong(path, f"is no {what}: it has more than {_MAXIMUM_SIZE} bytes", _MAKE_KEY)
    return data


def _others(path: Path, mode: int) -> tuple[str, ...]:
    if sys.platform == "win32":
        return others_who_can_read(file_descriptor(path))
    else:  # noqa: RET505 - a type checker follows platforms by branches only
        return ("other users",) if mode & _OTHERS else ()


def _readable_by_others(path: Path, what: str, others: tuple[str, ...]) -> UsageError:
    command = f"chmod 600 {shlex.quote(str(path))}"
    if sys.platform == "win32":
        command = rights_command(path)
    return UsageError(
        f"others on this machine can read the {what} {path}",
        why=f"its rights include {', '.join(others)}, and whoever could copy it can sign as you",
        next_step=f"take their rights away: {command}; if somebody may have copied it, make a "
        "new one",
    )


def _wrong(path: Path, what: str, next_step: str) -> UsageError:
    return UsageError(f"{path} {what}", next_step=next_step)
