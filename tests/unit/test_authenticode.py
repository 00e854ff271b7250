"""Who signed a library, and everything that can be wrong with a signature."""

from __future__ import annotations

import io
import random
import shutil
import struct
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from bundler.authenticode import signed_data
from bundler.authenticode.libraries import Library, read_signatures
from bundler.authenticode.table import read_table
from bundler.signature_policy import Signature, signature_faults
from tests.sample_archives import FIXTURES, libraries
from tests.signature_checks import refusing_clock, signature_of
from tests.signed_libraries import (
    CODE,
    GOOD,
    NVIDIA,
    ROOT,
    SIGNER,
    STAMPER,
    Signing,
    Wish,
    attach,
    der,
    directory_offset,
    roots,
    sequence,
    sign,
    signature,
    with_table_at,
)

LIBRARY = libraries()["cudnn64_8.dll"]
OTHER = Wish((("common", "Other root"),), (2010, 2035))
ROOTS = signed_data.Roots(roots())


def found_in(library: bytes, folder: Path) -> Signature:
    return signature_of(library, folder, roots())


SOUND: dict[str, Signing] = {
    "expired, with a timestamp": GOOD,
    "still valid": Signing(replace(SIGNER, years=(2018, 2090))),
    "issued by the root itself": Signing(replace(SIGNER, issuer=ROOT), certificates=()),
    "more uses than one": Signing(replace(SIGNER, uses=(CODE, x509.ObjectIdentifier("1.2.3")))),
    "another one nested": Signing(nested=(signature(LIBRARY),)),
    "the same certificates twice": Signing(certificates=GOOD.certificates * 2),
}


@pytest.mark.parametrize("signing", SOUND.values(), ids=SOUND.keys())
def test_a_sound_signature_names_its_signer(signing: Signing, tmp_path: Path) -> None:
    signers = found_in(sign(LIBRARY, signing), tmp_path)

    assert isinstance(signers, tuple)
    assert len(signers) == 1 + len(signing.nested)
    for signer in signers:
        assert (signer.organisation, signer.digest) == ("NVIDIA Corporation", "sha256")
        assert signer.signed_at == "2019-05-06T07:08:09Z"
        assert len(signer.serial) in range(30, 41, 2)
    assert signers[0].issuer in {"Test authority", "Test root"}
    assert signers[0].in_words == "signed by NVIDIA Corporation, 2019-05-06"


def stamped(year: int) -> Signing:
    return Signing(stamped=datetime(year, 5, 6, tzinfo=UTC))


def used_for(*uses: x509.ObjectIdentifier) -> Signing:
    return Signing(replace(SIGNER, uses=uses))


NO_TIME, NO_ROOT, BAD_STAMP = "without a timestamp", "leads to no trusted root", "has a timestamp"
UNSOUND: dict[str, tuple[Signing, str]] = {
    "expired, no timestamp": (Signing(stamped=None), NO_TIME),
    "valid for long, no timestamp":
        (Signing(replace(SIGNER, years=(2018, 2090)), stamped=None), NO_TIME),
    "stamped after the certificate ended":
        (stamped(2022), "signed on 2022-05-06, when its certificate was not valid: 2018-01-01 to"),
    "stamped before it began": (stamped(2017), "signed on 2017-05-06, when"),
    "timestamp of another signature": (Signing(stamp_of=b"another"), BAD_STAMP),
    "two timestamps": (Signing(stamps=2), "gives an attribute twice"),
    "timestamp by a certificate for code": (Signing(stamper=SIGNER), BAD_STAMP),
    "timestamp by an expired certificate":
        (Signing(stamper=replace(STAMPER, years=(2015, 2018))), BAD_STAMP),
    "timestamp of an unknown root": (Signing(stamper=replace(STAMPER, issuer=OTHER)), BAD_STAMP),
    "a root of its own":
        (Signing(replace(SIGNER, issuer=OTHER), certificates=(OTHER,)), NO_ROOT),
    "a root of the right name": (
        Signing(replace(SIGNER, issuer=replace(ROOT, years=(2010, 2034))), certificates=()),
        NO_ROOT,
    ),
    "signed by itself": (Signing(replace(SIGNER, issuer=None), certificates=()), NO_ROOT),
    "issued by who may not issue": (
        Signing(replace(SIGNER, issuer=SIGNER), certificates=(SIGNER, *GOOD.certificates)),
        NO_ROOT,
    ),
    "the authority between is lacking": (Signing(certificates=()), NO_ROOT),
    "a certificate for nothing in particular": (used_for(), "not for signing code"),
    "a certificate for something else":
        (used_for(x509.ObjectIdentifier("1.2.3")), "not for signing code"),
    "a certificate that no timestamp prolongs":
        (used_for(CODE, x509.ObjectIdentifier("1.3.6.1.4.1.311.10.3.13")), "allows no timestamp"),
    "its own bytes": (Signing(spoiled=True), "has a signature that does not hold"),
    "its own certificate is lacking":
        (Signing(carries_own=False), "does not carry the one certificate"),
    "too many certificates":
        (Signing(certificates=GOOD.certificates * 40), "more than 32 certificates"),
    "too many nested": (Signing(nested=(signature(LIBRARY),) * 5), "more than 4 signatures"),
    "a nested one is unsound":
        (Signing(nested=(signature(LIBRARY, Signing(stamped=None)),)), NO_TIME),
}  # fmt: skip


