"""The grammar of names: NVIDIA's in, ours out."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.names import Platform, ReleaseIdentity, Version, cuda_label, parse_archive_name
from bundler.recipe_data import builtin_catalogue

ENTRIES = builtin_catalogue().entries
OFFICIAL = "cudnn-windows-x86_64-8.5.0.96_cuda11-archive.zip"


def test_every_catalogued_name_says_its_own_identity() -> None:
    parsed = {entry: parse_archive_name(entry.file_name) for entry in ENTRIES}
    wrong = [
        entry.file_name
        for entry, name in parsed.items()
        if name is None or name.identity != entry.identity or not name.is_official
    ]

    assert wrong == []
    assert len(ENTRIES) > 400


def test_official_names_round_trip() -> None:
    # The older grammar, gzip files and CUDA minor versions were given up with 8.5.0.
    newer = [
        entry
        for entry in ENTRIES
        if entry.identity.version >= Version((8, 5)) and entry.cuda == entry.identity.cuda
    ]

    assert len(newer) > 100
    assert [entry.identity.archive_name for entry in newer] == [e.file_name for e in newer]


@pytest.mark.parametrize(
    ("name", "version", "cuda", "platform", "official"),
    [
        (OFFICIAL, "8.5.0.96", "11", Platform.WINDOWS_X86_64, True),
        ("cudnn-linux-x86_64-9.10.2.21_cuda12-archive.tar.xz", "9.10.2.21", "12",
         Platform.LINUX_X86_64, True),
        ("cudnn-windows-arm64-9.27.0.1_cuda13.4-archive.zip", "9.27.0.1", "13",
         Platform.WINDOWS_ARM64, True),
        ("cudnn-windows-x86_64-8.4.1.50_cuda10.2-archive.zip", "8.4.1.50", "10.2",
         Platform.WINDOWS_X86_64, True),
        ("cudnn-10.1-windows10-x64-v7.6.5.32.zip", "7.6.5.32", "10.1",
         Platform.WINDOWS_X86_64, True),
        ("cudnn-8.0-windows7-x64-v6.0.zip", "6.0", "8.0", Platform.WINDOWS_X86_64, True),
        ("cudnn-11.2-windows-x64-v8.1.0.77.zip", "8.1.0.77", "11", Platform.WINDOWS_X86_64, True),
        ("cudnn-11.0-linux-x64-v8.0.4.30.tgz", "8.0.4.30", "11", Platform.LINUX_X86_64, True),
        ("cudnn-11.3-linux-aarch64sbsa-v8.2.0.53.tgz", "8.2.0.53", "11",
         Platform.LINUX_SBSA, True),
        ("cudnn-10.2-linux-ppc64le-v8.2.0.53.tgz", "8.2.0.53", "10.2",
         Platform.LINUX_PPC64LE, True),
        ("cudnn-windows-x86-64-8.5.0.96-cuda11-archive.zip", "8.5.0.96", "11",
         Platform.WINDOWS_X86_64, False),
        ("cudnn-v8.0.3.33_cuda10.1-windows10-x64.zip", "8.0.3.33", "10.1",
         Platform.WINDOWS_X86_64, False),
        ("cudnn-windows-x86_64-8.5.0.96_cuda11-archive (1).zip", "8.5.0.96", "11",
         Platform.WINDOWS_X86_64, False),
        ("cudnn-windows-x86_64-8.5.0.96_cuda11-archive(12).zip", "8.5.0.96", "11",
         Platform.WINDOWS_X86_64, False),
        ("cudnn-windows-x86_64-8.5.0.96_cuda11-archive_(1).zip", "8.5.0.96", "11",
         Platform.WINDOWS_X86_64, False),
        ("cudnn-windows-x86_64-8.5.0.96_cuda11-archive - Copy.zip", "8.5.0.96", "11",
         Platform.WINDOWS_X86_64, False),
        ("cudnn-windows-x86_64-8.5.0.96_cuda11-archive - Copy (2).zip", "8.5.0.96", "11",
         Platform.WINDOWS_X86_64, False),
        ("Copy of cudnn-windows-x86_64-8.5.0.96_cuda11-archive.zip", "8.5.0.96", "11",
         Platform.WINDOWS_X86_64, False),
        ("cudnn-linux-x86_64-8.5.0.96_cuda11-archive (1).tar.xz", "8.5.0.96", "11",
         Platform.LINUX_X86_64, False),
        ("CUDNN-Windows-x86_64-8.5.0.96_CUDA11-archive.ZIP", "8.5.0.96", "11",
         Platform.WINDOWS_X86_64, False),
    ],
)  # fmt: skip
def test_known_spellings(
    name: str, version: str, cuda: str, platform: Platform, official: bool
) -> None:
    parsed = parse_archive_name(name)

    assert parsed is not None
    assert parsed.identity == ReleaseIdentity(Version.parse(version), cuda, platform)
    assert parsed.is_official is official


@pytest.mark.parametrize(
    "name",
    [
        "",
        "archive.zip",
        "cudnn.zip",
        "cudnn-windows-x86_64-8.5.0.96_cuda11-archive",
        "cudnn-windows-x86_64-8.5.0.96_cuda11-archive.exe",
        "cudnn-windows-x86_64-8_cuda11-archive.zip",
        "cudnn-windows-x86_64-1.2.3.4.5_cuda11-archive.zip",
        "cudnn-windows-mips-8.5.0.96_cuda11-archive.zip",
        "cudnn_samples-linux-x86_64-8.5.0.96_cuda11-archive.tar.xz",
        "cudnn_jit-linux-x86_64-9.10.0.56_cuda12-archive.tar.xz",
        "x-cudnn-windows-x86_64-8.5.0.96_cuda11-archive.zip",
        "cudnn-windows-x86_64-8.5.0.96_cuda11-archive.zip.part",
        f"cudnn-windows-x86_64-{'9' * 7}.5.0.96_cuda11-archive.zip",
        f"cudnn-windows-x86_64-8.5.0.96_cuda{'9' * 5000}-archive.zip",
        "cudnn-windows-x86_64-8.5.0.96_cuda\u0661\u0661-archive.zip",
    ],
)
def test_other_names_say_nothing(name: str) -> None:
    assert parse_archive_name(name) is None


@given(st.text(alphabet=string.printable, max_size=80) | st.from_regex(r"cudnn-.*\.zip"))
def test_no_name_raises(name: str) -> None:
    parse_archive_name(name)


@given(
    st.lists(st.integers(0, 999_999), min_size=2, max_size=4),
    st.sampled_from(["10.0", "10.1", "10.2", "11", "12", "13"]),
    st.sampled_from(Platform),
)
def test_our_spelling_of_an_archives_name_parses_back(
    parts: list[int], cuda: str, platform: Platform
) -> None:
    identity = ReleaseIdentity(Version(tuple(parts)), cuda, platform)

    parsed = parse_archive_name(identity.archive_name)

    assert parsed is not None
    assert parsed.identity == identity


@pytest.mark.parametrize(
    ("version", "number"),
    [
        ("7.6.5.32", 7605),
        ("7.6.5", 7605),
        ("8.0.5.39", 8005),
        ("8.9.5.29", 8905),
        ("8.9.5.30", 8905),
        ("9.0.0.312", 90000),
        ("9.1.1.17", 90101),
        ("9.10.2.21", 91002),
        ("9", 90000),
    ],
)
def test_api_number(version: str, number: int) -> None:
    assert Version.parse(version).api_number == number


@pytest.mark.parametrize(
    "text", ["", "8.", ".8", "8.9.5.29.1", "8.9a", "v8.9", "8,9", " 8.9", "\u0668"]
)
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(ValueError, match="not a version"):
        Version.parse(text)


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        ("8.9.5", "8.9.5.29", True),
        ("8.9.5.29", "8.9.5", True),
        ("8.9.5.29", "8.9.5.30", False),
        ("8.9.5.29", "8.9.4", False),
    ],
)
def test_a_shorter_version_agrees_with_what_it_begins(one: str, other: str, agree: bool) -> None:
    assert Version.parse(one).agrees_with(Version.parse(other)) is agree


def test_versions_are_ordered_as_numbers() -> None:
    assert Version.parse("9.10.0") > Version.parse("9.9.0") > Version.parse("8.9.7.29")


@pytest.mark.parametrize(
    ("cuda", "label"),
    [("8.0", "8.0"), ("9.2", "9.2"), ("10", "10"), ("10.0", "10.0"), ("10.2", "10.2"),
     ("11", "11"), ("11.0", "11"), ("11.6", "11"), ("12", "12"), ("13.4", "13")],
)  # fmt: skip
def test_cuda_labels(cuda: str, label: str) -> None:
    assert cuda_label(cuda) == label


@pytest.mark.parametrize(
    ("cuda", "stem", "distribution", "import_name", "major"),
    [
        ("11", "cudnn-8.9.5.29-cuda11-windows-x86_64", "cudnn-runtime-cu11",
         "cudnn_runtime_cu11", 11),
        ("10.1", "cudnn-8.9.5.29-cuda10.1-windows-x86_64", "cudnn-runtime-cu101",
         "cudnn_runtime_cu101", 10),
    ],
)  # fmt: skip
def test_names_of_artifacts(
    cuda: str, stem: str, distribution: str, import_name: str, major: int
) -> None:
    identity = ReleaseIdentity(Version.parse("8.9.5.29"), cuda, Platform.WINDOWS_X86_64)

    assert identity.stem == stem
    assert identity.distribution == distribution
    assert identity.import_name == import_name
    assert identity.cuda_major == major


@pytest.mark.parametrize(
    ("platform", "wheel_tag", "subdir"),
    [
        (Platform.WINDOWS_X86_64, "win_amd64", "win-64"),
        (Platform.WINDOWS_ARM64, "win_arm64", "win-arm64"),
        (Platform.LINUX_X86_64, "linux_x86_64", "linux-64"),
        (Platform.LINUX_SBSA, "linux_aarch64", "linux-aarch64"),
        (Platform.LINUX_AARCH64, "linux_aarch64", "linux-aarch64"),
        (Platform.LINUX_PPC64LE, "linux_ppc64le", "linux-ppc64le"),
    ],
)
def test_platforms_in_other_ecosystems(platform: Platform, wheel_tag: str, subdir: str) -> None:
    assert (platform.wheel_tag, platform.conda_subdir) == (wheel_tag, subdir)
    assert platform.is_windows is platform.value.startswith("windows")
