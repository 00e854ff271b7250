"""The one comparison, on files in memory: each way to be wrong is told from the others."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bundler.integrity import FoundFile
from bundler.verification import Expected, FaultKind, FileFault, Plan, Unreadable
from bundler.verification.comparison import compare_files, is_cudnn_library
from bundler.verification.folder_files import MAXIMUM_ENTRIES, scan

MAIN, OPS = "bin/cudnn64_8.dll", "bin/cudnn_ops_infer64_8.dll"
WHOLE = {MAIN: b"main", OPS: b"the part", "LICENSE": b"text"}


@dataclass
class MemoryFiles:
    """Files in memory; `unreadable` ones are there and give nothing."""

    content: Mapping[str, bytes]
    is_closed: bool = False
    blocked: Mapping[str, FileFault] = field(default_factory=dict)
    unreadable: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    hashed: set[str] = field(default_factory=set)

    @property
    def sizes(self) -> dict[str, int]:
        return {path: len(data) for path, data in self.content.items()}

    def read(self, path: str) -> bytes:
        return self.content[path]

    def digests(self, paths: Collection[str]) -> dict[str, FoundFile | Unreadable]:
        self.hashed |= set(paths)
        return {path: self._digest(path) for path in paths if path not in self.gone}

    def _digest(self, path: str) -> FoundFile | Unreadable:
        if path in self.unreadable:
            return Unreadable("Permission denied")
        return FoundFile(len(self.content[path]), sha256(self.content[path]))


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def from_lock(content: Mapping[str, bytes] = WHOLE) -> tuple[Expected, ...]:
    return tuple(Expected(p, sha256(d), len(d), "the lock") for p, d in content.items())


def recorded(content: Mapping[str, bytes] = WHOLE) -> tuple[Expected, ...]:
    return tuple(Expected(p, sha256(d), None, "RECORD", recorded=True) for p, d in content.items())


def faults_of(
    files: MemoryFiles, expected: tuple[Expected, ...] | None = None
) -> list[tuple[str, FaultKind, str]]:
    plan = Plan(from_lock() if expected is None else expected, is_ours=is_cudnn_library)
    return [(fault.where, fault.kind, fault.what) for fault in compare_files(files, plan)]


def test_equal_files_have_no_faults() -> None:
    assert faults_of(MemoryFiles({**WHOLE, "program.exe": b"1", "sub/cublas64_11.dll": b"1"})) == []


CHANGES: dict[str, tuple[dict[str, bytes | None], str, FaultKind, str]] = {
    "missing": ({OPS: None}, OPS, FaultKind.MISSING, "is missing"),
    "changed": ({OPS: b"THE PART"}, OPS, FaultKind.CHANGED, f"has SHA-256 {sha256(b'THE PART')}"),
    "another length": ({OPS: b"more"}, OPS, FaultKind.CHANGED, "has 4 bytes instead of 8, has SHA"),
    "empty": ({OPS: b""}, OPS, FaultKind.CHANGED, "is empty; the lock says SHA-256"),
    "extra": (
        {"bin/cudnn64_9.dll": b"1"},
        "bin/cudnn64_9.dll",
        FaultKind.EXTRA,
        "is not part of this release, and cuDNN may open it by name",
    ),
    "extra on Linux": (
        {"lib/libcudnn_ops.so.9.1": b"1"},
        "lib/libcudnn_ops.so.9.1",
        FaultKind.EXTRA,
        "is not part",
    ),
    "nested": (
        {OPS: None, f"bin/{OPS}": WHOLE[OPS]},
        OPS,
        FaultKind.MISPLACED,
        f"is not here; the same bytes lie at bin/{OPS}",
    ),
    "flattened": (
        {OPS: None, "cudnn_ops_infer64_8.dll": WHOLE[OPS]},
        OPS,
        FaultKind.MISPLACED,
        "the same bytes lie at cudnn_ops_infer64_8.dll",
    ),
    "case": (
        {OPS: None, OPS.upper(): WHOLE[OPS]},
        OPS,
        FaultKind.WRONG_CASE,
        f"is spelt {OPS.upper()} here",
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_each_fault_is_told_from_the_others(
    change: tuple[dict[str, bytes | None], str, FaultKind, str],
) -> None:
    changes, where, kind, what = change
    content = {path: data for path, data in {**WHOLE, **changes}.items() if data is not None}

    ((found_where, found_kind, found_what),) = faults_of(MemoryFiles(content))

    assert (found_where, found_kind) == (where, kind)
    assert found_what.startswith(what) or what in found_what


def test_a_changed_file_under_another_spelling_is_both() -> None:
    content = {**WHOLE, OPS.upper(): b"THE PART"}
    del content[OPS]

    assert [kind for _, kind, _ in faults_of(MemoryFiles(content))] == [
        FaultKind.WRONG_CASE,
        FaultKind.CHANGED,
    ]


def test_what_an_installer_wrote_and_is_gone_has_vanished() -> None:
    content = {path: data for path, data in WHOLE.items() if path != OPS}

    faults = faults_of(MemoryFiles(content), from_lock() + recorded())

    assert faults == [(OPS, FaultKind.VANISHED, "was written, for RECORD lists it, and is gone")]


def test_nothing_vanishes_from_an_artifact() -> None:
    content = {path: data for path, data in WHOLE.items() if path != OPS}

    faults = faults_of(MemoryFiles(content, is_closed=True), from_lock() + recorded())

    assert faults == [(OPS, FaultKind.MISSING, "is missing")]


def test_an_unreadable_file_is_not_called_missing_or_changed() -> None:
    files = MemoryFiles(WHOLE, unreadable=frozenset({OPS}))

    assert faults_of(files) == [
        (OPS, FaultKind.UNREADABLE, "is there and cannot be read: Permission denied")
    ]


def test_a_file_that_goes_while_it_is_read_has_vanished() -> None:
    files = MemoryFiles(WHOLE, gone=frozenset({OPS}))

    assert faults_of(files) == [(OPS, FaultKind.VANISHED, "vanished while it was read")]


@pytest.mark.parametrize("where", [OPS, "bin"])
def test_what_leads_out_is_named_once(where: str) -> None:
    content = {path: data for path, data in WHOLE.items() if path == "LICENSE" or where == OPS}
    if where == OPS:
        del content[OPS]
    fault = FileFault(where, "is a link to /elsewhere", FaultKind.LINK)

    faults = faults_of(MemoryFiles(content, blocked={where: fault}))

    assert {(path, kind) for path, kind, _ in faults} == (
        {(OPS, FaultKind.LINK)} if where == OPS else {(p, FaultKind.LINK) for p in (MAIN, OPS)}
    )


def test_lists_that_contradict_each_other_are_named_though_the_file_is_right() -> None:
    others = recorded({**WHOLE, OPS: b"something else"})

    ((where, kind, what),) = faults_of(MemoryFiles(WHOLE), from_lock() + others)

    assert (where, kind) == (OPS, FaultKind.CONTRADICTED)
    assert what.startswith("is what the lock says, but RECORD says")


def test_a_changed_file_that_a_list_agrees_with_says_so() -> None:
    content = {**WHOLE, OPS: b"THE PART"}

    ((_, kind, what),) = faults_of(MemoryFiles(content), from_lock() + recorded(content))

    assert kind is FaultKind.CHANGED
    assert what.endswith("RECORD agrees with the file")


def test_all_faults_are_listed_at_once() -> None:
    content = {MAIN: b"MAIN", "bin/cudnn64_7.dll": b"1", "x/LICENSE": b"text"}

    assert [(where, kind) for where, kind, _ in faults_of(MemoryFiles(content))] == [
        (MAIN, FaultKind.CHANGED),
        (OPS, FaultKind.MISSING),
        ("LICENSE", FaultKind.MISPLACED),
        ("bin/cudnn64_7.dll", FaultKind.EXTRA),
    ]


def test_only_what_may_matter_is_read() -> None:
    """An application's folder may hold gigabytes of other things."""
    files = MemoryFiles({**WHOLE, "data.bin": b"x" * 99, "sub/other.dll": b"y" * 98})

    faults_of(files)

    assert files.hashed == set(WHOLE)


