"""Artifacts that somebody changed: every byte of them is compared with something."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bundler.artifacts import ArtifactKind
from bundler.artifacts.conda_info import MAXIMUM_TEXT
from bundler.compression import open_zstd_reader, open_zstd_writer
from bundler.errors import ArchiveError, UsageError
from bundler.pipeline import verify
from bundler.resources import activation_sources
from bundler.verification import FaultKind, Verification
from bundler.verification.recognition import artifact_kind
from tests.installations import INFO, PACKAGE
from tests.raw_zips import Member, deflated, made
from tests.sample_archives import SampleArchive, libraries
from tests.sample_builds import SampleBuild, build_sample

Change = Callable[[dict[str, bytes]], None]
Builds = dict[ArtifactKind, SampleBuild]
MAIN, OPS = "cudnn64_8.dll", "cudnn_ops_infer64_8.dll"
BIN, LOCK = "Library/bin/", "Library/share/cudnn/cudnn.lock.json"


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    folder = tmp_path_factory.mktemp("builds")
    return {kind: build_sample(SampleArchive(), kind, folder / kind) for kind in ArtifactKind}


def one(path: Path) -> Verification:
    (found,) = verify(path, None)
    return found


def faults_of(path: Path) -> list[tuple[str, FaultKind]]:
    return [(fault.where, fault.kind) for fault in one(path).faults]


def members_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as bundle:
        return {name: bundle.read(name) for name in bundle.namelist()}


def write(path: Path, members: dict[str, bytes]) -> Path:
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as bundle:
        for name, data in members.items():
            bundle.writestr(name, data)
    return path


def row(name: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}"


def recorded(members: dict[str, bytes], name: str, data: bytes) -> None:
    """Change a member and its row of RECORD, as one who hides something would."""
    members[name] = data
    rows = members[f"{INFO}/RECORD"].decode().splitlines()
    rows = [line for line in rows if not line.startswith(f"{name},")]
    members[f"{INFO}/RECORD"] = "".join(f"{r}\n" for r in [*rows, row(name, data)]).encode()


def put(name: str, data: bytes) -> Change:
    return lambda members: members.update({name: data})


def without(name: str) -> Change:
    def change(members: dict[str, bytes]) -> None:
        del members[name]

    return change


def hidden(name: str, data: bytes) -> Change:
    return lambda members: recorded(members, name, data)


def unhashed(members: dict[str, bytes]) -> None:
    record = members[f"{INFO}/RECORD"].decode().splitlines()
    name = f"{PACKAGE}/_loader.py"
    rows = [f"{name},," if line.startswith(name) else line for line in record]
    members[f"{INFO}/RECORD"] = "\n".join(rows).encode()


def renamed(members: dict[str, bytes]) -> None:
    for name in [name for name in members if name.startswith(INFO)]:
        other = name.replace("8.9.5.29", "8.9.4.25")
        members[other] = members.pop(name).replace(INFO.encode(), other.split("/")[0].encode())


WHEELS: dict[str, tuple[Change, list[tuple[str, FaultKind]]]] = {
    "a module": (
        put(f"{PACKAGE}/_loader.py", b"import os\n"),
        [(f"{PACKAGE}/_loader.py", FaultKind.CHANGED)],
    ),
    "a module and RECORD": (
        hidden(f"{PACKAGE}/_loader.py", b"import os\n"),
        [(f"{PACKAGE}/_loader.py", FaultKind.CHANGED)],
    ),
    "the probe and RECORD": (
        hidden(f"{PACKAGE}/cudnn-check.dll", b"MZ"),
        [(f"{PACKAGE}/cudnn-check.dll", FaultKind.CHANGED)],
    ),
    "a library and RECORD": (
        hidden(f"{PACKAGE}/bin/{OPS}", libraries("8.5.0.96")[OPS]),
        [(f"{PACKAGE}/bin/{OPS}", FaultKind.CHANGED)],
    ),
    "the licence and RECORD": (
        hidden(f"{INFO}/licenses/LICENSE", b"MIT"),
        [(f"{INFO}/licenses/LICENSE", FaultKind.CHANGED)],
    ),
    "METADATA": (put(f"{INFO}/METADATA", b"Name: x"), [(f"{INFO}/METADATA", FaultKind.CHANGED)]),
    "only RECORD": (
        lambda members: members.update({
            f"{INFO}/RECORD": members[f"{INFO}/RECORD"].replace(
                row(f"{PACKAGE}/bin/{OPS}", libraries()[OPS]).encode(),
                row(f"{PACKAGE}/bin/{OPS}", b"x").encode(),
            )
        }),
        [(f"{PACKAGE}/bin/{OPS}", FaultKind.CONTRADICTED)],
    ),
    "a member missing": (
        without(f"{PACKAGE}/_loader.py"),
        [(f"{PACKAGE}/_loader.py", FaultKind.MISSING)],
    ),
    "an unlisted member": (put("evil.pth", b"import os"), [("evil.pth", FaultKind.EXTRA)]),
    "an unlisted compiled one": (
        put(f"{PACKAGE}/__pycache__/_loader.cpython-311.pyc", b"1"),
        [(f"{PACKAGE}/__pycache__/_loader.cpython-311.pyc", FaultKind.EXTRA)],
    ),
    "listed without a hash": (unhashed, [(f"{PACKAGE}/_loader.py", FaultKind.CONTRADICTED)]),
    "another version's name": (
        renamed,
        [("cudnn_runtime_cu11-8.9.4.25.dist-info", FaultKind.CONTRADICTED)],
    ),
    "a software list that RECORD has": (hidden(f"{INFO}/sboms/cudnn.cdx.json", b"{}"), []),
}  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), WHEELS.values(), ids=WHEELS.keys())
def test_a_changed_wheel(
    change: Change, expected: list[tuple[str, FaultKind]], builds: Builds, tmp_path: Path
) -> None:
    source = builds[ArtifactKind.WHEEL].artifact.path
    members = members_of(source)

    change(members)

    assert faults_of(write(tmp_path / source.name, members)) == expected


def test_a_wheel_of_another_version_of_this_tool_gets_a_note(
    builds: Builds, tmp_path: Path
) -> None:
    members = members_of(builds[ArtifactKind.WHEEL].artifact.path)
    recorded(members, f"{INFO}/WHEEL", b"Wheel-Version: 1.0\nGenerator: cudnn-bundler 0.0.9\n")
    recorded(members, f"{PACKAGE}/_loader.py", b"# as it was\n")

    found = one(write(tmp_path / "a.whl", members))

    assert found.faults == ()
    assert "perhaps of another version: cudnn_runtime_cu11/_loader.py" in found.notes[0]


def sums(members: dict[str, bytes], name: str, data: bytes) -> None:
    members[name] = data
    lines = members["SHA256SUMS"].decode().splitlines()
    lines = [line for line in lines if not line.endswith(f"  {name}")]
    lines.append(f"{hashlib.sha256(data).hexdigest()}  {name}")
    members["SHA256SUMS"] = "".join(f"{line}\n" for line in lines).encode()


BUNDLES: dict[str, tuple[Change, list[tuple[str, FaultKind]]]] = {
    "the readme": (put("README.txt", b"hello"), [("README.txt", FaultKind.CHANGED)]),
    "a library and the sums": (
        lambda members: sums(members, OPS, libraries("8.5.0.96")[OPS]),
        [(OPS, FaultKind.CHANGED)],
    ),
    "the licence and the sums": (
        lambda members: sums(members, "LICENSE", b"MIT"),
        [("LICENSE", FaultKind.CHANGED)],
    ),
    "more": (put("version.dll", b"MZ"), [("version.dll", FaultKind.EXTRA)]),
    "less": (without("cudnn8.manifest"), [("cudnn8.manifest", FaultKind.MISSING)]),
    "flattened no more": (
        lambda members: members.update({f"bin/{OPS}": members.pop(OPS)}),
        [(OPS, FaultKind.MISPLACED)],
    ),
    "a software list that the sums have": (
        lambda members: sums(members, "cudnn.sbom.cdx.json", b"{}"),
        [],
    ),
}


@pytest.mark.parametrize(("change", "expected"), BUNDLES.values(), ids=BUNDLES.keys())
def test_a_changed_bundle(
    change: Change, expected: list[tuple[str, FaultKind]], builds: Builds, tmp_path: Path
) -> None:
    members = members_of(builds[ArtifactKind.APP_LOCAL].artifact.path)

    change(members)

    assert faults_of(write(tmp_path / "a-applocal.zip", members)) == expected


def test_another_probe_in_a_bundle_gets_a_note(builds: Builds, tmp_path: Path) -> None:
    members = members_of(builds[ArtifactKind.APP_LOCAL].artifact.path)
    sums(members, "cudnn-check.exe", b"MZ")

    found = one(write(tmp_path / "a-applocal.zip", members))

    assert found.faults == ()
    assert "cudnn-check.exe" in found.notes[0]


Tar = list[tuple[tarfile.TarInfo, bytes]]


def unpack(package: bytes) -> Tar:
    with (
        open_zstd_reader(io.BytesIO(package)) as stream,
        tarfile.open(fileobj=io.BytesIO(stream.read())) as tar,
    ):
        return [(member, (tar.extractfile(member) or io.BytesIO()).read()) for member in tar]


def pack(tar: Tar) -> bytes:
    packed = io.BytesIO()
    with (
        open_zstd_writer(packed, 1) as stream,
        tarfile.open(fileobj=stream, mode="w|") as archive,
    ):
        for member, data in tar:
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def member(name: str, data: bytes, kind: bytes = tarfile.REGTYPE) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(data)
    info.linkname = "/etc/passwd" if kind == tarfile.SYMTYPE else ""
    return info, data


CondaChange = Callable[[dict[str, bytes], dict[str, bytes]], None]
"""Changes the files of `info` (without that folder) and those of the payload."""


def set_info(name: str, data: bytes) -> CondaChange:
    return lambda info, _: info.update({name: data})


def set_payload(name: str, data: bytes) -> CondaChange:
    return lambda _, payload: payload.update({name: data})


def listed(name: str, data: bytes) -> CondaChange:
    def change(info: dict[str, bytes], payload: dict[str, bytes]) -> None:
        document = json.loads(info["paths.json"])
        rows = [item for item in document["paths"] if item["_path"] != name]
        rows.append({"_path": name, "path_type": "hardlink", "size_in_bytes": len(data),
                     "sha256": hashlib.sha256(data).hexdigest()})  # fmt: skip
        document["paths"] = sorted(rows, key=lambda item: str(item["_path"]))
        info["paths.json"] = json.dumps(document).encode()
        payload[name] = data

    return change


def index(key: str, value: str) -> CondaChange:
    def change(info: dict[str, bytes], _: dict[str, bytes]) -> None:
        info["index.json"] = json.dumps({**json.loads(info["index.json"]), key: value}).encode()

    return change


OTHER = "info/index.json", FaultKind.CONTRADICTED
PACKAGES: dict[str, tuple[CondaChange, list[tuple[str, FaultKind]]]] = {
    "a library": (
        set_payload(BIN + OPS, libraries("8.5.0.96")[OPS]),
        [(BIN + OPS, FaultKind.CHANGED)],
    ),
    "a library and paths.json": (
        listed(BIN + OPS, libraries("8.5.0.96")[OPS]),
        [OTHER, (BIN + OPS, FaultKind.CHANGED)],
    ),
    "the probe and paths.json": (listed(f"{BIN}cudnn-check.exe", b"MZ"), [OTHER]),
    "the probe": (
        set_payload(f"{BIN}cudnn-check.exe", b"MZ"),
        [(f"{BIN}cudnn-check.exe", FaultKind.CHANGED)],
    ),
    "more": (set_payload(f"{BIN}evil.dll", b"1"), [(f"{BIN}evil.dll", FaultKind.EXTRA)]),
    "less": (
        lambda _, payload: payload.__delitem__(BIN + OPS),
        [(BIN + OPS, FaultKind.MISSING)],
    ),
    "an unknown text": (set_info("evil.txt", b""), [("info/evil.txt", FaultKind.EXTRA)]),
    "the licence": (
        set_info("licenses/LICENSE", b"MIT"),
        [("info/licenses/LICENSE", FaultKind.CHANGED)],
    ),
    "the list of files": (set_info("files", b"a\n"), [("info/files", FaultKind.CONTRADICTED)]),
    "its name": (index("name", "libcudnn"), [OTHER, OTHER]),
    "its build": (index("build", "cuda11_00000000_0"), [OTHER, OTHER]),
    "its folder": (index("subdir", "linux-64"), [OTHER]),
}


def changed_package(builds: Builds, tmp_path: Path, change: CondaChange) -> Path:
    source = builds[ArtifactKind.CONDA].artifact.path
    members = members_of(source)
    info_name, payload_name = (
        next(n for n in members if n.startswith(p)) for p in ("info-", "pkg-")
    )
    info = {m.name.removeprefix("info/"): data for m, data in unpack(members[info_name])}
    payload = {m.name: data for m, data in unpack(members[payload_name])}
    change(info, payload)
    members[info_name] = pack([member(f"info/{n}", data) for n, data in info.items()])
    members[payload_name] = pack([member(n, data) for n, data in payload.items()])
    return write(tmp_path / "changed" / source.name, members)


@pytest.mark.parametrize(("change", "expected"), PACKAGES.values(), ids=PACKAGES.keys())
def test_a_changed_package(
    change: CondaChange, expected: list[tuple[str, FaultKind]], builds: Builds, tmp_path: Path
) -> None:
    assert faults_of(changed_package(builds, tmp_path, change)) == expected


def test_both_copies_of_the_lock_must_be_equal(builds: Builds, tmp_path: Path) -> None:
    def change(info: dict[str, bytes], _: dict[str, bytes]) -> None:
        info["cudnn.lock.json"] += b"\n"

    assert faults_of(changed_package(builds, tmp_path, change)) == [
        ("info/cudnn.lock.json", FaultKind.CHANGED)
    ]


def test_a_software_list_in_info_equals_the_installed_one(builds: Builds, tmp_path: Path) -> None:
    name = "cudnn.sbom.cdx.json"
    share = f"Library/share/cudnn/{name}"

    def change(info: dict[str, bytes], payload: dict[str, bytes]) -> None:
        listed(share, b"{}")(info, payload)
        info[name] = b"{ }"

    assert (f"info/{name}", FaultKind.CHANGED) in faults_of(
        changed_package(builds, tmp_path, change)
    )


def test_a_software_list_in_info_alone_gets_a_note(builds: Builds, tmp_path: Path) -> None:
    path = changed_package(builds, tmp_path, set_info("other.cdx.json", b"{}"))

    assert one(path).faults == ()
    assert one(path).notes == ("no list vouches for info/other.cdx.json",)


def extended(name: str, **headers: str) -> tuple[tarfile.TarInfo, bytes]:
    info, data = member(name, b"")
    info.pax_headers = {key.replace("_", "."): value for key, value in headers.items()}
    return info, data


HOSTILE: dict[str, tuple[Callable[[Tar, Tar], object], str]] = {
    "a link": (lambda _, p: p.append(member("a", b"", tarfile.SYMTYPE)), "a: is a link or a"),
    "a device": (lambda _, p: p.append(member("a", b"", tarfile.CHRTYPE)), "a: is a link or a"),
    "traversal": (lambda _, p: p.append(member("../a", b"1")), "../a: leaves its folder"),
    "absolute": (lambda _, p: p.append(member("/a", b"1")), "/a: is an absolute path"),
    "twice": (lambda _, p: p.append(p[0]), "occurs twice"),
    "info in the payload": (lambda _, p: p.append(member("info/a", b"1")), "wrong inner archive"),
    "payload in info": (lambda i, _: i.append(member("a", b"1")), "wrong inner archive"),
    "a bomb": (
        lambda _, p: p.append(member("a", bytes(40 << 20))),
        "an inner archive unpacks to more than",
    ),
    "a bomb in info": (
        lambda i, _: i.extend(member(f"info/{n}", bytes(16 << 20)) for n in range(5)),
        "unpacks to more than 67,108,864 bytes",
    ),
    "many members": (
        lambda i, _: i.extend(member(f"info/a{n}", b"") for n in range(10_001)),
        "more than 10,000 members",
    ),
    "an exabyte of zeros": (
        lambda _, p: p.append(
            extended("a", GNU_sparse_size="1152921504606846976", GNU_sparse_map="0,0")
        ),
        "a: is a link or a special file",
    ),
    "a header that fills the memory": (
        lambda _, p: p.append(extended("a", comment="x" * (2 << 20))),
        "an inner archive has a header of 2,097,",
    ),
    "no paths.json": (
        lambda i, _: i.remove(next(m for m in i if m[0].name == "info/paths.json")),
        "paths.json",
    ),
}


@pytest.mark.parametrize(("change", "words"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_package(
    change: Callable[[Tar, Tar], object], words: str, builds: Builds, tmp_path: Path
) -> None:
    source = builds[ArtifactKind.CONDA].artifact.path
    members = members_of(source)
    names = [next(n for n in members if n.startswith(p)) for p in ("info-", "pkg-")]
    info, payload = (unpack(members[name]) for name in names)
    change(info, payload)
    for name, tar in zip(names, (info, payload), strict=True):
        members[name] = pack(tar)

    with pytest.raises(ArchiveError) as caught:
        verify(write(tmp_path / "changed" / source.name, members), None)

    assert words in str(caught.value)


def test_bytes_after_an_inner_archive(builds: Builds, tmp_path: Path) -> None:
    source = builds[ArtifactKind.CONDA].artifact.path
    members = members_of(source)
    (name,) = (name for name in members if name.startswith("pkg-"))
    more = io.BytesIO()
    with open_zstd_writer(more, 1) as stream:
        stream.write(b"hidden")
    members[name] += more.getvalue()

    with pytest.raises(ArchiveError, match="bytes follow the end of an inner archive"):
        verify(write(tmp_path / "changed" / source.name, members), None)


OUTER: dict[str, tuple[Change, str]] = {
    "a member more": (put("evil", b"1"), "one info- and one pkg- archive, no more"),
    "another pkg": (put("pkg-b.tar.zst", b"1"), "one info- and one pkg- archive, no more"),
    "no metadata.json": (without("metadata.json"), "a conda package holds metadata.json"),
    "inner names": (
        lambda members: members.update({"pkg-a-1-0.tar.zst": members.pop(
            next(name for name in members if name.startswith("pkg-")))}),
        "do not belong together",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "words"), OUTER.values(), ids=OUTER.keys())
def test_what_is_around_the_inner_archives(
    change: Change, words: str, builds: Builds, tmp_path: Path
) -> None:
    source = builds[ArtifactKind.CONDA].artifact.path
    members = members_of(source)
    change(members)

    with pytest.raises(ArchiveError) as caught:
        verify(write(tmp_path / source.name, members), None)

    assert words in str(caught.value)


@pytest.mark.parametrize("kind", ArtifactKind)
@pytest.mark.parametrize("name", ["download", "a.zip", "cudnn.whl (1)"])
def test_a_renamed_artifact_is_known_by_its_content(
    kind: ArtifactKind, name: str, builds: Builds, tmp_path: Path
) -> None:
    path = shutil.copyfile(builds[kind].artifact.path, tmp_path / name)

    assert artifact_kind(path) is kind
    assert one(path).faults == ()


def test_an_archive_is_no_artifact(builds: Builds) -> None:
    assert artifact_kind(builds[ArtifactKind.WHEEL].archive) is None
    with pytest.raises(UsageError, match="is not an artifact"):
        verify(builds[ArtifactKind.WHEEL].archive, None)


@pytest.mark.parametrize("kind", ArtifactKind)
def test_artifacts_need_no_scratch(
    kind: ArtifactKind, builds: Builds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is unpacked or written, so a full or read-only disk is no matter."""
    opened = Path.open

    def read_only(self: Path, mode: str = "r") -> object:
        assert mode == "rb"
        return opened(self, mode)

    monkeypatch.setattr(Path, "open", read_only)
    monkeypatch.setattr("tempfile.mkdtemp", None)
    monkeypatch.setattr("tempfile.mkstemp", None)

    assert one(builds[kind].artifact.path).faults == ()


