"""What a library says about itself, in words common to Windows and Linux."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class BinaryFacts:
    """What one library says about itself.

    Args:
        machine: `x86_64`, `x86`, `arm64`, or what the header has, in words or in hex.
        own_name: of the export table (Windows) or SONAME (Linux), or nothing.
        file_version: of the version resource, or nothing when it has none.
        fixed_version: the same in the resource's binary part, or nothing.
        product_version: of the version resource, or nothing.
        original_filename: of the version resource, or nothing.
        imports: per library it links to (its name as written) the functions wanted from it,
            `#5` for one that is wanted by number.
        unbound: Linux: functions it wants without saying from which library.
        exports: the names it offers.
        ordinals: Windows: the numbers it offers functions under, as `#5`.
        run_time_names: library names and patterns in its data, which it may open while running.
        search_path: Linux: the folders it looks in first (RPATH, RUNPATH).
        symbol_versions: Linux: versions wanted of libraries outside cuDNN, `GLIBC_2.27`.
        build_id: Linux: what the linker named this build, hex, or nothing.
        is_signed: an Authenticode signature is attached; says nothing about its worth.
        oddities: in words, what no library of NVIDIA's is known to have.
    """

    machine: str
    file_version: str | None = None
    original_filename: str | None = None
    imports: Mapping[str, frozenset[str]] = field(default_factory=dict)
    exports: frozenset[str] = frozenset()
    run_time_names: tuple[str, ...] = ()
    is_signed: bool = False
    own_name: str | None = None
    fixed_version: str | None = None
    product_version: str | None = None
    ordinals: frozenset[str] = frozenset()
    unbound: frozenset[str] = frozenset()
    search_path: tuple[str, ...] = ()
    symbol_versions: tuple[str, ...] = ()
    build_id: str | None = None
    oddities: tuple[str, ...] = ()
