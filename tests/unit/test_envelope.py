"""Signed envelopes, as we write them and as others would have us believe them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined]  # its way to export

from bundler.envelope import PAYLOAD_TYPE, key_id, seal, signed_bytes, unseal
from bundler.errors import ArchiveError

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(32))
PAYLOAD = b'{"a": 1}\n'
SEALED = seal(PAYLOAD, KEY)


def test_what_was_sealed_is_unsealed() -> None:
    assert unseal(SEALED, "e", KEY.public_key()) == PAYLOAD
    assert json.loads(SEALED).keys() == {"payload", "payloadType", "signatures"}
    assert json.loads(SEALED)["payloadType"] == "application/vnd.in-toto+json"


def test_the_same_key_and_bytes_give_the_same_envelope() -> None:
    assert seal(PAYLOAD, KEY) == SEALED
    assert seal(PAYLOAD, OTHER) != SEALED


def test_signed_bytes_are_those_of_the_specification() -> None:
    assert (
        signed_bytes("http://example.com/HelloWorld", b"hello world")
        == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def independent_key(key: Ed25519PublicKey) -> SSlibKey:
    return SSlibKey.from_crypto(key, keyid=key_id(key))


def test_another_library_accepts_our_envelope() -> None:
    envelope = Envelope.from_dict(json.loads(SEALED))

    assert envelope.payload == PAYLOAD
    assert envelope.verify([independent_key(KEY.public_key())], 1)
    with pytest.raises(VerificationError):
        envelope.verify([independent_key(OTHER.public_key())], 1)


def test_we_accept_an_envelope_of_another_library() -> None:
    envelope = Envelope(PAYLOAD, PAYLOAD_TYPE, {})
    signature = base64.b64encode(KEY.sign(envelope.pae())).decode()
    document = {**envelope.to_dict(), "signatures": [{"sig": signature}]}

    assert unseal(json.dumps(document).encode(), "e", KEY.public_key()) == PAYLOAD


Change = Callable[[dict[str, Any]], object]
ACCEPTED: dict[str, Change] = {
    "no key id": lambda e: e["signatures"][0].pop("keyid"),
    "a wrong key id": lambda e: e["signatures"][0].update(keyid="f" * 64),
    "an unknown field": lambda e: e.update(more=1),
    "a second signature": lambda e: e["signatures"].insert(0, {"keyid": "x", "sig": "AAAA"}),
    "URL-safe base64": lambda e: e["signatures"][0].update(
        sig=e["signatures"][0]["sig"].replace("+", "-").replace("/", "_")
    ),
}
CHANGED = "was changed after it was signed, or the signature is forged"
NOT_SIGNED = "is not signed by the key you gave"
NO_ENVELOPE = "is not a DSSE envelope"
REFUSED: dict[str, tuple[Change, str]] = {
    "another payload": (lambda e: e.update(payload=base64.b64encode(b"{}").decode()), CHANGED),
    "another type": (lambda e: e.update(payloadType="text/plain"), "does not hold a provenance"),
    "a forged signature": (
        lambda e: e["signatures"][0].update(sig=base64.b64encode(bytes(64)).decode()), CHANGED),
    "a short signature": (lambda e: e["signatures"][0].update(sig="AAAA"), CHANGED),
    "an empty signature": (lambda e: e["signatures"][0].update(sig=""), CHANGED),
    "another's key id": (
        lambda e: e["signatures"][0].update(keyid=key_id(OTHER.public_key()), sig="AAAA"),
        NOT_SIGNED,
    ),
    "no payload": (lambda e: e.pop("payload"), NO_ENVELOPE),
    "no type": (lambda e: e.pop("payloadType"), NO_ENVELOPE),
    "no signatures": (lambda e: e.pop("signatures"), NO_ENVELOPE),
    "an empty list of signatures": (lambda e: e.update(signatures=[]), NO_ENVELOPE),
    "a signature that is none": (lambda e: e.update(signatures=[1]), NO_ENVELOPE),
    "signatures that are none": (lambda e: e.update(signatures={}), NO_ENVELOPE),
    "no sig": (lambda e: e["signatures"][0].pop("sig"), NO_ENVELOPE),
    "not base64": (lambda e: e.update(payload="?"), NO_ENVELOPE),
    "a key id that is no text": (lambda e: e["signatures"][0].update(keyid=1), NO_ENVELOPE),
}  # fmt: skip


@pytest.mark.parametrize("change", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_does_not_matter(change: Change) -> None:
    document = json.loads(SEALED)
    change(document)

    assert unseal(json.dumps(document).encode(), "e", KEY.public_key()) == PAYLOAD


@pytest.mark.parametrize(("change", "what"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused(change: Change, what: str) -> None:
    document = json.loads(SEALED)
    change(document)

    with pytest.raises(ArchiveError, match=what) as caught:
        unseal(json.dumps(document).encode(), "e", KEY.public_key())

    assert caught.value.exit_code == 3
    assert caught.value.next_step


def test_another_key_is_named_with_those_of_the_envelope() -> None:
    with pytest.raises(ArchiveError, match=NOT_SIGNED) as caught:
        unseal(SEALED, "e", OTHER.public_key())

    text = str(caught.value)
    assert key_id(OTHER.public_key()) in text
    assert key_id(KEY.public_key()) in text


@given(st.binary(max_size=200))
def test_garbage_is_an_error_of_ours(data: bytes) -> None:
    with pytest.raises(ArchiveError):
        unseal(data, "e", KEY.public_key())


@given(st.integers(0, len(SEALED) - 1), st.integers(1, 255))
def test_no_changed_byte_passes_with_another_payload(place: int, change: int) -> None:
    data = bytearray(SEALED)
    data[place] ^= change

    try:
        found = unseal(bytes(data), "e", KEY.public_key())
    except ArchiveError:
        return
    assert found == PAYLOAD
