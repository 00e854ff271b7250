"""Checking that the libraries of one release belong together and are complete.

What must be there follows from the files themselves: every cuDNN library that one of
them links to or opens by name, and every function that one wants from another.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from bundler.binary_facts import BinaryFacts
from bundler.errors import Fault
from bundler.identity import parse_file_version
from bundler.inventory import (
    CUDNN_LIBRARY,
    LINUX_LIBRARY,
    LINUX_MAIN_LIBRARY,
    MAIN_LIBRARY,
)
from bundler.names import ReleaseIdentity, Version

EXPECTED_TABLE = "expected_libraries.json"

Facts = Mapping[str, BinaryFacts]


def library_faults(
    facts: Facts, identity: ReleaseIdentity, unreadable: Collection[str] = ()
) -> list[Fault]:
    """List everything that keeps these libraries from working together.

    Args:
        facts: by file name.
        identity: what the set as a whole is.
        unreadable: names of libraries that are there and whose faults are told already.
    """
    present = {loader_name(name, fact): fact for name, fact in facts.items()}
    machine = _common_machine(facts)
    # A library for another machine offers other functions too, which is no second fault.
    alike = {name: fact for name, fact in present.items() if fact.machine == machine}
    return [
        *_machine_faults(facts, machine),
        *_version_faults(facts, identity),
        *_name_faults(facts),
        *_missing_faults(facts, present.keys() | {name.lower() for name in unreadable}),
        *_symbol_faults(facts, alike),
        *_unbound_faults(facts),
    ]


def loader_name(name: str, fact: BinaryFacts) -> str:
    """Give the name by which others find a library: SONAME on Linux, any capitals on Windows."""
    return fact.own_name or name if LINUX_LIBRARY.fullmatch(name) else name.lower()


def oddity_warnings(facts: Facts, identity: ReleaseIdentity) -> Iterator[str]:
    """Say what no library of NVIDIA's is known to have, and is let through all the same.

    Args:
        facts: by file name.
        identity: what the set as a whole is.
    """
    # Of cuDNN 9 three libraries have none, of cuDNN 7 nobody has looked.
    versioned = identity.version.major == 8 and identity.platform.is_windows
    for name, fact in sorted(facts.items()):
        yield from (f"{name} {oddity}" for oddity in fact.oddities)
        if versioned and fact.file_version is None and CUDNN_LIBRARY.fullmatch(name):
            yield f"{name} has no version resource, and every library of cuDNN 8 has one"


def _common_machine(facts: Facts) -> str:
    machines = Counter(fact.machine for fact in facts.values()).most_common(1)
    return machines[0][0] if machines else ""


def _machine_faults(facts: Facts, machine: str) -> Iterator[Fault]:
    for name, fact in facts.items():
        if fact.machine != machine:
            yield Fault(name, f"is built for {fact.machine}, the others for {machine}")


def _version_faults(facts: Facts, identity: ReleaseIdentity) -> Iterator[Fault]:
    """Find mixed patch levels, which cuDNN 8 itself does not notice at run time."""
    for name, fact in facts.items():
        version = _version_of(name, fact)
        if version is None or version.major != identity.version.major:
            continue
        if not version.agrees_with(identity.version):
            yield Fault(name, f"is version {version}, the release is {identity.version}")
        for kind, text in (("product", fact.product_version), ("binary", fact.fixed_version)):
            other = parse_file_version(text)
            if other is not None and not other.agrees_with(version):
                what = f"contradicts itself: file version {version}, {kind} version {other}"
                yield Fault(name, what)


def _version_of(name: str, fact: BinaryFacts) -> Version | None:
    """Take the version resource, or what stands in the name `libcudnn.so.9.14.0`."""
    linux = LINUX_LIBRARY.fullmatch(name)
    return parse_file_version(linux[1] if linux else fact.file_version)


def _name_faults(facts: Facts) -> Iterator[Fault]:
    """Compare a file's name with the two that its linker and its resource gave it."""
    for name, fact in facts.items():
        for real in dict.fromkeys((fact.original_filename, fact.own_name)):
            if real and is_cudnn_library(real) and not _is_named(name, real):
                yield Fault(name, f"is really {real}, renamed")
                break


def is_cudnn_library(name: str) -> bool:
    """Say whether a name is that of a cuDNN library of any platform."""
    return bool(CUDNN_LIBRARY.fullmatch(name) or LINUX_LIBRARY.fullmatch(name))


