"""Which release an archive holds, by its content first and its name last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from bundler.binary_facts import BinaryFacts
from bundler.catalogue import CatalogueEntry
from bundler.errors import Fault
from bundler.identity import Evidence, Identification, identify, parse_file_version
from bundler.names import Platform, ReleaseIdentity, Version
from bundler.recipe_data import builtin_catalogue
from tests.sample_archives import HEADER, NAME
from tests.sample_facts import library_facts, stand_in_facts

MAIN8 = "cudnn64_8.dll"
BARE = {MAIN8: library_facts()}


def cudnn8(cuda: str, version: str | None = "8.9.5.29") -> dict[str, BinaryFacts]:
    return {MAIN8: library_facts(version=version, names=[f"cublas64_{cuda}.dll"])}


def cudnn7(cuda: str) -> dict[str, BinaryFacts]:
    """One library, linked to cuBLAS, with a version resource of the driver's numbering."""
    return {"cudnn64_7.dll": library_facts(version="6.14.11.10020",
                                           imports=[f"cublas64_{cuda}.dll"])}  # fmt: skip


def cudnn9(cuda: str) -> dict[str, BinaryFacts]:
    """Only cublasLt is named, and the graph library has no version resource."""
    return {
        "cudnn64_9.dll": library_facts(version="9.10.2.21"),
        "cudnn_adv64_9.dll": library_facts(version="9.10.2.21", names=[f"cublasLt64_{cuda}.dll"]),
        "cudnn_graph64_9.dll": library_facts(names=["nvrtc64_%d_0.dll"]),
    }


def header_of(version: str) -> bytes:
    return HEADER.format(*version.split(".")).encode()


def entry_of(file_name: str) -> CatalogueEntry:
    entry = builtin_catalogue().by_file_name(file_name)
    assert entry is not None
    return entry


@dataclass(frozen=True)
class Sample:
    facts: Mapping[str, BinaryFacts]
    name: str = "archive.zip"
    header: bytes = b""
    entry: CatalogueEntry | None = None
    notes: tuple[str, ...] = field(default=())

    def identify(self) -> Identification:
        return identify(Evidence(self.facts, self.header, self.name, self.entry))


KNOWN: dict[str, tuple[Sample, str, str]] = {
    "content alone": (Sample(stand_in_facts()), "8.9.5.29", "11"),
    "content and name agree": (Sample(stand_in_facts(), NAME), "8.9.5.29", "11"),
    "content beats the name's version": (
        Sample(stand_in_facts("8.5.0.96"), NAME,
               notes=(f"{NAME} says version 8.9.5.29, its content says 8.5.0.96",)),
        "8.5.0.96", "11",
    ),
    "content beats the name's CUDA": (
        Sample(cudnn8("12"), NAME, notes=(f"{NAME} says CUDA 11, its content says 12",)),
        "8.9.5.29", "12",
    ),
    "content beats the name's platform": (
        Sample(cudnn8("11"), "cudnn-linux-x86_64-8.9.5.29_cuda11-archive.tar.xz",
               notes=(("cudnn-linux-x86_64-8.9.5.29_cuda11-archive.tar.xz says linux-x86_64, "
                      "its content says windows-x86_64"),)),
        "8.9.5.29", "11",
    ),
    "header only": (Sample(cudnn8("11", None), header=header_of("8.9.5")), "8.9.5", "11"),
    "header, and the name adds the build": (
        Sample(cudnn8("11", None), NAME, header=header_of("8.9.5")), "8.9.5.29", "11",
    ),
    "header beats the name": (
        Sample(cudnn8("11", None), NAME, header=header_of("8.9.4"),
               notes=(f"{NAME} says version 8.9.5.29, its content says 8.9.4",)),
        "8.9.4", "11",
    ),
    "header with two of three numbers is not used": (
        Sample(cudnn8("11"), header=b"#define CUDNN_MAJOR 7\n#define CUDNN_MINOR 1\n"),
        "8.9.5.29", "11",
    ),
    "catalogue entry instead of a name": (
        Sample(BARE, entry=entry_of("cudnn-windows-x86_64-8.9.7.29_cuda12-archive.zip")),
        "8.9.7.29", "12",
    ),
    "catalogue entry before the name": (
        Sample(BARE, NAME, entry=entry_of("cudnn-windows-x86_64-8.9.7.29_cuda12-archive.zip"),
               notes=(f"{NAME} says version 8.9.5.29, its content says 8.9.7.29",
                      f"{NAME} says CUDA 11, its content says 12")),
        "8.9.7.29", "12",
    ),
    "name alone": (Sample(BARE, NAME), "8.9.5.29", "11"),
    "10 is narrowed to 10.1 by the name": (
        Sample(cudnn7("10"), "cudnn-10.1-windows10-x64-v7.6.5.32.zip", header_of("7.6.5")),
        "7.6.5.32", "10.1",
    ),
    "10 is narrowed to 10.2 by the name": (
        Sample(cudnn7("10"), "cudnn-10.2-windows10-x64-v7.6.5.32.zip", header_of("7.6.5")),
        "7.6.5.32", "10.2",
    ),
    "10 is narrowed by the catalogue": (
        Sample(cudnn7("10"), header=header_of("7.6.5"),
               entry=entry_of("cudnn-10.2-windows10-x64-v7.6.5.32.zip")),
        "7.6.5.32", "10.2",
    ),
    "10 stays when no name tells": (
        Sample(cudnn7("10"), header=header_of("7.6.5")), "7.6.5", "10",
    ),
    "10 is not narrowed by a name that says 11": (
        Sample(cudnn8("10"), NAME, notes=(f"{NAME} says CUDA 11, its content says 10",)),
        "8.9.5.29", "10",
    ),
    "100 is 10.0": (Sample(cudnn7("100"), header=header_of("7.6.5")), "7.6.5", "10.0"),
    "92 is 9.2": (Sample(cudnn7("92"), header=header_of("7.6.5")), "7.6.5", "9.2"),
    "80 is 8.0": (Sample(cudnn7("80"), header=header_of("7.1.4")), "7.1.4", "8.0"),
    "cuDNN 9 names cublasLt only": (Sample(cudnn9("13")), "9.10.2.21", "13"),
}  # fmt: skip


