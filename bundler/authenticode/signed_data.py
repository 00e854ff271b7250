"""Whether one signature is sound: its timestamp, its chain of certificates, its own bytes.

Imported only by the worker process, and by tests: signify and what it stands on take memory,
and `openssl_version` must have let them in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from bundler.authenticode import Examined, SignedDigest
from bundler.authenticode.openssl_version import long_versions_readable
from bundler.lock import Signer

with long_versions_readable():
    import oscrypto

    # cffi, where it is installed, compiles declarations at every start.
    oscrypto.use_ctypes()
    import oscrypto.asymmetric

from signify.authenticode import AuthenticodeSignature, CertificateTrustList
from signify.authenticode.cert_store import CERTIFICATE_LOCATION, LEGACY_TRUSTED_CERTIFICATE_STORE
from signify.exceptions import (
    AuthenticodeCounterSignerError,
    CertificateVerificationError,
    VerificationError,
)
from signify.x509 import Certificate, CertificateName, CertificateStore
from signify.x509.context import CombinedCertificateStore

if TYPE_CHECKING:
    from datetime import datetime

_ALGORITHMS = frozenset({"sha1", "sha256", "sha384", "sha512"})
_MAXIMUM_SIGNATURES, _MAXIMUM_CERTIFICATES = 4, 32
_MAXIMUM_REASON = 200


class _UnsoundError(Exception):
    """A signature is not sound; the message follows the library's name."""


class Roots:
    """The certificates that chains may end at.

    Args:
        pem: certificates, or nothing for those of Microsoft's root programme, each with the
            uses and dates that Microsoft trusts it for.
    """

    def __init__(self, pem: bytes | None) -> None:
        self._pem = pem

    @cached_property
    def _stores(self) -> tuple[_NamedStore, ...]:
        if self._pem is not None:
            return (_NamedStore(CertificateStore(Certificate.from_pems(self._pem))),)
        programme = Certificate.from_pems(CERTIFICATE_LOCATION.read_bytes())
        # The context reports the last refusal, and the list knows why it refuses.
        return (
            _NamedStore(LEGACY_TRUSTED_CERTIFICATE_STORE),
            _NamedStore(CertificateStore(programme, ctl=_TrustList.from_stl_file())),
        )

    def named_in(self, certificates: Iterable[Certificate]) -> CertificateStore:
        """Give the few roots that these certificates could lead to; looking at all is slow."""
        names = {
            name.dump()
            for certificate in certificates
            for name in (certificate.asn1.issuer, certificate.asn1.subject)
        }
        stores = [store.named(names) for store in self._stores]
        return CombinedCertificateStore(*stores, trusted=True)


class _NamedStore:
    """A store whose certificates are found by name."""

    def __init__(self, store: CertificateStore) -> None:
        self._list = store.ctl
        self._by_name: dict[bytes, list[Certificate]] = {}
        for certificate in store:
            self._by_name.setdefault(certificate.asn1.subject.dump(), []).append(certificate)

    def named(self, names: Iterable[bytes]) -> CertificateStore:
        found = (root for name in names for root in self._by_name.get(name, ()))
        return CertificateStore(found, trusted=True, ctl=self._list)


class _TrustList(CertificateTrustList):
    """Microsoft's list, read once instead of at every look."""

    @cached_property
    def _subjects(self) -> dict[str, object]:  # type: ignore[override]
        return {subject.identifier_str: subject for subject in self.subjects}


def examine(der: bytes, roots: Roots) -> Examined:
    """Check one signature, and those nested in it, in everything but the library's digest.

    Args:
        der: a ContentInfo, whatever bytes it holds.
        roots: where chains may end.
    """
    try:
        signature = AuthenticodeSignature.from_envelope(der)
        nested = _bounded(signature.iter_recursive_nested())
        return tuple(_sound(each, roots) for each in nested)
    except _UnsoundError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - hostile bytes make the parsers raise anything
        return f"has a signature that cannot be read ({_printable(error)})"


def _bounded(signatures: Iterator[AuthenticodeSignature]) -> list[AuthenticodeSignature]:
    found = [each for each, _ in zip(signatures, range(_MAXIMUM_SIGNATURES + 1), strict=False)]
    if len(found) > _MAXIMUM_SIGNATURES:
        raise _UnsoundError(f"has more than {_MAXIMUM_SIGNATURES} signatures in one")
    return found


