"""The architecture, written down and held: who may import whom, and where the outside is touched.

Each rule is a function from a module's source to what is wrong with it, so that the last
test can show each of them a module that breaks it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LAYERS: dict[str, tuple[str, ...]] = {
    "words": (
        "bundler", "errors", "shortages", "names", "moment", "artifacts", "resources", "smoke",
    ),
    "formats": (
        "strict_json", "json_fields", "member_names", "zip_end", "zip_directory", "run_time_names",
        "file_window",
    ),
    "records": ("lock", "lock_reading", "catalogue", "manifest"),
    "decisions": (
        "evidence", "witnesses", "trust", "binary_facts", "pe_exports", "pe_shape", "pe",
        "elf_layout", "elf_shape", "elf_symbols", "elf", "binary", "inventory", "import_library",
        "identity", "library_set", "needs", "signature_policy",
    ),
    "our own data": ("recipe_data", "probe"),
    "reading": (
        "stopping", "authenticode", "authenticode.table", "archive_format", "archive",
        "folder_lock", "staging", "library_reading",
    ),
    "signatures": (
        "authenticode.openssl_version", "authenticode.signed_data", "authenticode.worker",
        "authenticode.child", "authenticode.waiting", "authenticode.libraries",
    ),
    "the release": ("release",),
    "writing": (
        "reproducible", "outputs", "compression", "zip_writer", "integrity",
        "cyclonedx_document", "sbom", "provenance", "envelope", "windows_rights", "signing_keys",
    ),
    "artifacts": (
        "artifacts.tar_members", "artifacts.conda_info", "artifacts.conda_recipe",
        "artifacts.conda_engines",
        "artifacts.payload", "artifacts.reading",
        "artifacts.app_local", "artifacts.wheel", "artifacts.conda",
    ),
    "verification": (
        "verification", "verification.comparison", "verification.listings",
        "verification.folder_files", "verification.artifact_files", "verification.locks",
        "verification.own_copies", "verification.conda_files", "verification.app_local",
        "verification.wheel", "verification.conda", "verification.archive_tree",
        "verification.recognition", "verification.verdict",
    ),
    "smoke": (
        "smoke.cached_folder", "smoke.host", "smoke.wine", "smoke.hosts", "smoke.windows_python",
        "smoke.installation", "smoke.report", "smoke.verdict", "smoke.probe_run", "smoke.trap",
        "smoke.app_local", "smoke.wheel", "smoke.conda", "smoke.smoke_test",
    ),
    "the flow": (
        "progress", "fingerprint", "build_cache", "ingest", "attestation", "provenance_check",
        "making", "provenance_reading", "rebuilding", "pipeline",
    ),
    "command line": (
        "presentation", "verification.presentation", "argument_types", "command_line", "__main__",
    ),
}  # fmt: skip
"""From the ground up: a module imports from its own layer and from earlier ones."""

SIBLINGS = (
    ("artifacts.app_local", "artifacts.wheel", "artifacts.conda"),
    ("smoke.app_local", "smoke.wheel", "smoke.conda"),
)
"""Ways to do the same thing, which know nothing of each other."""

PURE = frozenset(
    name
    for layer in ("words", "formats", "records", "decisions")
    for name in LAYERS[layer]
    # Typed by a path; reads files; counts days by the calendar and asks no clock.
    if name not in {"artifacts", "binary", "moment"}
)
OUTSIDE = frozenset({
    "os", "pathlib", "subprocess", "shutil", "tempfile", "zipfile", "tarfile", "urllib", "http",
    "socket", "asyncio", "time", "datetime", "random",
})  # fmt: skip
MAXIMUM_MODULE, MAXIMUM_FUNCTION = 300, 60


@dataclass(frozen=True)
class Module:
    """A module's name below `bundler`, and its source."""

    name: str
    source: str

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node


def modules(folder: str = "bundler") -> list[Module]:
    """Read every module; the emitted package has its own rules and is left out."""
    found = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        parts = path.relative_to(ROOT / folder).with_suffix("").parts
        if "activation" not in parts:
            name = ".".join(part for part in parts if part != "__init__")
            found.append(Module(name or folder, path.read_text(encoding="utf-8")))
    return found


MODULES = modules()
NAMES = {module.name for module in MODULES}
LAYER_OF = {name: number for number, names in enumerate(LAYERS.values()) for name in names}