@pytest.mark.parametrize(("sample", "version", "cuda"), KNOWN.values(), ids=KNOWN.keys())
def test_what_is_decided(sample: Sample, version: str, cuda: str) -> None:
    verdict = sample.identify()

    expected = ReleaseIdentity(Version.parse(version), cuda, Platform.WINDOWS_X86_64)
    assert (verdict.identity, verdict.faults) == (expected, ())
    assert verdict.notes == sample.notes


UNKNOWN: dict[str, tuple[Sample, Fault]] = {
    "no version": (Sample({MAIN8: library_facts(names=["cublas64_11.dll"])}),
        Fault("", "does not say its version, neither inside nor by its name")),
    "no CUDA": (Sample({MAIN8: library_facts(version="8.9.5.29")}), Fault(
        "", "names no CUDA library, and its file name does not say for which CUDA it is")),
    "two CUDAs": (Sample(
        cudnn8("11") | {"b.dll": library_facts(names=["cublasLt64_12.dll"])}, NAME),
        Fault("", "wants cuBLAS of several CUDA versions: 11, 12")),
    "header against resource": (Sample(cudnn8("11"), NAME, header=header_of("8.9.4")), Fault(
        "include/cudnn_version.h",
        "says 8.9.4, the libraries' version resources say 8.9.5.29")),
    "a 32-bit set": (Sample({MAIN8: library_facts(machine="x86", version="8.9.5.29")}, NAME),
        Fault("", "holds libraries for x86; cuDNN exists for x86_64 and arm64")),
}  # fmt: skip


@pytest.mark.parametrize(("sample", "fault"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_what_cannot_be_decided(sample: Sample, fault: Fault) -> None:
    verdict = sample.identify()

    assert verdict.identity is None
    assert verdict.faults == (fault,)


def test_nothing_known_lists_everything() -> None:
    verdict = Sample({}).identify()

    assert verdict.identity is None
    assert len(verdict.faults) == 2


def test_arm64() -> None:
    facts = {"cudnn64_9.dll": library_facts(machine="arm64", version="9.27.0.42",
                                            names=["cublasLt64_13.dll"])}  # fmt: skip

    identity = Sample(facts).identify().identity

    assert identity is not None
    assert identity.platform is Platform.WINDOWS_ARM64


def test_most_version_resources_win() -> None:
    facts = stand_in_facts() | {
        "cudnn_adv_infer64_8.dll": stand_in_facts("8.5.0.96")["cudnn_adv_infer64_8.dll"]
    }

    identity = Sample(facts).identify().identity

    assert identity is not None
    assert str(identity.version) == "8.9.5.29"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("8.9.5.29", "8.9.5.29"),
        ("8,9,5,29", "8.9.5.29"),
        ("8, 9, 5, 29", "8.9.5.29"),
        ("", None),
        (None, None),
        ("unknown", None),
        ("1.2.3.4.5", None),
    ],
)
def test_version_resources_as_tools_write_them(text: str | None, version: str | None) -> None:
    assert parse_file_version(text) == (Version.parse(version) if version else None)
