"""Authenticode: who signed a Windows library, checked offline and without a clock.

A signature is judged at the moment of its own timestamp, never now: the same bytes get the
same verdict in every year, whatever has expired since. A signature without a timestamp says
nothing about when it was made, so it is a fault. Whether a certificate was revoked is not
asked: that takes a network and changes with time.

Source: Microsoft's "Windows Authenticode Portable Executable Signature Format"; RFC 3161.
"""

from __future__ import annotations

from dataclasses import dataclass

from bundler.lock import Signer


@dataclass(frozen=True)
class SignedDigest:
    """What one sound signature says.

    Args:
        digest: the Authenticode digest that the library had when it was signed.
        signer: who signed it, and with which digest algorithm.
    """

    digest: bytes
    signer: Signer


Examined = tuple[SignedDigest, ...] | str
"""Every signature of a library, nested ones included; or why they are not sound."""