@pytest.mark.parametrize(
    ("kind", "name"),
    [(ArtifactKind.APP_LOCAL, "cudnn.lock.json"), (ArtifactKind.WHEEL, f"{INFO}/RECORD")],
)
def test_a_text_that_would_fill_the_memory(
    kind: ArtifactKind, name: str, builds: Builds, tmp_path: Path
) -> None:
    members = members_of(builds[kind].artifact.path)
    members[name] = b" " * (MAXIMUM_TEXT + 1)
    path = write(tmp_path / builds[kind].artifact.path.name, members)

    with pytest.raises(ArchiveError, match="damaged") as caught:
        verify(path, None)

    assert "is longer than" in str(caught.value)


def test_a_bomb_is_not_inflated(builds: Builds, tmp_path: Path) -> None:
    members = members_of(builds[ArtifactKind.WHEEL].artifact.path)
    path = tmp_path / "a.whl"
    bomb = deflated(bytes(80 << 20), f"{PACKAGE}/bin/{OPS}".encode())
    rest = [deflated(data, name.encode()) for name, data in members.items() if OPS not in name]
    path.write_bytes(made(*rest, bomb))

    with pytest.raises(ArchiveError, match=r"a\.whl is damaged") as caught:
        verify(path, None)

    assert "declares" in caught.value.why


