"""What a payload opens by name that it does not hold."""

from __future__ import annotations

import pytest

from bundler.lock import LibraryFacts, LockedFile, NeedKind, Role
from bundler.names import Version
from bundler.needs import TABLE, load_rules, needs_of
from bundler.recipe_data import read_recipe

RULES = load_rules(read_recipe(TABLE))
V8 = Version.parse("8.9.5.29")


def locked(name: str, *names: str, imports: tuple[str, ...] = ()) -> LockedFile:
    facts = LibraryFacts("x86_64", None, imports, names, 0, None)
    return LockedFile(f"bin/{name}", 1, "0" * 64, Role.RUNTIME, facts)


def kind_of(name: str, version: Version = V8) -> NeedKind | None:
    """Tell what the table makes of a name; nothing when it is not listed."""
    found = needs_of([locked("cudnn64_8.dll", name)], version, RULES)
    return found[0].kind if found else None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cublas64_11.dll", NeedKind.REQUIRED),
        ("CUBLAS64_11.DLL", NeedKind.REQUIRED),
        ("cublas64_100.dll", NeedKind.REQUIRED),
        ("cublasLt64_13.dll", NeedKind.REQUIRED),
        ("nvrtc64_%d_0.dll", NeedKind.OPTIONAL),
        ("nvrtc64_130_0.dll", NeedKind.OPTIONAL),
        ("nvrtc-builtins64_118.dll", NeedKind.OPTIONAL),
        ("cudart64_110.dll", NeedKind.REQUIRED),
        ("vcruntime140_1.dll", NeedKind.REQUIRED),
        ("MSVCP140.dll", NeedKind.REQUIRED),
        ("nvcuda.dll", NeedKind.DRIVER),
        ("nvldumdx.dll", NeedKind.DRIVER),
        ("nvcudart_hybrid64.dll", NeedKind.DRIVER),
        ("cask_profile_interface.dll", None),
        ("KERNEL32.dll", None),
        ("api-ms-win-crt-runtime-l1-1-0.dll", None),
        ("ntdll.dll", None),
        ("mystery.dll", NeedKind.UNKNOWN),
        ("cudnn_ops_infer64_8.dll", NeedKind.UNKNOWN),
        ("xcublas64_11.dll", NeedKind.UNKNOWN),
    ],
)
def test_what_a_name_means(name: str, kind: NeedKind | None) -> None:
    assert kind_of(name) is kind


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("7.6.5.32", NeedKind.UNKNOWN),
        ("8.2.4.15", NeedKind.UNKNOWN),
        ("8.3.0", NeedKind.OPTIONAL),
        ("8.3.0.98", NeedKind.OPTIONAL),
        ("8.9.7.29", NeedKind.OPTIONAL),
        ("9.1.1.17", NeedKind.OPTIONAL),
        ("9.2.0", None),
        ("9.2.0.82", None),
        ("9.28.1.4", None),
    ],
)
def test_zlibwapi_by_version(version: str, kind: NeedKind | None) -> None:
    assert kind_of("zlibwapi.dll", Version.parse(version)) is kind


def test_the_payloads_own_names_are_no_needs() -> None:
    payload = [locked("A.dll", "b.dll", imports=("B.DLL",)), locked("b.dll", "a.dll")]

    assert needs_of(payload, V8, RULES) == ()


def test_imports_count_and_users_are_gathered_across_spellings() -> None:
    payload = [
        locked("b.dll", "cublas64_11.dll"),
        locked("a.dll", imports=("CUBLAS64_11.dll",)),
        locked("c.dll", "aaa.dll"),
    ]

    needs = needs_of(payload, V8, RULES)

    assert [need.needed_by for need in needs] == [("c.dll",), ("a.dll", "b.dll")]
    assert needs[1].name == "CUBLAS64_11.dll"
    assert needs[1].provider == "libcublas"


def test_unknown_names_are_kept_and_say_so() -> None:
    (need,) = needs_of([locked("a.dll", "Mystery.dll")], V8, RULES)

    assert need.name == "Mystery.dll"
    assert need.satisfied_by is None
    assert "does not know" in need.reason


def test_the_result_does_not_depend_on_the_order_of_the_payload() -> None:
    payload = [locked("b.dll", "Mystery.dll", "nvcuda.dll"), locked("a.dll", "mystery.dll")]

    assert needs_of(payload, V8, RULES) == needs_of(reversed(payload), V8, RULES)


def test_a_single_library_of_cudnn_7_needs_what_it_links_to() -> None:
    payload = [locked("cudnn64_7.dll", "nvcuda.dll", imports=("cublas64_10.dll", "KERNEL32.dll"))]

    needs = needs_of(payload, Version.parse("7.6.5.32"), RULES)

    assert {need.name: need.kind for need in needs} == {
        "cublas64_10.dll": NeedKind.REQUIRED,
        "nvcuda.dll": NeedKind.DRIVER,
    }
