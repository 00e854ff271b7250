"""Signed envelopes: bytes, their type and an ed25519 signature over both.

The format is small and fixed, so it is written here and the cryptography is the library's.
securesystemslib, which has the format too, loads twice as much and trusts the key's name
in an envelope, which nobody signed; the tests let it check what is written here.

Source: DSSE 1.0.2, protocol.md and envelope.md; RFC 8032 for ed25519, whose signatures are
a function of key and message.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bundler.errors import ArchiveError, Fault
from bundler.json_fields import FieldReader
from bundler.strict_json import JsonNode, read_json_object, shown

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"


@dataclass(frozen=True)
class Envelope:
    """What an envelope holds; nothing of it is true until a signature was checked.

    Args:
        payload: the signed bytes.
        payload_type: what they are.
        signatures: key id, which is a hint only, and signature.
    """

    payload: bytes
    payload_type: str
    signatures: tuple[tuple[str, bytes], ...]


def seal(payload: bytes, key: Ed25519PrivateKey) -> bytes:
    """Sign an in-toto statement and write the envelope, as JSON with a final newline."""
    envelope = {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [
            {
                "keyid": key_id(key.public_key()),
                "sig": base64.b64encode(key.sign(signed_bytes(PAYLOAD_TYPE, payload))).decode(),
            }
        ],
    }
    return (json.dumps(envelope, indent=1, sort_keys=True) + "\n").encode()


def unseal(data: bytes, name: str, key: Ed25519PublicKey) -> bytes:
    """Check an envelope's signature and give what it holds.

    Args:
        data: of the envelope.
        name: what to call it in messages.
        key: whose signature must be there; others may be there as well.

    Raises:
        ArchiveError: it is no envelope, of another type, or not signed by this key.
    """
    envelope = read_envelope(data, name)
    if envelope.payload_type != PAYLOAD_TYPE:
        raise ArchiveError(
            f"{name} does not hold a provenance",
            why=f"its payload is of type {shown(envelope.payload_type)}, not {PAYLOAD_TYPE}",
            next_step="give the *.provenance.dsse.json that `build --sign` wrote",
        )
    message = signed_bytes(envelope.payload_type, envelope.payload)
    if any(_is_by(key, signature, message) for _, signature in envelope.signatures):
        return envelope.payload
    raise _unsigned(envelope, name, key_id(key))


def read_envelope(data: bytes, name: str) -> Envelope:
    """Read an envelope without checking who signed it.

    Raises:
        ArchiveError: it is not an envelope; lists every fault.
    """
    document = read_json_object(data, name)
    reader = FieldReader(document.faults)
    payload_type = reader.text(document.top, "payloadType")
    payload = _decoded(reader, document.top, "payload")
    signatures = tuple(_signatures(reader, document.top))
    if reader.faults:
        raise ArchiveError(
            f"{name} is not a DSSE envelope",
            next_step="give the *.provenance.dsse.json that `build --sign` wrote",
            faults=reader.faults,
        )
    return Envelope(payload, payload_type, signatures)


def signed_bytes(payload_type: str, payload: bytes) -> bytes:
    """Give what is signed: DSSE's pre-authentication encoding."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def key_id(key: Ed25519PublicKey) -> str:
    """Name a public key by the SHA-256 of its DER form, in lowercase hex."""
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415 - costs 10 MB
        Encoding,
        PublicFormat,
    )

    return hashlib.sha256(
        key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    ).hexdigest()


def _signatures(reader: FieldReader, top: JsonNode) -> list[tuple[str, bytes]]:
    items = top.value.get("signatures")
    if not isinstance(items, list) or not items:
        reader.fault("signatures", "must be an array with one signature at least")
        return []
    found = []
    for number, item in enumerate(items):
        where = f"signatures[{number}]"
        if not isinstance(item, dict):
            reader.fault(where, "must be an object")
            continue
        node = JsonNode(where, item)
        found.append((reader.optional_text(node, "keyid") or "", _decoded(reader, node, "sig")))
    return found


def _decoded(reader: FieldReader, node: JsonNode, key: str) -> bytes:
    """Take base64, of which DSSE allows the standard and the URL-safe form."""
    text = reader.text(node, key)
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        reader.fault(node.path(key), "must be base64")
        return b""


def _is_by(key: Ed25519PublicKey, signature: bytes, message: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - costs 10 MB

    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return True


def _unsigned(envelope: Envelope, name: str, wanted: str) -> ArchiveError:
    hints = [hint for hint, _ in envelope.signatures]
    if wanted in hints:
        return ArchiveError(
            f"{name} was changed after it was signed, or the signature is forged",
            why=f"it says that key {wanted} signed it, and the signature does not fit the content",
            next_step="do not ship it; get the envelope again, or build and sign again",
        )
    return ArchiveError(
        f"{name} is not signed by the key you gave",
        faults=[Fault("the key you gave", wanted)]
        + [Fault("the envelope names", shown(hint) if hint else "no key") for hint in hints],
        next_step="give the public key of whoever built it, or do not trust it",
    )