@pytest.mark.parametrize(("signing", "what"), UNSOUND.values(), ids=UNSOUND.keys())
def test_an_unsound_signature_is_said(signing: Signing, what: str, tmp_path: Path) -> None:
    found = found_in(sign(LIBRARY, signing), tmp_path)

    assert isinstance(found, str)
    assert what in found
    assert found.isprintable()
    assert len(found) < 400


def flipped(library: bytes, offset: int) -> bytes:
    return library[:offset] + bytes([library[offset] ^ 1]) + library[offset + 1 :]


def entry_field(offset: int, form: str, value: int) -> Callable[[bytes], bytes]:
    """Change a field of the first entry of the certificate table."""

    def change(library: bytes) -> bytes:
        (table,) = struct.unpack_from("<L", library, directory_offset(library))
        changed = bytearray(library)
        struct.pack_into(form, changed, table + offset, value)
        return bytes(changed)

    return change


def resized(by: int) -> Callable[[bytes], bytes]:
    """Say in the header that the certificate table is longer or shorter."""

    def change(library: bytes) -> bytes:
        table, size = struct.unpack_from("<2L", library, directory_offset(library))
        return with_table_at(library, table, size + by)

    return change


CUT, OUTSIDE, GARBAGE = "cut off", "outside of the file", "cannot be read"
TAMPERED: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "one bit of code": (lambda data: flipped(data, 0x400), "changed after it was signed"),
    "one bit of the header": (lambda data: flipped(data, 2), "changed after it was signed"),
    "signature of another library":
        (lambda _: attach(LIBRARY, signature(b"".join([LIBRARY, bytes(8)]))), "changed after"),
    "a byte appended": (lambda data: data + b"\0", "behind its signature that nobody signed: 1"),
    "eight bytes appended to the table": (lambda data: resized(8)(data + bytes(8)), CUT),
    "the file cut": (lambda data: data[:-8], OUTSIDE),
    "table beyond the file": (lambda data: with_table_at(data, len(data) + 8, 16), OUTSIDE),
    "table at the end of the address space":
        (lambda data: with_table_at(data, 0xFFFFFFF8, 0xFFFFFFFF), OUTSIDE),
    "table in the headers": (lambda data: with_table_at(data, 0, len(data)), OUTSIDE),
    "table nowhere": (lambda data: with_table_at(data, 0, 8), OUTSIDE),
    "table shorter than said": (resized(-8), "behind its signature"),
    "table of four bytes": (lambda data: with_table_at(data, len(data), 4) + bytes(4), CUT),
    "entry longer than the table": (entry_field(0, "<L", 0xFFFFFFFF), CUT),
    "entry of length nothing": (entry_field(0, "<L", 0), CUT),
    "entry that is shorter than its signature": (entry_field(0, "<L", 64), CUT),
    "another revision": (entry_field(4, "<H", 0x0100), "of a kind that is not known"),
    "another kind": (entry_field(6, "<H", 1), "of a kind that is not known"),
    "no DER": (lambda _: attach(LIBRARY, b"garbage!" * 9), GARBAGE),
    "no DER at all": (lambda _: attach(LIBRARY, b""), GARBAGE),
    "DER of endless length": (lambda _: attach(LIBRARY, b"\x30\x80\0\0"), GARBAGE),
    "DER of a huge length": (lambda _: attach(LIBRARY, b"\x30\xff" + b"\xff" * 130), CUT),
    "DER of garbage": (lambda _: attach(LIBRARY, sequence(b"garbage!" * 9)), GARBAGE),
    "DER of nothing": (lambda _: attach(LIBRARY, sequence()), GARBAGE),
    "DER nested deeply": (lambda _: attach(LIBRARY, nested(4000)), GARBAGE),
    "bytes hidden behind the DER":
        (lambda _: attach(LIBRARY, signature(LIBRARY) + b"hidden!!"), "hides bytes"),
    "zeros hidden behind the DER":
        (lambda _: attach(LIBRARY, signature(LIBRARY) + bytes(32)), "hides bytes"),
    "a huge table": (lambda _: attach(LIBRARY, der(0x30, bytes(2**20))), "are refused"),
    "a second signature is garbage":
        (lambda _: attach(LIBRARY, signature(LIBRARY), sequence(b"garbage!")), GARBAGE),
    "a second signature is of another library":
        (lambda _: attach(LIBRARY, signature(LIBRARY), signature(LIBRARY[:-8])), "changed after"),
    "no Windows library": (lambda _: b"MZ", "headers that cannot be read"),
    "an unknown kind of header":
        (lambda data: flipped(data, directory_offset(data) - 144), "headers that cannot be read"),
}  # fmt: skip


