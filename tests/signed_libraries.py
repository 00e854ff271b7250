"""Libraries with Authenticode signatures of authorities made here, sound and unsound."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache

from asn1crypto.core import Integer, ObjectIdentifier
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NVIDIA = (("organization", "NVIDIA Corporation"), ("common", "NVIDIA Corporation"))
STAMPED = datetime(2019, 5, 6, 7, 8, 9, tzinfo=UTC)
_FIELDS = {
    "organization": NameOID.ORGANIZATION_NAME,
    "common": NameOID.COMMON_NAME,
    "unit": NameOID.ORGANIZATIONAL_UNIT_NAME,
}
_SIGNED_DATA, _INDIRECT = "1.2.840.113549.1.7.2", "1.3.6.1.4.1.311.2.1.4"
_STAMP_CONTENT = "1.2.840.113549.1.9.16.1.4"
_SHA256, _ECDSA = "2.16.840.1.101.3.4.2.1", "1.2.840.10045.4.3.2"


@dataclass(frozen=True)
class Identity:
    """A certificate and the key to it."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


@dataclass(frozen=True)
class Wish:
    """What a certificate is to say.

    Args:
        subject: fields and values, in order.
        years: first and last of its validity.
        uses: extended key usages; none is an authority.
        issuer: who signs it; nobody is itself.
    """

    subject: tuple[tuple[str, str], ...]
    years: tuple[int, int] = (2018, 2021)
    uses: tuple[x509.ObjectIdentifier, ...] = ()
    issuer: Wish | None = None


CODE, TIME = ExtendedKeyUsageOID.CODE_SIGNING, ExtendedKeyUsageOID.TIME_STAMPING
ROOT = Wish((("common", "Test root"),), (2010, 2035))
BETWEEN = Wish((("common", "Test authority"),), (2012, 2034), (), ROOT)
SIGNER = Wish(NVIDIA, (2018, 2021), (CODE,), BETWEEN)
STAMPER = Wish((("common", "Test stamps"),), (2015, 2029), (TIME,), ROOT)


@cache
def issued(wish: Wish) -> Identity:
    """Make a certificate, once."""
    key = ec.generate_private_key(ec.SECP256R1())
    above = issued(wish.issuer) if wish.issuer else None
    subject = _name(wish)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(above.certificate.subject if above else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(wish.years[0], 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(wish.years[1], 1, 1, tzinfo=UTC))
        .add_extension(x509.BasicConstraints(not wish.uses, None), critical=True)
    )
    if wish.uses:
        builder = builder.add_extension(x509.ExtendedKeyUsage(wish.uses), critical=True)
    signed = builder.sign(above.key if above else key, hashes.SHA256())
    return Identity(signed, key)


def _name(wish: Wish) -> x509.Name:
    return x509.Name([x509.NameAttribute(_FIELDS[key], value) for key, value in wish.subject])


def roots(*wishes: Wish) -> bytes:
    """Give the PEM of root certificates, that of `ROOT` unless others are named."""
    encoding = serialization.Encoding.PEM
    return b"".join(issued(wish).certificate.public_bytes(encoding) for wish in wishes or (ROOT,))


@dataclass(frozen=True)
class Signing:
    """How to sign a library.

    Args:
        signer: by whom.
        stamped: the timestamp's moment, or nothing for no timestamp.
        stamper: who makes the timestamp.
        stamps: how often it carries the timestamp.
        stamp_of: what the timestamp is of, instead of the signature.
        nested: DER of signatures inside this one.
        spoiled: the signature's own bytes are wrong.
        certificates: what it carries besides the signer's certificate.
        carries_own: it carries the signer's certificate.
    """

    signer: Wish = SIGNER
    stamped: datetime | None = STAMPED
    stamper: Wish = STAMPER
    stamps: int = 1
    stamp_of: bytes | None = None
    nested: tuple[bytes, ...] = ()
    spoiled: bool = False
    certificates: tuple[Wish, ...] = (BETWEEN,)
    carries_own: bool = True


GOOD = Signing()


def sign(library: bytes, *signings: Signing) -> bytes:
    """Give a library signatures, one table entry each."""
    return attach(library, *(signature(library, signing) for signing in signings or (GOOD,)))


def attach(library: bytes, *signatures: bytes) -> bytes:
    """Write a certificate table behind a library and its place into the header."""
    table = b"".join(entry(signature) for signature in signatures)
    padded = library + bytes(-len(library) % 8)
    return with_table_at(padded, len(padded), len(table)) + table


def entry(signature: bytes) -> bytes:
    """Write one entry of a certificate table."""
    body = signature + bytes(-len(signature) % 8)
    return struct.pack("<L2H", 8 + len(body), 0x0200, 2) + body


def directory_offset(library: bytes) -> int:
    """Find the certificate table's place in the header of a 64-bit library."""
    (start,) = struct.unpack_from("<L", library, 0x3C)
    return int(start) + 24 + 112 + 4 * 8