def imported(module: Module) -> Iterator[str]:
    """Name what a module imports; our own modules without `bundler.` before them."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            for alias in node.names:
                own = f"{origin}.{alias.name}".removeprefix("bundler.")
                if origin.split(".")[0] != "bundler":
                    yield origin
                else:
                    yield own if own in NAMES else origin.removeprefix("bundler.")


def direction(module: Module) -> Iterator[str]:
    if module.name not in LAYER_OF:
        yield "stands in no layer: give it a place in the table of this test"
        return
    for other in imported(module):
        if LAYER_OF.get(other, -1) > LAYER_OF[module.name]:
            yield f"imports {other}, which belongs to a later layer"


def siblings(module: Module) -> Iterator[str]:
    for group in SIBLINGS:
        if module.name in group:
            yield from (f"imports {other}, its sibling" for other in imported(module)
                        if other in group)  # fmt: skip


def purity(module: Module) -> Iterator[str]:
    if module.name in PURE:
        for other in imported(module):
            if other.split(".")[0] in OUTSIDE:
                yield f"imports {other}, yet it is a module of pure functions"


def printing(module: Module) -> Iterator[str]:
    if module.name != "__main__":
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Name) and node.id == "print":
                yield f"line {node.lineno} prints"


def environment(module: Module) -> Iterator[str]:
    if module.name != "__main__":
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"}:
                yield f"line {node.lineno} reads the environment"


def size(module: Module) -> Iterator[str]:
    lines = module.source.count("\n")
    if lines > MAXIMUM_MODULE:
        yield f"has {lines} lines"
    for function in module.functions():
        length = (function.end_lineno or 0) - function.lineno + 1
        if length > MAXIMUM_FUNCTION:
            yield f"{function.name} has {length} lines"


def docstrings(module: Module) -> Iterator[str]:
    if not ast.get_docstring(module.tree):
        yield "has no docstring"
    tree = module.tree
    for body in [tree.body, *(holder.body for holder in public_classes(tree))]:
        for node in body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                overload = any("overload" in ast.unparse(mark) for mark in node.decorator_list)
                if not (node.name.startswith("_") or overload or ast.get_docstring(node)):
                    yield f"{node.name} has no docstring"


def public_classes(tree: ast.Module) -> Iterator[ast.ClassDef]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node


def asserting(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Assert | ast.Global):
            yield f"line {node.lineno} has an assert or a global"


Rule = Callable[[Module], Iterator[str]]
RULES: tuple[Rule, ...] = (
    direction, siblings, purity, printing, environment, size, docstrings, asserting,
)  # fmt: skip


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_module_keeps_the_rule(rule: Rule) -> None:
    assert [f"{module.name}: {what}" for module in MODULES for what in rule(module)] == []


@pytest.mark.parametrize("rule", [size, docstrings, asserting], ids=lambda rule: rule.__name__)
def test_scripts_keep_the_rule(rule: Rule) -> None:
    found = modules("scripts")

    assert len(found) > 3
    assert [f"{script.name}: {what}" for script in found for what in rule(script)] == []


def test_every_module_of_the_table_exists() -> None:
    assert LAYER_OF.keys() - NAMES == set()


def test_nothing_is_imported_in_a_circle() -> None:
    wanted = {module.name: set(imported(module)) & NAMES - {module.name} for module in MODULES}
    left = set(NAMES)
    while left:
        free = {name for name in left if not wanted[name] & left}
        assert free, f"these import each other: {sorted(left)}"
        left -= free


BROKEN: dict[str, tuple[Rule, Module]] = {
    "upwards": (direction, Module("names", "from bundler.release import validate\n")),
    "upwards, a whole module": (direction, Module("names", "from bundler import pipeline\n")),
    "a new module": (direction, Module("nowhere", "")),
    "a sibling": (siblings, Module("artifacts.wheel", "from bundler.artifacts import conda\n")),
    "the system": (purity, Module("trust", "import os.path\n")),
    "from the system": (purity, Module("identity", "from zipfile import ZipFile\n")),
    "a print": (printing, Module("release", "print(1)\n")),
    "a print handed on": (printing, Module("release", "report = print\n")),
    "the environment": (environment, Module("smoke.host", "import os\nos.environ['PATH']\n")),
    "a long module": (size, Module("release", "\n" * 301)),
    "a long function": (size, Module("release", "def f():\n" + "    1\n" * 60)),
    "no docstring at all": (docstrings, Module("release", "")),
    "a function without": (docstrings, Module("release", '"""D."""\ndef f():\n    1\n')),
    "a method without": (
        docstrings,
        Module("release", '"""D."""\nclass A:\n    """D."""\n    def f(self):\n        1\n'),
    ),
    "an assert": (asserting, Module("release", "assert 1\n")),
}  # fmt: skip


@pytest.mark.parametrize(("rule", "module"), BROKEN.values(), ids=BROKEN.keys())
def test_the_rule_notices(rule: Rule, module: Module) -> None:
    assert list(rule(module)) != []