def nested(depth: int) -> bytes:
    found = b""
    for _ in range(depth):
        found = sequence(found)
    return found


@pytest.mark.parametrize(("tamper", "what"), TAMPERED.values(), ids=TAMPERED.keys())
def test_tampering_is_seen(tamper: Callable[[bytes], bytes], what: str, tmp_path: Path) -> None:
    found = found_in(tamper(sign(LIBRARY)), tmp_path)

    assert isinstance(found, str)
    assert what in found


def test_the_checksum_is_not_covered(tmp_path: Path) -> None:
    """It cannot be: signing changes it. The hash of the file covers it."""
    library = sign(LIBRARY)

    changed = flipped(library, directory_offset(library) - 112 - 32 + 64)

    assert found_in(changed, tmp_path) == found_in(library, tmp_path) != ()


def test_two_signatures_are_two_signers(tmp_path: Path) -> None:
    found = found_in(sign(LIBRARY, GOOD, GOOD), tmp_path)

    assert len(found) == 2
    assert not list(signature_faults({"a.dll": found}, required=True))


@pytest.mark.parametrize("library", [LIBRARY, (FIXTURES / "machines/x86.dll").read_bytes()])
def test_no_signature(library: bytes, tmp_path: Path) -> None:
    assert found_in(library, tmp_path) == ()


def test_linux_libraries_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\x7fELF")

    assert read_signatures({"lib/libcudnn.so.8": Library(tmp_path / "a")}, None) == {}


STRANGERS: dict[str, tuple[tuple[str, str], ...]] = {
    "another organisation": (("organization", "Somebody"), ("common", "Somebody")),
    "its name as the common name only": (("common", "NVIDIA Corporation"),),
    "its name as the unit": (("organization", "Somebody"), ("unit", "NVIDIA Corporation")),
    "its name and more": (("organization", "NVIDIA Corporation Ltd"),),
    "its name in another case": (("organization", "nvidia corporation"),),
    "its name with a space": (("organization", "NVIDIA Corporation "),),
    "its name in other letters": (("organization", "NVIDI\u0410 Corporation"),),
    "its name and a second one": (*NVIDIA, ("organization", "Somebody")),
    "a second one and its name": (("organization", "Somebody"), *NVIDIA),
    "what a terminal obeys": (("organization", "\x1b[2J"),),
}