def _is_named(name: str, real: str) -> bool:
    """Compare names: a Linux library may have more of its version behind its SONAME."""
    if LINUX_LIBRARY.fullmatch(real):
        return name == real or name.startswith(real + ".")
    return name.lower() == real.lower()


def _missing_faults(facts: Facts, present: Collection[str]) -> Iterator[Fault]:
    wanted: dict[str, list[str]] = {}
    for name, fact in facts.items():
        for other in (*fact.imports, *fact.run_time_names):
            if is_cudnn_library(other) and not _is_there(other, present):
                wanted.setdefault(other, []).append(name)
    for other, users in sorted(wanted.items()):
        yield Fault(other, f"is missing; {', '.join(sorted(users))} cannot work without it")


def _is_there(wanted: str, present: Collection[str]) -> bool:
    """Look a name up; cuDNN 9 for Linux puts the version behind `libcudnn_ops.so` itself."""
    if LINUX_LIBRARY.fullmatch(wanted):
        return any(_is_named(name, wanted) for name in present)
    return wanted.lower() in present


def _symbol_faults(facts: Facts, present: Facts) -> Iterator[Fault]:
    for name, fact in facts.items():
        for other, symbols in fact.imports.items():
            exporter = present.get(other) or present.get(other.lower())
            absent = sorted(symbols - exporter.exports - exporter.ordinals) if exporter else []
            if absent:
                more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
                what = f"wants {absent[0]}{more}, which {other} does not offer"
                yield Fault(name, f"{what}: they are of different builds")


def _unbound_faults(facts: Facts) -> Iterator[Fault]:
    """Find functions of cuDNN's own that no library of a Linux set offers."""
    offered = frozenset[str]().union(*(fact.exports for fact in facts.values()))
    for name, fact in facts.items():
        absent = sorted(symbol for symbol in fact.unbound - offered if "cudnn" in symbol)
        if absent:
            more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
            what = f"wants {absent[0]}{more}, which no library of the set offers"
            yield Fault(name, f"{what}: they are of different builds")


def load_order(facts: Facts) -> tuple[str, ...]:
    """Order libraries so that each comes after those it links to, the main one last.

    The main library links to none of the others and opens them by name, so it must find
    them in the process already.

    Args:
        facts: by file name, with a closed import graph.
    """
    spelling = {loader_name(name, fact): name for name, fact in facts.items()}
    needed = {
        name: {
            spelling[found]
            for other in fact.imports
            for found in {other, other.lower()} & spelling.keys()
        }
        - {name}
        for name, fact in facts.items()
    }
    left = dict.fromkeys(sorted(facts, key=lambda name: (_is_main(name), name)))
    ordered: list[str] = []
    while left:
        # Libraries that import each other have no right order; Windows loads them in any.
        ready = next((name for name in left if not any(n in left for n in needed[name])), None)
        ordered.append(ready or next(iter(left)))
        del left[ordered[-1]]
    return tuple(ordered)


def _is_main(name: str) -> bool:
    return bool(MAIN_LIBRARY.fullmatch(name) or LINUX_MAIN_LIBRARY.fullmatch(name))


def load_expectations(data: bytes) -> Mapping[int, Mapping[str, Version | None]]:
    """Read the table of known libraries: per major, name to the version it came with.

    Args:
        data: the bytes of `recipes/expected_libraries.json`.
    """
    table: dict[int, dict[str, Version | None]] = {}
    for major, row in json.loads(data)["windows"].items():
        names: dict[str, Version | None] = dict.fromkeys(row["known"])
        names |= {name: Version.parse(since) for name, since in row["since"].items()}
        table[int(major)] = names
    return table


def expectation_warnings(
    facts: Facts,
    identity: ReleaseIdentity,
    expectations: Mapping[int, Mapping[str, Version | None]],
) -> Iterator[str]:
    """Say what looks new or missing compared with earlier archives of the generation."""
    known = expectations.get(identity.version.major)
    if known is None:
        yield f"cuDNN {identity.version.major} is a generation this tool has not seen"
        return
    present = {name.lower() for name in facts}
    for name in sorted(facts):
        if name.lower() not in known:
            yield f"{name} is new: no earlier archive is known to hold it; it is shipped"
    for name, since in known.items():
        expected = since is None or identity.version >= since
        if expected and name not in present:
            yield f"{name} is in other archives of this generation, and not in this one"
