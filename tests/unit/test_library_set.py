"""Whether the libraries of a set belong together, and the order to load them in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundler.binary_facts import BinaryFacts
from bundler.errors import Fault
from bundler.library_set import (
    EXPECTED_TABLE,
    expectation_warnings,
    library_faults,
    load_expectations,
    load_order,
    oddity_warnings,
)
from bundler.names import Platform, ReleaseIdentity, Version
from bundler.recipe_data import read_recipe
from tests.sample_facts import library_facts, linux_facts, stand_in_facts

IDENTITY = ReleaseIdentity(Version.parse("8.9.5.29"), "11", Platform.WINDOWS_X86_64)
NINE = ReleaseIdentity(Version.parse("9.28.1.4"), "13", Platform.WINDOWS_X86_64)
PARTS = sorted(stand_in_facts().keys() - {"cudnn64_8.dll"})


def faults_of(facts: Mapping[str, BinaryFacts]) -> list[Fault]:
    return library_faults(facts, IDENTITY)


@pytest.mark.parametrize("version", ["8.9.5.29", "8.5.0.96"])
def test_a_whole_set_has_no_faults(version: str) -> None:
    identity = replace(IDENTITY, version=Version.parse(version))

    assert library_faults(stand_in_facts(version), identity) == []


@pytest.mark.parametrize("missing", PARTS)
def test_a_missing_part_is_named(missing: str) -> None:
    facts = stand_in_facts()
    del facts[missing]

    faults = faults_of(facts)

    assert [fault.where for fault in faults] == [missing]
    assert "is missing" in faults[0].what
    assert "cudnn64_8.dll" in faults[0].what


@pytest.mark.parametrize("foreign", [*PARTS, "cudnn64_8.dll"])
def test_a_part_of_another_patch_level_is_named(foreign: str) -> None:
    facts = stand_in_facts() | {foreign: stand_in_facts("8.5.0.96")[foreign]}

    assert faults_of(facts) == [
        Fault(foreign, "is version 8.5.0.96, the release is 8.9.5.29")
    ]  # fmt: skip


def test_a_renamed_library_is_named() -> None:
    facts = stand_in_facts()
    facts["cudnn_adv_train64_8.dll"] = facts["cudnn_cnn_train64_8.dll"]

    assert faults_of(facts) == [
        Fault("cudnn_adv_train64_8.dll", "is really cudnn_cnn_train64_8.dll, renamed")
    ]


def test_other_capitals_are_no_other_name() -> None:
    facts = {name.upper(): fact for name, fact in stand_in_facts().items()}

    assert faults_of(facts) == []


def test_a_library_for_another_machine_is_named() -> None:
    facts = stand_in_facts()
    facts["cudnn_adv_infer64_8.dll"] = replace(facts["cudnn_adv_infer64_8.dll"], machine="arm64")

    assert faults_of(facts) == [
        Fault("cudnn_adv_infer64_8.dll", "is built for arm64, the others for x86_64")
    ]


def test_a_renamed_library_without_a_version_resource_is_named() -> None:
    """As three libraries of cuDNN 9 are: only the linker's name for it is left."""
    facts = stand_in_facts()
    other = facts["cudnn_cnn_train64_8.dll"]
    facts["cudnn_adv_train64_8.dll"] = replace(other, original_filename=None, file_version=None)

    assert faults_of(facts) == [
        Fault("cudnn_adv_train64_8.dll", "is really cudnn_cnn_train64_8.dll, renamed")
    ]


@pytest.mark.parametrize(
    ("product", "fixed", "what"),
    [
        ("8.9.4.25", "8.9.5.29", "product version 8.9.4.25"),
        ("8.9.5.29", "8.9.4.25", "binary version 8.9.4.25"),
        ("8,9,5,29", None, ""),
        ("8.9", None, ""),
        ("of no form", "8.9.5.29", ""),
    ],
)
def test_a_version_resource_that_contradicts_itself(
    product: str, fixed: str | None, what: str
) -> None:
    facts = stand_in_facts()
    main = facts["cudnn64_8.dll"]
    facts["cudnn64_8.dll"] = replace(main, product_version=product, fixed_version=fixed)
    expected = [f"contradicts itself: file version 8.9.5.29, {what}"] if what else []

    assert [fault.what for fault in faults_of(facts)] == expected


def test_functions_wanted_by_number() -> None:
    facts = {
        "a.dll": library_facts(imports={"b.dll": ["#1", "#2"]}),
        "b.dll": replace(library_facts(), ordinals=frozenset({"#1"})),
    }

    (fault,) = faults_of(facts)

    assert "wants #2, which b.dll does not offer" in fault.what


LINUX = ReleaseIdentity(Version.parse("9.14.0.64"), "12", Platform.LINUX_X86_64)