@pytest.mark.parametrize("subject", STRANGERS.values(), ids=STRANGERS.keys())
def test_a_stranger_is_not_the_vendor(subject: tuple[tuple[str, str], ...], tmp_path: Path) -> None:
    found = found_in(sign(LIBRARY, Signing(replace(SIGNER, subject=subject))), tmp_path)

    (fault,) = signature_faults({"a.dll": found}, required=False)
    assert "is signed by " in fault.what
    assert "not by NVIDIA Corporation" in fault.what
    assert fault.what.isprintable()


def test_a_second_signature_by_a_stranger(tmp_path: Path) -> None:
    stranger = Signing(replace(SIGNER, subject=(("organization", "Somebody"),)))
    found = found_in(sign(LIBRARY, GOOD, stranger), tmp_path)

    (fault,) = signature_faults({"a.dll": found}, required=False)
    assert fault.what == "is signed by Somebody, not by NVIDIA Corporation"


def test_microsoft_does_not_trust_the_roots_of_these_tests() -> None:
    found = signed_data.examine(signature(LIBRARY), signed_data.Roots(None))

    assert isinstance(found, str)
    assert "has a timestamp that does not hold" in found


def test_nobody_asks_what_time_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = signed_data.examine(signature(LIBRARY), ROOTS)
    monkeypatch.setattr("certvalidator.context.datetime", refusing_clock())

    assert signed_data.examine(signature(LIBRARY), ROOTS) == expected
    assert not isinstance(expected, str)


def mutations(count: int) -> list[bytes]:
    """Make signatures with some bytes changed, dropped or doubled, the same in every run."""
    chance, whole = random.Random(8905), signature(LIBRARY)
    made = []
    for _ in range(count):
        changed = bytearray(whole)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(changed))
            match chance.randrange(4):
                case 0:
                    changed[at] = chance.randrange(256)
                case 1:
                    del changed[at : at + chance.randint(1, 40)]
                case 2:
                    changed[at:at] = changed[at : at + chance.randint(1, 40)]
                case _:
                    changed[at] ^= 1 << chance.randrange(8)
        made.append(bytes(changed))
    return made


def test_whatever_the_bytes_are_there_is_an_answer() -> None:
    """Unsound, or exactly what the whole signature said."""
    expected = signed_data.examine(signature(LIBRARY), ROOTS)

    found = [signed_data.examine(each, ROOTS) for each in mutations(300)]

    assert {each for each in found if not isinstance(each, str)} <= {expected}
    assert all(each.isprintable() for each in found if isinstance(each, str))
    assert len({each for each in found if isinstance(each, str)}) > 20


@given(st.binary(max_size=80))
def test_any_table_is_read_or_refused(table: bytes) -> None:
    library = with_table_at(LIBRARY, len(LIBRARY), len(table)) + table

    found = read_table(io.BytesIO(library), len(library))

    assert isinstance(found, str) or all(each[0] == 0x30 for each in found.signatures)


@given(st.integers(0, 0x300), st.binary(min_size=1, max_size=8))
def test_any_header_is_read_or_refused(offset: int, change: bytes) -> None:
    library = sign(LIBRARY)
    changed = library[:offset] + change + library[offset + len(change) :]

    found = read_table(io.BytesIO(changed), len(changed))

    assert isinstance(found, str) or len(found.uncovered) in {2, 3}


@pytest.mark.skipif(not shutil.which("osslsigncode"), reason="osslsigncode is not installed")
@pytest.mark.parametrize(
    ("tamper", "code"), [(lambda data: data, 0), (lambda data: flipped(data, 0x400), 1)]
)
def test_osslsigncode_agrees(tamper: Callable[[bytes], bytes], code: int, tmp_path: Path) -> None:
    (tmp_path / "roots.pem").write_bytes(roots())
    (tmp_path / "a.dll").write_bytes(tamper(sign(LIBRARY)))
    words = "osslsigncode verify -ignore-crl -CAfile roots.pem -TSA-CAfile roots.pem a.dll"

    run = subprocess.run(words.split(), cwd=tmp_path, capture_output=True, check=False)

    assert run.returncode == code, run.stdout.decode()