def _sound(signature: AuthenticodeSignature, roots: Roots) -> SignedDigest:
    _check_attributes(signature)
    stamp = signature.signer_info.countersigner
    moment = stamp.signing_time if stamp else None
    certificates = list(signature.certificates)
    stamping = list(getattr(stamp, "certificates", ()))
    if len(certificates) + len(stamping) > _MAXIMUM_CERTIFICATES:
        raise _UnsoundError(f"has a signature with more than {_MAXIMUM_CERTIFICATES} certificates")
    own = _own_certificate(signature, certificates)
    _check_use(own, moment)
    store = roots.named_in([*certificates, *stamping])
    _check_chains(signature, store, moment)
    algorithm = signature.indirect_data.digest_algorithm().name
    if algorithm not in _ALGORITHMS:
        raise _UnsoundError(f"is signed by way of {algorithm}, which is too weak")
    return SignedDigest(signature.indirect_data.digest, _signer(own, moment, algorithm))


def _check_attributes(signature: AuthenticodeSignature) -> None:
    """Refuse repeated attributes: signify would see the last one, Windows perhaps another."""
    for group in ("signed_attrs", "unsigned_attrs"):
        kinds = [attribute["type"].dotted for attribute in signature.signer_info.asn1[group]]
        if len(set(kinds)) < len(kinds):
            raise _UnsoundError("has a signature that gives an attribute twice")


def _own_certificate(
    signature: AuthenticodeSignature, certificates: Iterable[Certificate]
) -> Certificate:
    """Find the certificate that the signature says it was made with."""
    signer = signature.signer_info
    found = [
        certificate
        for certificate in certificates
        if (certificate.issuer, certificate.serial_number) == (signer.issuer, signer.serial_number)
    ]
    if len(found) != 1:
        raise _UnsoundError("does not carry the one certificate that it was signed with")
    return found[0]


def _check_use(own: Certificate, moment: datetime | None) -> None:
    """Refuse what would make the verdict depend on the clock, and certificates for other uses."""
    uses = own.extensions.get("extended_key_usage") or []
    if moment is None:
        raise _UnsoundError(
            "was signed without a timestamp, so nothing says whether its certificate was valid then"
        )
    if "microsoft_lifetime_signing" in uses:
        raise _UnsoundError("was signed with a certificate that allows no timestamp to outlive it")
    if not own.valid_from <= moment <= own.valid_to:
        raise _UnsoundError(
            f"was signed on {moment:%Y-%m-%d}, when its certificate was not valid: "
            f"{own.valid_from:%Y-%m-%d} to {own.valid_to:%Y-%m-%d}"
        )
    if "code_signing" not in uses:
        raise _UnsoundError("was signed with a certificate that is not for signing code")


def _check_chains(
    signature: AuthenticodeSignature, store: CertificateStore, moment: datetime | None
) -> None:
    try:
        signature.verify(
            # The worker has no library; the digest that was signed is compared outside.
            expected_hash=signature.indirect_data.digest,
            trusted_certificate_store=store,
            # Both chains are judged at the timestamp's moment, never now.
            verification_context_kwargs={"timestamp": moment, "allow_legacy": False},
        )
    except AuthenticodeCounterSignerError as error:
        raise _UnsoundError(f"has a timestamp that does not hold ({_printable(error)})") from error
    except CertificateVerificationError as error:
        raise _UnsoundError(
            f"was signed with a certificate that leads to no trusted root ({_printable(error)})"
        ) from error
    except VerificationError as error:
        raise _UnsoundError(f"has a signature that does not hold ({_printable(error)})") from error


def _signer(own: Certificate, moment: datetime | None, algorithm: str) -> Signer:
    return Signer(
        organisation=_values(own.subject, "organization_name"),
        issuer=_values(own.issuer, "common_name"),
        serial=own.asn1["tbs_certificate"]["serial_number"].contents.hex().removeprefix("00"),
        signed_at=f"{moment:%Y-%m-%dT%H:%M:%SZ}",
        digest=algorithm,
    )


def _values(name: CertificateName, field: str) -> str:
    """Give every value of a field, so that a second one cannot hide."""
    values = [
        str(pair["value"].native)
        for part in name.asn1.chosen
        for pair in part
        if pair["type"].native == field
    ]
    return _shown(", ".join(values))


def _printable(error: Exception) -> str:
    """Give an error's words in one short line; names in certificates may hold anything."""
    text = _shown(" ".join(f"{error}".split()) or type(error).__name__)
    return text if len(text) <= _MAXIMUM_REASON else text[:_MAXIMUM_REASON] + "..."


def _shown(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)
