"""Binary facts made by hand, and those of the stand-in libraries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bundler.binary import read_binary_facts
from bundler.binary_facts import BinaryFacts
from tests.sample_archives import FIXTURES


def library_facts(
    *,
    machine: str = "x86_64",
    version: str | None = None,
    original: str | None = None,
    imports: Mapping[str, Iterable[str]] | Iterable[str] = (),
    exports: Iterable[str] = (),
    names: Iterable[str] = (),
    own: str | None = None,
    unbound: Iterable[str] = (),
) -> BinaryFacts:
    """Describe a library that need not exist."""
    wanted = imports if isinstance(imports, Mapping) else dict.fromkeys(imports, ())
    return BinaryFacts(
        machine=machine,
        file_version=version,
        original_filename=original,
        imports={name: frozenset(symbols) for name, symbols in wanted.items()},
        exports=frozenset(exports),
        run_time_names=tuple(names),
        own_name=own,
        unbound=frozenset(unbound),
    )


def stand_in_facts(version: str = "8.9.5.29") -> dict[str, BinaryFacts]:
    """Read the facts of a stand-in set, by file name."""
    found = {
        path.name: read_binary_facts(path)
        for path in sorted((FIXTURES / "cudnn8" / version).glob("*.dll"))
    }
    return {name: facts for name, facts in found.items() if isinstance(facts, BinaryFacts)}


def linux_facts() -> dict[str, BinaryFacts]:
    """Read the facts of the stand-ins of cuDNN 9 for Linux, by file name."""
    found = {path.name: read_binary_facts(path)
             for path in sorted((FIXTURES / "cudnn9").glob("*.so.9"))}  # fmt: skip
    return {name: facts for name, facts in found.items() if isinstance(facts, BinaryFacts)}