@pytest.mark.parametrize("ending", ["", ".14.0"])
def test_a_whole_linux_set_has_no_faults(ending: str) -> None:
    facts = {name + ending: fact for name, fact in linux_facts().items()}

    assert library_faults(facts, LINUX) == []
    assert load_order(facts)[0].startswith("libcudnn_graph.so.9")
    assert load_order(facts)[-1] == f"libcudnn.so.9{ending}"


LINUX_FAULTS: dict[str, tuple[dict[str, BinaryFacts | None], str]] = {
    "another patch level": (
        {"libcudnn_ops.so.9": None, "libcudnn_ops.so.9.13.1": linux_facts()["libcudnn_ops.so.9"]},
        "libcudnn_ops.so.9.13.1: is version 9.13.1, the release is 9.14.0.64",
    ),
    "a missing part": (
        {"libcudnn_ops.so.9": None},
        "libcudnn_ops.so: is missing; libcudnn.so.9 cannot work without it",
    ),
    "a renamed part": (
        {"libcudnn_adv.so.9": linux_facts()["libcudnn_graph.so.9"]},
        "libcudnn_adv.so.9: is really libcudnn_graph.so.9, renamed",
    ),
    "a function that the exporter lacks": (
        {"libcudnn_graph.so.9": library_facts(own="libcudnn_graph.so.9")},
        "libcudnn_ops.so.9: wants cudnnGraphVersionCheck, which libcudnn_graph.so.9 does not offer",
    ),
    "a function of no library in particular": (
        {"libcudnn_adv.so.9": library_facts(unbound=["inflate", "cudnnGetVersion", "cudnnX"])},
        "libcudnn_adv.so.9: wants cudnnX, which no library of the set offers",
    ),
    "another machine": (
        {"libcudnn_adv.so.9": library_facts(machine="arm64")},
        "libcudnn_adv.so.9: is built for arm64, the others for x86_64",
    ),
}


@pytest.mark.parametrize(("changes", "what"), LINUX_FAULTS.values(), ids=LINUX_FAULTS.keys())
def test_what_is_wrong_with_a_linux_set(changes: dict[str, BinaryFacts | None], what: str) -> None:
    changed = linux_facts() | changes
    facts = {name: fact for name, fact in changed.items() if fact is not None}

    assert any(str(fault).startswith(what) for fault in library_faults(facts, LINUX))


def test_oddities_become_warnings() -> None:
    facts = stand_in_facts()
    main = facts["cudnn64_8.dll"]
    facts["cudnn64_8.dll"] = replace(main, oddities=("has 9 bytes too many",), file_version=None)

    assert list(oddity_warnings(facts, IDENTITY)) == [
        "cudnn64_8.dll has 9 bytes too many",
        "cudnn64_8.dll has no version resource, and every library of cuDNN 8 has one",
    ]
    assert list(oddity_warnings(cudnn9(), NINE)) == []


def test_functions_that_nobody_offers_are_named() -> None:
    facts = stand_in_facts()
    exporter = "cudnn_ops_infer64_8.dll"
    facts[exporter] = replace(facts[exporter], exports=frozenset())

    faults = faults_of(facts)

    assert [fault.where for fault in faults] == [name for name in PARTS if name != exporter]
    what = "wants standInOpsInferVersion, which cudnn_ops_infer64_8.dll does not offer"
    assert all(what in fault.what for fault in faults)


def test_several_absent_functions_are_counted() -> None:
    facts = {
        "a.dll": library_facts(imports={"B.dll": ["f", "g", "h"]}),
        "b.dll": library_facts(exports=["h"]),
    }

    (fault,) = faults_of(facts)

    assert "wants f and 1 more, which B.dll does not offer" in fault.what


def test_all_faults_are_listed_at_once() -> None:
    facts = stand_in_facts()
    del facts["cudnn_adv_train64_8.dll"]
    facts["cudnn_cnn_train64_8.dll"] = stand_in_facts("8.5.0.96")["cudnn_cnn_train64_8.dll"]

    assert {fault.where for fault in faults_of(facts)} == {
        "cudnn_adv_train64_8.dll",
        "cudnn_cnn_train64_8.dll",
    }


def test_an_empty_set_is_left_to_the_inventory() -> None:
    assert faults_of({}) == []


def cudnn9() -> dict[str, BinaryFacts]:
    """A set as of 9.28: some parts have no version resource."""

    def part(name: str, imports: tuple[str, ...], *, version: bool = True) -> BinaryFacts:
        text, original = ("9.28.1.4", f"cudnn{name}64_9.dll") if version else (None, None)
        return library_facts(version=text, original=original,
                             imports=[f"cudnn_{other}64_9.dll" for other in imports])  # fmt: skip

    facts = {
        "cudnn_graph64_9.dll": part("_graph", (), version=False),
        "cudnn_ops64_9.dll": part("_ops", ("graph",)),
        "cudnn_cnn64_9.dll": part("_cnn", ("ops", "graph")),
        "cudnn_adv64_9.dll": part("_adv", ("ops", "graph")),
        "cudnn_heuristic64_9.dll": part("_heuristic", ("graph",), version=False),
        "cudnn_engines_precompiled64_9.dll": part("_engines_precompiled", ("graph",)),
        "cudnn_engines_runtime_compiled64_9.dll": part("_engines_runtime_compiled", ("graph",)),
        "cudnn_engines_tensor_ir64_9.dll": part("_engines_tensor_ir", ("graph",), version=False),
        "cudnn_ext64_9.dll": part("_ext", ()),
    }
    main = library_facts(version="9.28.1.4", original="cudnn64_9.dll", names=sorted(facts))
    return {"cudnn64_9.dll": main, **facts}