def test_a_member_of_another_length_is_not_inflated() -> None:
    files = MemoryFiles({**WHOLE, OPS: b"x" * 1000}, is_closed=True)

    assert faults_of(files) == [(OPS, FaultKind.CHANGED, "has 1,000 bytes instead of 8 (the lock)")]
    assert OPS not in files.hashed


def fill(folder: Path) -> Path:
    for path, data in WHOLE.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


def scanned(folder: Path) -> list[tuple[str, FaultKind]]:
    plan = Plan(from_lock(), is_ours=is_cudnn_library)
    return [(fault.where, fault.kind) for fault in compare_files(scan(folder), plan)]


def test_a_folder_is_read_as_it_lies(tmp_path: Path) -> None:
    assert scanned(fill(tmp_path)) == []
    assert scan(tmp_path).read("LICENSE") == b"text"


def test_links_are_followed_inside_and_named_outside(tmp_path: Path) -> None:
    folder, outside = fill(tmp_path / "inside"), tmp_path / "outside.dll"
    (folder / OPS).rename(outside)
    (folder / "real").mkdir()
    (folder / MAIN).rename(folder / "real" / "main")
    (folder / MAIN).symlink_to(folder / "real" / "main")
    (folder / OPS).symlink_to(outside)
    (folder / "loop").symlink_to(folder)

    assert scanned(folder) == [(OPS, FaultKind.LINK)]


def test_a_folder_that_is_a_link_out_accuses_every_file_in_it(tmp_path: Path) -> None:
    folder = fill(tmp_path / "inside")
    (folder / "bin").rename(tmp_path / "bin")
    (folder / "bin").symlink_to(tmp_path / "bin")

    assert scanned(folder) == [(MAIN, FaultKind.LINK), (OPS, FaultKind.LINK)]


def test_a_broken_link_and_a_folder_are_no_files(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    for path in (MAIN, OPS):
        (folder / path).unlink()
    (folder / MAIN).symlink_to(folder / "nowhere")
    (folder / OPS).mkdir()

    assert scanned(folder) == [(MAIN, FaultKind.UNREADABLE), (OPS, FaultKind.MISSING)]


def test_a_file_that_the_system_refuses_is_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, opened = fill(tmp_path), Path.open

    def in_use(self: Path, mode: str = "r") -> object:
        if self.name == Path(OPS).name:
            raise PermissionError(13, "used by another process")
        return opened(self, mode)

    monkeypatch.setattr(Path, "open", in_use)

    assert scanned(folder) == [(OPS, FaultKind.UNREADABLE)]


def test_there_is_an_end_to_looking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bundler.verification.folder_files.MAXIMUM_ENTRIES", 2)

    assert MAXIMUM_ENTRIES > 100_000
    with pytest.raises(Exception, match="holds more than 2 files"):
        scan(fill(tmp_path))