def test_a_crc_that_is_wrong_is_damage_and_all_such_members_are_named(
    builds: Builds, tmp_path: Path
) -> None:
    path = builds[ArtifactKind.APP_LOCAL].artifact.path
    data = bytearray(path.read_bytes())
    for name in (b"README.txt", b"cudnn8.manifest<"):
        data[data.index(name) + 60] ^= 1
    (tmp_path / path.name).write_bytes(data)

    with pytest.raises(ArchiveError) as caught:
        verify(tmp_path / path.name, None)

    assert {fault.where for fault in caught.value.faults} == {"README.txt", "cudnn8.manifest"}


def test_two_wheels_in_one_file(builds: Builds, tmp_path: Path) -> None:
    members = members_of(builds[ArtifactKind.WHEEL].artifact.path)
    members["cudnn_runtime_cu12/__init__.py"] = b""

    with pytest.raises(ArchiveError, match="damaged") as caught:
        verify(write(tmp_path / "a.whl", members), None)

    assert "it holds 2 wheels" in caught.value.why


def test_links_inside_a_wheel_are_refused(builds: Builds, tmp_path: Path) -> None:
    members = members_of(builds[ArtifactKind.WHEEL].artifact.path)
    link = Member(b"a", b"/x", size=2, compressed=2, crc32=0, attributes=0o120777 << 16)
    path = tmp_path / "a.whl"
    path.write_bytes(made(*(deflated(d, n.encode()) for n, d in members.items()), link))

    with pytest.raises(ArchiveError, match="a: is a link"):
        verify(path, None)


def test_there_are_own_copies_to_compare_with() -> None:
    assert len(activation_sources()) > 10