def test_parts_without_version_resource_are_let_through() -> None:
    assert library_faults(cudnn9(), NINE) == []


def test_the_single_library_of_cudnn_7() -> None:
    facts = {"cudnn64_7.dll": library_facts(version="6.14.11.10020", imports=["cublas64_10.dll"])}
    identity = ReleaseIdentity(Version.parse("7.6.5.32"), "10.2", Platform.WINDOWS_X86_64)

    assert library_faults(facts, identity) == []
    assert load_order(facts) == ("cudnn64_7.dll",)


@pytest.mark.parametrize("facts", [stand_in_facts(), cudnn9()], ids=["8", "9"])
def test_load_order_of_real_shapes(facts: dict[str, BinaryFacts]) -> None:
    order = load_order(facts)

    assert sorted(order) == sorted(facts)
    assert order[-1] in {"cudnn64_8.dll", "cudnn64_9.dll"}
    assert_topological(order, facts)


def assert_topological(order: tuple[str, ...], facts: Mapping[str, BinaryFacts]) -> None:
    place = {name.lower(): number for number, name in enumerate(order)}
    for name, fact in facts.items():
        for other in fact.imports:
            assert place.get(other.lower(), -1) < place[name.lower()]


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, BinaryFacts]:
    """Random acyclic sets whose names say nothing about the order."""
    count = draw(st.integers(0, 12))
    names = draw(st.permutations([f"cudnn_part{number}64_8.dll" for number in range(count)]))
    facts = {"cudnn64_8.dll": library_facts(names=names)}
    for number, name in enumerate(names):
        imports = draw(st.sets(st.sampled_from(names[:number]))) if number else set()
        facts[name] = library_facts(imports=[*(other.upper() for other in imports), "KERNEL32.dll"])
    return dict(draw(st.permutations(sorted(facts.items()))))


@given(graphs())
def test_load_order_is_topological_with_the_main_library_last(
    facts: dict[str, BinaryFacts],
) -> None:
    order = load_order(facts)

    assert sorted(order) == sorted(facts)
    assert order[-1] == "cudnn64_8.dll"
    assert order == load_order(dict(sorted(facts.items())))
    assert_topological(order, facts)


def test_a_long_chain_does_not_exhaust_the_stack() -> None:
    names = [f"cudnn_{number:04}64_8.dll" for number in range(1100)]
    facts = {
        name: library_facts(imports=[other])
        for name, other in zip(names, [*names[1:], "KERNEL32.dll"], strict=True)
    }

    assert load_order(facts) == tuple(reversed(names))


def test_a_circle_is_loaded_in_some_order() -> None:
    facts = {
        "a.dll": library_facts(imports=["b.dll"]),
        "b.dll": library_facts(imports=["a.dll", "b.dll"]),
    }

    assert load_order(facts) == ("a.dll", "b.dll")


def warnings_of(facts: Mapping[str, BinaryFacts], identity: ReleaseIdentity) -> list[str]:
    expectations = load_expectations(read_recipe(EXPECTED_TABLE))
    return list(expectation_warnings(facts, identity, expectations))


@pytest.mark.parametrize(
    ("facts", "identity"), [(stand_in_facts(), IDENTITY), (cudnn9(), NINE)], ids=["8", "9"]
)
def test_known_sets_need_no_warning(
    facts: dict[str, BinaryFacts], identity: ReleaseIdentity
) -> None:
    assert warnings_of(facts, identity) == []


def test_new_and_absent_libraries_are_mentioned() -> None:
    facts = cudnn9()
    facts["cudnn_new64_9.dll"] = facts.pop("cudnn_ext64_9.dll")

    assert warnings_of(facts, NINE) == [
        "cudnn_new64_9.dll is new: no earlier archive is known to hold it; it is shipped",
        "cudnn_ext64_9.dll is in other archives of this generation, and not in this one",
    ]


def test_libraries_of_later_releases_are_not_expected_of_earlier_ones() -> None:
    facts = cudnn9()
    del facts["cudnn_ext64_9.dll"], facts["cudnn_engines_tensor_ir64_9.dll"]

    assert warnings_of(facts, replace(NINE, version=Version.parse("9.10.2.21"))) == []


def test_an_unknown_generation_is_said() -> None:
    ten = replace(NINE, version=Version.parse("10.0.0.1"))

    assert warnings_of({}, ten) == ["cuDNN 10 is a generation this tool has not seen"]
