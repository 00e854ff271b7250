"""Bad input through the whole command line: exit code, sentence, and nothing left behind."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import socket
import struct
import sys
import tarfile
import tempfile
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template
from typing import IO, Any, NoReturn

import pytest

from bundler.__main__ import VERBS, main
from bundler.artifacts import ArtifactKind
from bundler.recipe_data import builtin_catalogue
from tests.installations import INFO, PACKAGE, unzip
from tests.raw_zips import Member, deflated, made
from tests.sample_archives import FIXTURES, NAME, ArchiveLayout, SampleArchive, libraries
from tests.sample_builds import build_sample

ROOT = ArchiveLayout().root
MAIN, OPS, CNN = "bin/cudnn64_8.dll", "bin/cudnn_ops_infer64_8.dll", "bin/cudnn_cnn_infer64_8.dll"
OTHER_NAME = "cudnn-windows-x86_64-8.5.0.96_cuda11-archive.zip"
WRONG_IN_RECIPES = "9885484d4f3dc8c25c6674225751bd0af1c80fbb2a77227d1439b917ec16ec92"
VOUCHED = ("--sha256", "$sha256")


@dataclass(frozen=True)
class Row:
    """One bad input and what must come of it.

    Args:
        data: the archive's bytes; nothing where no file is to be made.
        code: the exit code.
        words: what must appear in the message, spaces as they come.
        arguments: more words of the command line; `$folder`, `$sha256` and `$other`, a
            catalogued hash of another archive, are filled in.
        name: of the archive.
        files: beside the archive.
    """

    data: bytes | None
    code: int
    words: str
    arguments: tuple[str, ...] = VOUCHED
    name: str = NAME
    files: Mapping[str, bytes] = field(default_factory=dict)


def zipped(files: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def changed(path: str, content: bytes | None) -> bytes:
    return zipped(SampleArchive(changes={path: content}).files())


def with_member(member: Member) -> bytes:
    files = SampleArchive().files().items()
    return made(*(deflated(data, name.encode()) for name, data in files), member)


def tar_archive(mode: str) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as tar:  # type: ignore[call-overload]
        for name, content in SampleArchive().files().items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def manifest(archive: bytes, **changes: str) -> bytes:
    """Make a manifest that lists an archive."""
    listed = {
        "relative_path": f"cudnn/windows-x86_64/{NAME}",
        "sha256": hashlib.sha256(archive).hexdigest(),
        "md5": hashlib.md5(archive).hexdigest(),
        "size": str(len(archive)),
        **changes,
    }
    component = {
        "name": "cuDNN",
        "license": "cudnn",
        "version": "8.9.5.29",
        "windows-x86_64": {"cuda11": listed},
    }
    return json.dumps({"release_date": "2023-09-13", "cudnn": component}).encode()


GOOD = zipped(SampleArchive().files())
EVIL = Member(b"", b"evil", size=4, compressed=4, crc32=zlib.crc32(b"evil"))
OPS_AT = GOOD.index(OPS.encode()) + 200
OLD = libraries("8.5.0.96")["cudnn_ops_infer64_8.dll"]
OPS_DLL = libraries()["cudnn_ops_infer64_8.dll"]
OPS_LIB = "lib/x64/cudnn_ops_infer.lib"
LINUX_OPS = (FIXTURES / "cudnn9" / "libcudnn_ops.so.9").read_bytes()
HEADER_OF_8_5 = b"#define CUDNN_MAJOR 8\n#define CUDNN_MINOR 5\n#define CUDNN_PATCHLEVEL 0\n"
HTML = b"<!DOCTYPE html>\n<html><title>NVIDIA Developer Login</title></html>\n"
UNKNOWN = "cudnn-windows-x86_64-8.9.5.299_cuda11-archive.zip"
BY_MANIFEST = ("--manifest", "$folder/m.json")


def machine(name: str) -> bytes:
    return (FIXTURES / "machines" / name).read_bytes()


def wide(text: str) -> bytes:
    return text.encode("utf-16-le")


def import_library(name: str) -> bytes:
    return (FIXTURES / "cudnn8" / "8.9.5.29" / "lib" / f"{name}.lib").read_bytes()


def directory(data: bytes, number: int, address: int, size: int) -> bytes:
    """Point an entry of a 64-bit library's data directory elsewhere."""
    (start,) = struct.unpack_from("<L", data, 0x3C)
    at = start + 24 + 112 + 8 * number
    return data[:at] + struct.pack("<2L", address, size) + data[at + 8 :]


def exports_at(data: bytes, address: int) -> bytes:
    return directory(data, 0, address, 40)


def renamed(data: bytes) -> bytes:
    """Give the resource of a library the name of another; its linker's mark stays."""
    return data.replace(wide("cudnn_cnn_infer64_8.dll"), wide("cudnn_ops_infer64_8.dll"))