def with_table_at(library: bytes, offset: int, size: int) -> bytes:
    """Say in the header where the certificate table lies."""
    at = directory_offset(library)
    return library[:at] + struct.pack("<2L", offset, size) + library[at + 8 :]


def image_digest(library: bytes) -> bytes:
    """Hash an unsigned library the way Authenticode does, padded to eight bytes."""
    padded = library + bytes(-len(library) % 8)
    at = directory_offset(library)
    checksum = at - 112 - 32 + 64
    parts = (padded[:checksum], padded[checksum + 4 : at], padded[at + 8 :])
    return hashlib.sha256(b"".join(parts)).digest()


def signature(library: bytes, signing: Signing = GOOD) -> bytes:
    """Make the DER of one signature of a library."""
    who = issued(signing.signer)
    image = sequence(
        oid("1.3.6.1.4.1.311.2.1.15"),
        sequence(der(0x03, b"\0"), der(0xA0, der(0xA2, der(0x80)))),
    )
    digest = sequence(_algorithm(), der(0x04, image_digest(library)))
    content = image + digest
    value = _signed_value(who, _INDIRECT, content)
    if signing.spoiled:
        value = replace(value, signature=value.signature[:-1] + bytes([value.signature[-1] ^ 1]))
    attributes = [_attribute("1.3.6.1.4.1.311.2.4.1", *signing.nested)] if signing.nested else []
    if signing.stamped is not None:
        of = value.signature if signing.stamp_of is None else signing.stamp_of
        stamp = _stamp(signing.stamper, signing.stamped, of)
        attributes += [_attribute("1.3.6.1.4.1.311.3.3.1", stamp)] * signing.stamps
    carried = [who] * signing.carries_own + [issued(wish) for wish in signing.certificates]
    return _signed_data(_INDIRECT, sequence(content), value, carried, attributes)


def _stamp(stamper: Wish, moment: datetime, signed: bytes) -> bytes:
    who = issued(stamper)
    info = sequence(
        integer(1),
        oid("1.2.3.4"),
        sequence(_algorithm(), der(0x04, hashlib.sha256(signed).digest())),
        integer(7),
        der(0x18, f"{moment:%Y%m%d%H%M%SZ}".encode()),
    )
    value = _signed_value(who, _STAMP_CONTENT, info)
    return _signed_data(_STAMP_CONTENT, der(0x04, info), value, [who], [])


@dataclass(frozen=True)
class _Signed:
    """The attributes that were signed, and their signature."""

    who: Identity
    attributes: bytes
    signature: bytes


def _signed_value(who: Identity, content_type: str, content: bytes) -> _Signed:
    attributes = b"".join(
        sorted([
            _attribute("1.2.840.113549.1.9.3", oid(content_type)),
            _attribute("1.2.840.113549.1.9.4", der(0x04, hashlib.sha256(content).digest())),
        ])
    )  # fmt: skip
    value = who.key.sign(der(0x31, attributes), ec.ECDSA(hashes.SHA256()))
    return _Signed(who, attributes, value)


def _signed_data(
    content_type: str,
    content: bytes,
    signed: _Signed,
    carried: Iterable[Identity],
    unsigned_attributes: list[bytes],
) -> bytes:
    own = signed.who.certificate
    signer = sequence(
        integer(1),
        sequence(own.issuer.public_bytes(), integer(own.serial_number)),
        _algorithm(),
        der(0xA0, signed.attributes),
        sequence(oid(_ECDSA)),
        der(0x04, signed.signature),
        der(0xA1, *unsigned_attributes) if unsigned_attributes else b"",
    )
    encoding = serialization.Encoding.DER
    data = sequence(
        integer(1 if content_type == _INDIRECT else 3),
        der(0x31, _algorithm()),
        sequence(oid(content_type), der(0xA0, content)),
        der(0xA0, *(each.certificate.public_bytes(encoding) for each in carried)),
        der(0x31, signer),
    )
    return sequence(oid(_SIGNED_DATA), der(0xA0, data))


def _attribute(kind: str, *values: bytes) -> bytes:
    return sequence(oid(kind), der(0x31, *values))


def _algorithm() -> bytes:
    return sequence(oid(_SHA256), b"\x05\0")


def sequence(*parts: bytes) -> bytes:
    """Encode a SEQUENCE."""
    return der(0x30, *parts)


def oid(dotted: str) -> bytes:
    """Encode an OBJECT IDENTIFIER."""
    return bytes(ObjectIdentifier(dotted).dump())


def integer(value: int) -> bytes:
    """Encode an INTEGER."""
    return bytes(Integer(value).dump())


def der(tag: int, *parts: bytes) -> bytes:
    """Encode a value under a tag."""
    body = b"".join(parts)
    if len(body) < 0x80:
        return bytes([tag, len(body)]) + body
    length = len(body).to_bytes((len(body).bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + body
