"""Small sound inputs to begin from, all made by code; the fuzzer takes them apart."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import tarfile
import zipfile
from collections.abc import Mapping

from bundler.lock import (
    FILE_NAME,
    LibraryFacts,
    Lock,
    LockedArchive,
    LockedFile,
    LockedWitness,
    Need,
    NeedKind,
    Role,
    Signer,
)
from bundler.names import Platform, ReleaseIdentity, Version
from tests import raw_zips
from tests.sample_archives import FIXTURES
from tests.unit import manifest_bytes

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_SIGNER = Signer("NVIDIA Corporation", "An issuer", "0a1b", "2023-09-07T07:12:54Z", "sha256")
_FACTS = LibraryFacts("x86_64", "8.9.5.29", ("K.dll",), ("cublas64_11.dll",), 3, _SIGNER)
_LIBRARY = b"MZ"
_LICENCE = b"L"
_LIBRARY_SHA256 = hashlib.sha256(_LIBRARY).hexdigest()
LOCK = Lock(
    identity=ReleaseIdentity(Version.parse("8.9.5.29"), "11", Platform.WINDOWS_X86_64),
    archive=LockedArchive("a.zip", 7, "1" * 64, True, (LockedWitness("sha256", "given"),)),
    files=(
        LockedFile("LICENSE", len(_LICENCE), hashlib.sha256(_LICENCE).hexdigest(), Role.LICENCE),
        LockedFile("bin/cudnn64_8.dll", len(_LIBRARY), _LIBRARY_SHA256, Role.RUNTIME, _FACTS),
    ),
    load_order=("cudnn64_8.dll",),
    needs=(Need("cublas64_11.dll", ("cudnn64_8.dll",), NeedKind.REQUIRED, "why", "libcublas"),),
    warnings=("a warning with \u00fc",),
)


def zips() -> list[bytes]:
    """Make zips in the forms that writers give them."""
    member = raw_zips.Member()
    deflated = raw_zips.deflated(name=b"x.h")
    folder = raw_zips.Member(b"bin/", b"", size=0, compressed=0, crc32=0)
    return [
        raw_zips.made(folder, member, deflated),
        raw_zips.made(raw_zips.streamed(deflated, mark=b"PK\x07\x08"), member),
        raw_zips.made_zip64(member, deflated),
    ]


def nothing_much() -> list[bytes]:
    """Make bytes for targets that take them as choices."""
    return [bytes(range(length)) for length in (9, 99, 256)]


def manifests() -> list[bytes]:
    """Make manifests of two generations and the irregular one."""
    flat = manifest_bytes.archive_fields("windows-x86_64", "11")
    return [
        json.dumps(document).encode()
        for document in (
            manifest_bytes.manifest_object({"windows-x86_64": flat}),
            manifest_bytes.two_variants(),
            manifest_bytes.irregular_9_27(),
        )
    ]


def locks() -> list[bytes]:
    """Make the lock of a release of one library."""
    return [LOCK.to_bytes(), json.dumps(json.loads(LOCK.to_bytes())).encode()]


def libraries() -> list[bytes]:
    """Take the smallest stand-in libraries, with and without a version resource."""
    paths = [*(FIXTURES / "machines").glob("*.dll")]
    paths += [*(FIXTURES / "cudnn8").glob("8.9.5.29/cudnn_*_train64_8.dll")]
    return [path.read_bytes() for path in sorted(paths)]


def linux_libraries() -> list[bytes]:
    """Take the smallest stand-in libraries of Linux."""
    paths = sorted(FIXTURES.rglob("*.so*"), key=lambda path: (path.stat().st_size, path))
    return [path.read_bytes() for path in paths[:4]]


def zip_artifacts() -> list[bytes]:
    """Make what an app-local bundle and a wheel look like to their reader."""
    lock = LOCK.to_bytes()
    return [
        _zipped({FILE_NAME: lock, "cudnn64_8.dll": _LIBRARY}),
        _zipped({f"cudnn_runtime_cu11/{FILE_NAME}": lock, "a/cudnn64_8.dll": _LIBRARY}),
    ]


def tars() -> list[bytes]:
    """Make the payload of a conda package as a tar of each format that Python writes."""
    return [_tarred(_payload(), form) for form in _FORMATS]


def info_tars() -> list[bytes]:
    """Make what a conda package says of itself, as a tar of each format."""
    return [_tarred(_description(), form) for form in _FORMATS]


_FORMATS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)


def _payload() -> dict[str, bytes]:
    names = ["cudnn64_8.dll", "x" * 120]
    files = {f"Library/bin/{name}"[:99]: _LIBRARY for name in names}
    return {**files, f"Library/share/cudnn/{FILE_NAME}": LOCK.to_bytes()}


def _description() -> dict[str, bytes]:
    identity = {"name": "cudnn", "version": "8.9.5.29", "build": _build(), "subdir": "win-64"}
    rows = [
        {
            "_path": path,
            "path_type": "hardlink",
            "sha256": hashlib.sha256(data).hexdigest(),
            "size_in_bytes": len(data),
        }
        for path, data in _payload().items()
    ]
    return {
        f"info/{FILE_NAME}": LOCK.to_bytes(),
        "info/index.json": json.dumps(identity).encode(),
        "info/licenses/LICENSE": _LICENCE,
        "info/paths.json": json.dumps({"paths": rows, "paths_version": 1}).encode(),
    }


def _build() -> str:
    listing = "".join(
        f"{hashlib.sha256(data).hexdigest()}  {path}\n" for path, data in _payload().items()
    )
    return f"cuda11_{hashlib.sha256(listing.encode()).hexdigest()[:8]}_0"


def conda_packages() -> list[bytes]:
    """Make whole packages."""
    return [conda_package(payload=tar) for tar in tars()]


def conda_package(payload: bytes | None = None, info: bytes | None = None) -> bytes:
    """Wrap tars up as the halves of a conda package; what is not given is sound."""
    halves = {
        "pkg": _tarred(_payload(), tarfile.USTAR_FORMAT) if payload is None else payload,
        "info": _tarred(_description(), tarfile.USTAR_FORMAT) if info is None else info,
    }
    stem = f"cudnn-8.9.5.29-{_build()}"
    packed = {f"{half}-{stem}.tar.zst": zstd.compress(tar, 1) for half, tar in halves.items()}
    return _zipped({"metadata.json": b'{"conda_pkg_format_version": 2}', **packed})


def _zipped(files: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as bundle:
        for name, data in files.items():
            bundle.writestr(zipfile.ZipInfo(name), data)
    return stream.getvalue()


def _tarred(files: Mapping[str, bytes], form: int) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=form) as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name[: None if form != tarfile.USTAR_FORMAT else 99])
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return stream.getvalue().rstrip(b"\0") + bytes(1024)