def by_manifest(data: bytes, manifest_bytes: bytes, code: int, words: str) -> Row:
    return Row(data, code, words, BY_MANIFEST, files={"m.json": manifest_bytes})


def evil(name: str, member: Member = EVIL) -> bytes:
    return with_member(replace(member, name=name.encode()))


ROWS = {
    # Not an archive, or not all of it.
    "missing": Row(None, 2, f"{NAME} does not exist next: give the path of NVIDIA's archive"),
    "empty": Row(b"", 3, f"{NAME} is empty, not a cuDNN archive (0 bytes)"),
    "zeros": Row(bytes(10_000), 3, "is filled with zeros, as an unfinished download may be"),
    "page": Row(HTML, 3, "is a web page, not a cuDNN archive (67 bytes) next: NVIDIA's download"),
    "text": Row(b"Access denied", 3, "is of no known format, not a cuDNN archive (13 bytes)"),
    "Git LFS": Row(b"version https://git-lfs.github.com/spec/v1\n", 3, "is a Git LFS pointer"),
    "installer": Row(b"MZ" + bytes(200), 3, "is a Windows program, perhaps an installer"),
    "tar renamed": Row(tar_archive("w"), 3, f"{NAME} is a tar file"),
    "tar.xz renamed": Row(tar_archive("w:xz"), 6, "use the windows-x86_64 archive"),
    "tgz renamed": Row(tar_archive("w:gz"), 6, "is a gzip file (tgz), NVIDIA's older format"),
    "cut off": Row(GOOD[:-100], 3, "its end, which lists the members, is missing: an unfinished"),
    "half": Row(
        GOOD[: len(GOOD) // 2], 3, f"the file has {len(GOOD) // 2:,} bytes and SHA-256 $sha"
    ),
    "appended": Row(GOOD + b"\n", 3, "bytes follow its end, or its end is cut off"),
    "prepended": Row(b"PK\3\4" + GOOD, 3, "has 4 bytes before it or inside it"),
    "flipped byte": Row(
        GOOD[:OPS_AT] + bytes([GOOD[OPS_AT] ^ 1]) + GOOD[OPS_AT + 1 :],
        3,
        f"{NAME} is damaged - {ROOT}{OPS}: ",
    ),
    # Hostile.
    "traversal": Row(evil("../evil.dll"), 3, "../evil.dll: leaves its folder"),
    "absolute": Row(evil("/evil.dll"), 3, "/evil.dll: is an absolute path"),
    "drive": Row(evil("C:\\evil.dll"), 3, "C:/evil.dll: names a drive"),
    "reserved name": Row(evil(f"{ROOT}bin/aux.dll"), 3, "uses the reserved Windows name 'aux.dll'"),
    "terminal sequence": Row(evil("\x1b[2J.dll"), 3, "\\x1b[2J.dll: holds the character '\\x1b'"),
    "link": Row(evil("l", replace(EVIL, attributes=0o120777 << 16)), 3, "l: is a link"),
    "encrypted": Row(evil("e", replace(EVIL, flags=1)), 3, "e: is encrypted"),
    "Deflate64": Row(
        evil("d", replace(EVIL, method=9)), 3, "d: is compressed by Deflate64; only Store and"
    ),
    "duplicate": Row(evil(ROOT + MAIN), 3, f"{ROOT}{MAIN}: occurs twice"),
    "case collision": Row(
        evil(ROOT + MAIN.upper()), 3, f"would be the same file as {ROOT}{MAIN} on Windows or macOS"
    ),
    "file and folder": Row(evil(ROOT + "bin"), 3, f"{ROOT}bin: is a file, and {ROOT}bin/"),
    "wrong CRC": Row(
        evil("a.txt", replace(EVIL, crc32=1)),
        3,
        "a.txt: is damaged: its checksum (CRC-32) is wrong",
    ),
    "bomb": Row(zipped({"x": bytes(80 << 20)}), 3, "declares 83,886,080 unpacked bytes in"),
    # Nobody vouches, or somebody disagrees.
    "no witness": Row(
        GOOD, 3, f"nothing vouches for {UNKNOWN} why: its sha256 is $sha256", (), UNKNOWN
    ),
    "no witness, two ways on": Row(
        GOOD, 3, "next: give --manifest FILE, the redistrib_*.json", (), UNKNOWN
    ),
    "a known name, other bytes": Row(GOOD, 3, "incomplete download: ", ()),
    "hash disagrees": Row(
        GOOD, 3, f"--sha256: expected sha256 {'0' * 64}, found $sha256", ("--sha256", "0" * 64)
    ),
    "hash of another archive": Row(
        GOOD, 3, f"(that is the hash of {OTHER_NAME}), found $sha256", ("--sha256", "$other")
    ),
    "hash that recipes give wrongly": Row(
        GOOD, 3, "public recipes give that hash wrongly for", ("--sha256", WRONG_IN_RECIPES)
    ),
    "MD5 as the hash": Row(GOOD, 2, "it has the length of an MD5", ("--sha256", "0" * 32)),
    "no hash at all": Row(GOOD, 2, "not a SHA-256: 'latest'", ("--sha256", "latest")),
    "hash and manifest disagree": Row(
        GOOD,
        3,
        f"expected sha256 {'0' * 64}, found $sha256",
        (*BY_MANIFEST, "--sha256", "0" * 64),
        files={"m.json": manifest(GOOD)},
    ),
    "manifest disagrees": by_manifest(
        GOOD, manifest(GOOD + b"?"), 3, "m.json: cudnn.windows-x86_64.cuda11: incomplete download:"
    ),
    "manifest has another size": by_manifest(
        GOOD, manifest(GOOD, size="7"), 3, "its sha256 agrees but it says 7 bytes, not"
    ),
    "manifest has another MD5": by_manifest(
        GOOD, manifest(GOOD, md5="0" * 32), 3, f"its sha256 agrees but it says MD5 {'0' * 32}, not"
    ),
    "manifest does not list it": Row(
        GOOD,
        3,
        f"neither {OTHER_NAME} nor sha256 $sha256 is listed",
        BY_MANIFEST,
        OTHER_NAME,
        {"m.json": manifest(GOOD + b"?")},
    ),
    "manifest is a page": by_manifest(
        GOOD, HTML, 3, "the manifest is an HTML or XML page, not JSON"
    ),
    "manifest is empty": by_manifest(GOOD, b"", 3, "the manifest cannot be read why: it is empty"),
    "manifest is cut off": by_manifest(GOOD, manifest(GOOD)[:-9], 3, "it is not JSON: "),
    "manifest is a list": by_manifest(GOOD, b"[]", 3, "its top level is an array, not an object"),
    "manifest is another JSON": by_manifest(GOOD, b'{"a": {}}', 3, "release_date: "),
    "manifest with a bad hash": by_manifest(
        GOOD, manifest(GOOD, sha256="xyz"), 3, "cudnn.windows-x86_64.cuda11.sha256: "
    ),
    "manifest with a BOM, and wrong": by_manifest(
        GOOD, b"\xef\xbb\xbf" + manifest(GOOD + b"?"), 3, "m.json: cudnn.windows-x86_64.cuda11: "
    ),
    "manifest in UTF-16": by_manifest(
        GOOD, manifest(GOOD).decode().encode("utf-16"), 3, "byte 0 is not UTF-8"
    ),
    "manifest gives a key twice": by_manifest(
        GOOD,
        manifest(GOOD).replace(b'"sha256"', b'"sha256": "0", "sha256"'),
        3,
        "cudnn.windows-x86_64.cuda11.sha256: the key is given more than once",
    ),
    "manifest holds NaN": by_manifest(
        GOOD,
        manifest(GOOD)[:-1] + b', "release_label": NaN}',
        3,
        "release_label: NaN and infinity are not JSON numbers",
    ),
    "manifest is nested": by_manifest(
        GOOD, b'{"a": ' + b"[" * 100_000, 3, "it is nested too deeply to be read"
    ),
    "manifest is nested a little": by_manifest(
        GOOD, b'{"a": ' + b"[" * 30 + b"]" * 30 + b"}", 3, "nested more than 16 levels deep"
    ),
    "manifest holds a huge number": by_manifest(
        GOOD, b'{"a": ' + b"9" * 5000 + b"}", 3, "it holds a number too long to be read"
    ),
    "manifest has a huge size": by_manifest(
        GOOD, manifest(GOOD, size="9" * 400), 3, "size: must be a decimal number of bytes"
    ),
    "manifest of 3 MB": by_manifest(
        GOOD, b'{"a": "' + b"a" * 3_000_000 + b'"}', 3, "more than 2,097,152 bytes"
    ),
    "manifest's name is not one": Row(
        GOOD, 2, "cannot read the manifest", ("--manifest", "$folder/" + "m" * 5000)
    ),
    "manifest is missing": Row(
        GOOD, 2, "cannot read the manifest $folder/m.json: No such file", BY_MANIFEST
    ),
    "manifest is a folder": Row(
        GOOD, 2, "cannot read the manifest $folder: Is a directory", ("--manifest", "$folder")
    ),
    # Authentic, and not fit to ship.
    "no library": Row(
        zipped({f"{ROOT}LICENSE": b"text", f"{ROOT}README": b"text"}), 4, "holds no library (.dll)"
    ),
    "one library missing": Row(
        changed(OPS, None), 4, "cudnn_ops_infer64_8.dll: is missing; cudnn64_8.dll, cudnn_adv_infer"
    ),
    "main library missing": Row(
        changed(MAIN, None), 4, "holds no main library (cudnn64_<major>.dll)"
    ),
    "two main libraries": Row(
        changed("bin/cudnn64_9.dll", libraries()["cudnn64_8.dll"]),
        4,
        "holds more than one main library: cudnn64_8.dll, cudnn64_9.dll",
    ),
    "two libraries of one name": Row(
        changed("lib/cudnn64_8.dll", libraries()["cudnn64_8.dll"]),
        4,
        "is the second library of this name; a flat bundle can hold one",
    ),
    "library of another version": Row(
        changed(OPS, OLD),
        4,
        "cudnn_ops_infer64_8.dll: is version 8.5.0.96, the release is 8.9.5.29",
    ),
    "library under another's name": Row(
        changed(OPS, libraries()["cudnn_cnn_infer64_8.dll"]),
        4,
        "cudnn_ops_infer64_8.dll: is really cudnn_cnn_infer64_8.dll, renamed",
    ),
    "x86 library": Row(
        changed(OPS, machine("x86.dll")), 4, "is built for x86, the others for x86_64"
    ),
    "ARM64 library": Row(
        changed(OPS, machine("arm64.dll")), 4, "is built for arm64, the others for x86_64"
    ),
    "text as a library": Row(changed(OPS, b"hello"), 4, f"{OPS}: is not a Windows library"),
    "empty library": Row(changed(OPS, b""), 4, f"{OPS}: is not a Windows library"),
    "half a library": Row(changed(OPS, OPS_DLL[: len(OPS_DLL) // 2]), 4, f"{OPS}: is cut off"),
    "Linux library": Row(
        changed(OPS, LINUX_OPS), 4, f"{OPS}: is not a Windows library, but a Linux one (ELF)"
    ),
    "packed library": Row(
        changed(OPS, OPS_DLL.replace(b".rdata\0\0", b"UPX1\0\0\0\0", 1)),
        4,
        f"{OPS}: is packed (UPX): these are not the bytes that NVIDIA built",
    ),
    "export table elsewhere": Row(
        changed(OPS, exports_at(OPS_DLL, 0x100000)),
        4,
        f"{OPS}: is damaged: its export table lies outside its sections",
    ),
    "signature in a section": Row(
        changed(OPS, directory(OPS_DLL, 4, 1024, 8)),
        4,
        f"{OPS}: is damaged: its signature lies inside its sections",
    ),
    "library under another's name, its resource edited": Row(
        changed(OPS, renamed(libraries()["cudnn_cnn_infer64_8.dll"])),
        4,
        "cudnn_ops_infer64_8.dll: is really cudnn_cnn_infer64_8.dll, renamed",
    ),
    "version resource edited": Row(
        changed(OPS, OLD.replace(wide("8.5.0.96"), wide("8.9.5.29"))),
        4,
        "cudnn_ops_infer64_8.dll: contradicts itself: file version 8.9.5.29, binary version 8.5.0",
    ),
    "product version edited": Row(
        changed(
            OPS, OPS_DLL[::-1].replace(wide("8.9.5.29")[::-1], wide("8.9.4.25")[::-1], 1)[::-1]
        ),
        4,
        "contradicts itself: file version 8.9.5.29, product version 8.9.4.25",
    ),
    "import library of another build": Row(
        changed(
            OPS_LIB,
            import_library("cudnn_ops_infer64_8").replace(b"cudnnCreate\0", b"cudnnGone_X\0"),
        ),
        4,
        f"{OPS_LIB}: promises cudnnGone_X, which cudnn_ops_infer64_8.dll does not offer",
    ),
    "import library of an absent library": Row(
        changed(
            OPS_LIB,
            import_library("cudnn_ops_infer64_8").replace(b"infer64_8.dll", b"other64_8.dll"),
        ),
        4,
        f"{OPS_LIB}: leads to cudnn_ops_other64_8.dll, which is not in the archive",
    ),
    "import library cut off": Row(
        changed(OPS_LIB, import_library("cudnn_ops_infer64_8")[:-9]), 4, f"{OPS_LIB}: is damaged ("
    ),
    "text as an import library": Row(
        changed(OPS_LIB, b"hello"), 4, f"{OPS_LIB}: is not an import library"
    ),
    "no licence": Row(
        changed("LICENSE", None), 4, "holds no licence text (LICENSE); it must travel"
    ),
    "header of another version": Row(
        changed("include/cudnn_version.h", HEADER_OF_8_5),
        4,
        "include/cudnn_version.h: says 8.5.0, the libraries' version resources say 8.9.5.29",
    ),
}


@dataclass(frozen=True)
class Scene:
    """A folder with an archive, and the words that run the tool on it."""

    row: Row
    folder: Path

    @property
    def output(self) -> Path:
        return self.folder / "dist"

    def prepare(self) -> Path:
        archive = self.folder / self.row.name
        if self.row.data is not None:
            archive.write_bytes(self.row.data)
        for name, content in self.row.files.items():
            (self.folder / name).write_bytes(content)
        return archive

    def fill(self, text: str) -> str:
        other = builtin_catalogue().by_file_name(OTHER_NAME)
        assert other is not None
        found = hashlib.sha256(self.row.data or b"").hexdigest()
        values = {"folder": self.folder, "sha256": found, "other": other.sha256}
        return Template(text).safe_substitute(values).replace("$sha", found[:8])

    def words(self, verb: str) -> list[str]:
        output = ["-o", str(self.output), "--no-smoke"] if verb == "build" else []
        arguments = [self.fill(argument) for argument in self.row.arguments]
        return [verb, str(self.prepare()), *output, *arguments]

    def leftovers(self) -> list[str]:
        own = {self.row.name, *self.row.files}
        found = (path.relative_to(self.folder) for path in self.folder.rglob("*"))
        return [str(path) for path in found if str(path) not in {*own, "dist", "temp"}]


@pytest.fixture(params=list(ROWS.values()), ids=list(ROWS))
def scene(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    (tmp_path / "temp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temp"))
    return Scene(request.param, tmp_path)


def test_build_refuses_bad_input(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    """With `--json`, standard output holds one document; the message for people stays."""
    code = main([*scene.words("build"), "--json"])
    printed = capsys.readouterr()
    document = json.loads(printed.out)

    assert scene.fill(scene.row.words) in " ".join(printed.err.split())
    assert (code, document["exit_code"]) == (scene.row.code, scene.row.code)
    assert document["next"]
    assert "Traceback" not in printed.err
    assert scene.leftovers() == []


def test_verify_refuses_bad_input(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(scene.words("verify"))
    printed = capsys.readouterr()

    assert scene.fill(scene.row.words) in " ".join(printed.err.split())
    assert code == scene.row.code
    assert printed.out == ""
    assert scene.leftovers() == []


Prepare = Callable[[Path, Mapping[ArtifactKind, Path]], Path]
"""Makes something bad of good artifacts in an empty folder, and says what to verify."""


def file(kind: ArtifactKind, change: Callable[[bytes], bytes], name: str = "") -> Prepare:
    def prepare(folder: Path, artifacts: Mapping[ArtifactKind, Path]) -> Path:
        path = folder / (name or artifacts[kind].name)
        path.write_bytes(change(artifacts[kind].read_bytes()))
        return path

    return prepare


def unpacked(kind: ArtifactKind, *changes: tuple[str, bytes | None]) -> Prepare:
    def prepare(folder: Path, artifacts: Mapping[ArtifactKind, Path]) -> Path:
        unzip(artifacts[kind], folder)
        for name, data in changes:
            if data is None:
                (folder / name).unlink()
            else:
                (folder / name).parent.mkdir(exist_ok=True, parents=True)
                (folder / name).write_bytes(data)
        return folder

    return prepare


def files(**content: bytes) -> Prepare:
    def prepare(folder: Path, _: Mapping[ArtifactKind, Path]) -> Path:
        for name, data in content.items():
            (folder / name).write_bytes(data)
        return folder

    return prepare


APP, WHEEL, CONDA = ArtifactKind.APP_LOCAL, ArtifactKind.WHEEL, ArtifactKind.CONDA
RECORD, EMPTY = f"{INFO}/RECORD", "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
NO_ARTIFACT = "is damaged or was not made by this tool"
VERIFIED: dict[str, tuple[Prepare, int, str, tuple[str, ...]]] = {
    # Files.
    "wheel cut off": (file(WHEEL, lambda data: data[:-50]), 3, NO_ARTIFACT, ()),
    "conda cut off": (file(CONDA, lambda data: data[: len(data) // 2]), 3, NO_ARTIFACT, ()),
    "bundle appended to": (file(APP, lambda data: data + b"x"), 3, "bytes follow its end", ()),
    "wheel is a page": (file(WHEEL, lambda _: HTML), 3, "is a web page", ()),
    "conda is empty": (file(CONDA, lambda _: b""), 3, "is empty", ()),
    "bundle is a gzip": (file(APP, lambda _: tar_archive("w:gz")), 3, "is a gzip file", ()),
    "wheel of another project": (
        file(WHEEL, lambda _: zipped({"a-1.dist-info/RECORD": b"", "a/__init__.py": b""})),
        3, NO_ARTIFACT, (),
    ),
    "conda package of others": (
        file(CONDA, lambda _: zipped({"metadata.json": b"{}", "pkg-a.tar.zst": b"",
                                      "info-a.tar.zst": b""})),
        3, NO_ARTIFACT, (),
    ),
    "bundle with only a lock": (
        file(APP, lambda _: zipped({"cudnn.lock.json": b"{}"}), "x.zip"), 3, NO_ARTIFACT, (),
    ),
    "bundle with a hostile list": (
        file(APP, lambda _: zipped({"cudnn.lock.json": b"{}",
                                    "SHA256SUMS": b"0" * 64 + b"  ../x\n"})),
        3, "../x: leaves its folder", (),
    ),
    "wheel with a hostile member": (
        file(WHEEL, lambda _: zipped({f"{PACKAGE}/__init__.py": b"", "../x": b""})),
        3, "../x: leaves its folder", (),
    ),
    "wheel that is not there": (lambda folder, _: folder / "a.whl", 2, "does not exist", ()),
    # Folders.
    "an empty folder": (files(), 2, "is a folder in which nothing is recognised", ()),
    "libraries and no lock": (
        files(**{"cudnn64_8.dll": b"1"}), 2, "1 cuDNN libraries and no lock to compare", (),
    ),
    "a lock of a list": (files(**{"cudnn.lock.json": b"[]"}), 3, "is not a lock", ()),
    "a lock of nonsense": (files(**{"cudnn.lock.json": b"\xff"}), 3, "is not a lock", ()),
    "an unpacked library gone": (
        unpacked(APP, ("cudnn64_8.dll", None)), 4, "cudnn64_8.dll: was written, for SHA256SUMS", (),
    ),
    "an unpacked library changed": (
        unpacked(APP, ("cudnn64_8.dll", b"1")), 4, "cudnn64_8.dll: has 1 bytes instead of", (),
    ),
    "hostile sums": (
        unpacked(APP, ("SHA256SUMS", b"0" * 64 + b"  /etc/x\n")), 3, "is an absolute path", (),
    ),
    "hostile RECORD": (
        unpacked(WHEEL, (RECORD, f"../../x,sha256={EMPTY},0\n".encode())), 3,
        "../../x: leaves its folder", (),
    ),
    "RECORD is binary": (unpacked(WHEEL, (RECORD, b"\xff\xfe")), 3, f"{RECORD} is damaged", ()),
    "an installed module more": (
        unpacked(WHEEL, (f"{PACKAGE}/x.py", b"")), 4, f"{PACKAGE}/x.py: is in no list", (),
    ),
    "an installed package without anything": (
        unpacked(WHEEL, (RECORD, None), (f"{PACKAGE}/cudnn.lock.json", None)), 3,
        f"there is no {PACKAGE}/cudnn.lock.json", (),
    ),
    "a prefix's record of a list": (
        lambda folder, _: in_prefix(folder, b"[]"), 3, "cudnn-1.json is damaged", (),
    ),
    "a prefix's record of numbers": (
        lambda folder, _: in_prefix(folder, b'{"name": "cudnn", "paths_data": {"paths": [1]}}'), 3,
        "holds a number where a path must be", (),
    ),
    "a prefix's hostile record": (
        lambda folder, _: in_prefix(
            folder, b'{"name": "cudnn", "paths_data": {"paths": [{"_path": "../x"}]}}'
        ), 3, "../x: leaves its folder", (),
    ),
    "paths.json of nothing": (
        lambda folder, _: in_cache(folder, b"{}"), 3, "its paths must be an array, not null", (),
    ),
    # The lock that the user gives.
    "no such lock": (unpacked(APP), 2, "cannot read the lock", ("--lock", "$folder/no.json")),
    "the lock is a folder": (unpacked(APP), 2, "cannot read the lock", ("--lock", "$folder")),
    "the lock is a library": (
        unpacked(APP), 3, "cudnn64_8.dll is not a lock", ("--lock", "$folder/cudnn64_8.dll"),
    ),
    "a hash for a folder": (unpacked(APP), 2, "vouch for an archive", ("--sha256", "0" * 64)),
}  # fmt: skip


def in_prefix(folder: Path, record: bytes) -> Path:
    (folder / "conda-meta").mkdir()
    (folder / "conda-meta" / "cudnn-1.json").write_bytes(record)
    return folder


def in_cache(folder: Path, paths: bytes) -> Path:
    (folder / "info").mkdir()
    (folder / "info" / "index.json").write_bytes(b"{}")
    (folder / "info" / "paths.json").write_bytes(paths)
    return folder


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> dict[ArtifactKind, Path]:
    folder = tmp_path_factory.mktemp("good")
    return {
        kind: build_sample(SampleArchive(), kind, folder / kind).artifact.path
        for kind in ArtifactKind
    }


@pytest.mark.parametrize(
    ("prepare", "code", "words", "arguments"), VERIFIED.values(), ids=VERIFIED.keys()
)
def test_verify_refuses_what_is_no_archive_either(
    prepare: Prepare,
    code: int,
    words: str,
    arguments: tuple[str, ...],
    artifacts: dict[ArtifactKind, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = prepare(tmp_path, artifacts)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    filled = [Template(argument).substitute(folder=tmp_path) for argument in arguments]

    found = main(["verify", str(path), *filled, "--json"])
    printed = capsys.readouterr()
    document = json.loads(printed.out)

    assert words in " ".join(printed.err.split())
    assert (found, document["exit_code"]) == (code, code)
    assert document["next"]
    assert "Traceback" not in printed.err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("kind", ArtifactKind)
def test_the_artifacts_were_good(kind: ArtifactKind, artifacts: dict[ArtifactKind, Path]) -> None:
    assert main(["verify", str(artifacts[kind])]) == 0


def test_the_tables_are_long() -> None:
    assert len(ROWS) >= 60
    assert len(VERIFIED) >= 30


def test_good_input_is_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Otherwise every refusal above could be for a reason that all rows share."""
    path = tmp_path / NAME
    path.write_bytes(GOOD)

    assert main(["verify", str(path), "--sha256", hashlib.sha256(GOOD).hexdigest()]) == 0
    assert "cuDNN 8.9.5.29 for CUDA 11 on windows-x86_64" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("blocker", "output", "words"),
    [
        pytest.param("dist", "dist/deep", "Not a directory", id="below a file"),
        pytest.param("dist", "dist", "File exists", id="a file"),
    ],
)
def test_output_that_cannot_be_a_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], blocker: str, output: str, words: str
) -> None:
    path = tmp_path / NAME
    path.write_bytes(GOOD)
    (tmp_path / blocker).write_bytes(b"in the way")
    sha256 = hashlib.sha256(GOOD).hexdigest()

    code = main(["build", str(path), "-o", str(tmp_path / output), "--sha256", sha256])

    assert code == 7
    assert f"cannot write to the folder {tmp_path / output}: {words}" in capsys.readouterr().err
    assert (tmp_path / blocker).read_bytes() == b"in the way"
    assert sorted(item.name for item in tmp_path.iterdir()) == sorted([NAME, blocker])


@pytest.mark.parametrize("verb", ["build", "verify", "inspect"])
def test_a_folder_is_no_archive(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    code = main([verb, str(tmp_path)])

    assert code == 2
    assert f"{tmp_path} is a folder" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_the_destinations_refusal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / NAME
    path.write_bytes(GOOD)
    opened = Path.open

    def full(self: Path, mode: str = "r", *_: int, **options: str | None) -> IO[Any]:
        if "x" in mode:
            raise OSError(errno.ENOSPC, "No space left on device")
        return opened(self, mode, -1, **options)

    monkeypatch.setattr(Path, "open", full)
    sha256 = hashlib.sha256(GOOD).hexdigest()

    code = main(["build", str(path), "-o", str(tmp_path / "dist"), "--sha256", sha256])

    assert code == 7
    assert "No space left on device" in (message := capsys.readouterr().err)
    assert "make room for" in message
    assert list((tmp_path / "dist").iterdir()) == []


def test_a_bug_is_one_document_and_a_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> NoReturn:
        message = "unforeseen"
        raise RuntimeError(message)

    monkeypatch.setitem(VERBS, "verify", broken)

    code = main(["verify", "archive.zip", "--json"])
    printed = capsys.readouterr()

    assert (code, json.loads(printed.out)["exit_code"]) == (1, 1)
    assert "RuntimeError: unforeseen" in printed.err
    assert "error: this is a bug in cudnn-bundler" in printed.err


def test_a_name_that_is_no_text_is_printed_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(os.fsdecode(bytes(tmp_path) + b"/\xff" + NAME.encode()))
    path.write_bytes(GOOD)

    assert main(["verify", str(path), "--sha256", hashlib.sha256(GOOD).hexdigest()]) == 0
    assert f"verified: \\udcff{NAME}" in capsys.readouterr().out


def test_a_cut_download_of_a_listed_archive_is_called_incomplete_and_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, listing = tmp_path / NAME, tmp_path / "redistrib.json"
    path.write_bytes(GOOD[:-100])
    listing.write_bytes(manifest(GOOD))

    assert main(["verify", str(path), "--manifest", str(listing)]) == 3
    message = capsys.readouterr().err
    assert f"incomplete download: {len(GOOD) - 100}" in message.replace(",", "")
    assert "damaged" in message


SPECIAL = {
    "pipe": (os.mkfifo, "is not a file"),
    "socket": (lambda path: socket.socket(socket.AF_UNIX).bind(path), "is not a file"),
    "device": (lambda path: Path(path).symlink_to("/dev/zero"), "is not a file"),
    "terminal": (lambda path: Path(path).symlink_to("/dev/tty"), "is not a file"),
    "link to itself": (lambda path: Path(path).symlink_to(path), ""),
    "link to nothing": (lambda path: Path(path).symlink_to("nowhere"), "does not exist"),
}


@pytest.mark.skipif(sys.platform == "win32", reason="file types of Unix")
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.parametrize("verb", ["build", "verify", "inspect", "manifest", "lock"])
@pytest.mark.parametrize(("make", "words"), SPECIAL.values(), ids=SPECIAL.keys())
def test_what_is_no_file_is_not_waited_for(
    make: Callable[[str], object],
    words: str,
    verb: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Opening a pipe would wait for its other end, and reading /dev/zero would never end."""
    monkeypatch.chdir(tmp_path)
    make("special")
    Path(NAME).write_bytes(GOOD)
    Path("a-applocal.zip").write_bytes(GOOD)
    command = {
        "manifest": ["verify", NAME, "--manifest", "special"],
        "lock": ["verify", "a-applocal.zip", "--lock", "special"],
    }.get(verb, [verb, "special"])

    assert main(command) in {2, 3}
    message = capsys.readouterr().err
    assert verb == "lock" or (words if verb != "manifest" else "manifest") in message
    assert "next: " in message


PATHS = {
    "NUL": "a\0b.zip",
    "half a character": "\udcff\ud800.zip",
    "long component": "a" * 300 + ".zip",
    "long path": "a/" * 3000 + "a.zip",
    "empty": "",
    "terminal sequence": "\x1b[2J.zip",
}


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["build", "$path"], id="build"),
        pytest.param(["verify", "$path"], id="verify"),
        pytest.param(["inspect", "$path"], id="inspect"),
        pytest.param(["smoke", "$path"], id="smoke"),
        pytest.param(["verify", "$path.whl"], id="artifact"),
        pytest.param(["verify", NAME, "--manifest", "$path"], id="manifest"),
        pytest.param(["build", NAME, "--sha256", "$sha256", "-o", "$path/x"], id="output"),
    ],
)
def test_paths_that_cannot_be(
    command: list[str],
    path: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(NAME).write_bytes(GOOD)
    if "$path/x" in command and path in {"", PATHS["terminal sequence"]}:
        pytest.skip("a good name for a folder")
    sha256 = hashlib.sha256(GOOD).hexdigest()
    words = [word.replace("$path", path).replace("$sha256", sha256) for word in command]

    code = main([*words, "--json"])
    printed = capsys.readouterr()
    assert code in {2, 7}, printed.err
    assert json.loads(printed.out)["exit_code"] == code
    assert "Traceback" not in printed.err


def test_a_sparse_file_of_100_gigabytes_is_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Hashing it would take minutes; its beginning is that of a zip."""
    path = tmp_path / NAME
    path.write_bytes(GOOD[:1000])
    os.truncate(path, 100 << 30)

    assert main(["verify", str(path)]) == 3
    assert "107,374,182,400 bytes" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["manifest", "lock"])
def test_a_gigabyte_of_manifest_or_lock_is_not_read(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive, large = tmp_path / "a-applocal.zip", tmp_path / "large.json"
    archive.write_bytes(GOOD)
    if name == "manifest":
        archive = archive.rename(tmp_path / NAME)
    large.touch()
    os.truncate(large, 1 << 30)
    tracemalloc.start()

    assert main(["verify", str(archive), f"--{name}", str(large)]) in {2, 3}
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 << 20
    assert "next: " in capsys.readouterr().err


def test_a_manifest_whose_own_bytes_contradict_the_pin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may vouch, and the user is told that it is not as NVIDIA serves it."""
    pin = next(
        pin for pin in builtin_catalogue().pins if pin.file.startswith("cudnn/redistrib_8.9")
    )
    label = pin.file.split("redistrib_")[1].removesuffix(".json")
    document = json.loads(manifest(GOOD))
    document |= {"release_label": label, "release_product": "cudnn"}
    path, listing = tmp_path / UNKNOWN, tmp_path / "m.json"
    path.write_bytes(GOOD)
    listing.write_text(json.dumps(document))

    assert main(["verify", str(path), "--manifest", str(listing)]) == 0
    printed = capsys.readouterr().out
    assert pin.sha256 in printed
