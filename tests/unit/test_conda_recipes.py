"""recipe.yaml and meta.yaml say the same, and say what the package should say."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import jinja2
import pytest
import yaml
from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig

from bundler.artifacts.conda_recipe import render, variables
from bundler.names import Platform, ReleaseIdentity, Version
from bundler.recipe_data import read_recipe

IDENTITY = ReleaseIdentity(Version.parse("8.9.5.29"), "11", Platform.WINDOWS_X86_64)
VALUES = variables(IDENTITY, [])
Fields = dict[str, object]

SAME: dict[str, tuple[str, Callable[[object], object]]] = {
    "package.name": ("package.name", str),
    "package.version": ("package.version", str),
    "source.path": ("source.path", str),
    "build.number": ("build.number", lambda value: value),
    "build.string": ("build.string", str),
    "build.script": ("build.script", lambda value: value),
    "build.binary_relocation": ("build.dynamic_linking.binary_relocation", lambda value: value),
    "build.missing_dso_whitelist": (
        "build.dynamic_linking.missing_dso_allowlist", lambda value: value),
    "build.detect_binary_files_with_prefix": (
        "build.prefix_detection.ignore", lambda value: not value),
    "build.run_exports.weak": ("requirements.run_exports.weak", lambda value: value),
    "requirements.run_constrained": ("requirements.run_constraints", lambda value: value),
    "about.home": ("about.homepage", str),
    "about.license": ("about.license", str),
    "about.license_file": ("about.license_file", str),
    "about.summary": ("about.summary", str),
}  # fmt: skip
"""Field of meta.yaml -> field of recipe.yaml that must hold the same, once converted."""


def flatten(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield from flatten(child, f"{path}.{key}".strip("."))
    elif isinstance(value, list) and len(value) == 1 and path not in LISTS:
        yield from flatten(value[0], path)
    else:
        yield path, value


LISTS = frozenset({
    "build.missing_dso_whitelist", "build.dynamic_linking.missing_dso_allowlist",
    "build.run_exports.weak", "requirements.run_exports.weak",
})  # fmt: skip
"""Fields that stay lists with one element."""


def select(text: str, build_platform: str) -> str:
    """Drop lines as conda-build does: brackets at a line's end are a selector."""
    kept = []
    for line in text.splitlines():
        match = re.search(r"\[([^\[\]]+)\]\s*$", line)
        if line.lstrip().startswith("#"):
            continue
        if match is None:
            kept.append(line)
        elif eval(match[1], {}, {"build_platform": build_platform}):
            kept.append(line[: match.start()].rstrip().removesuffix("#"))
    return "\n".join(kept)


def meta_fields(text: str, build_platform: str) -> Fields:
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    rendered = environment.from_string(select(text, build_platform)).render(VALUES)
    return dict(flatten(yaml.safe_load(rendered)))


def recipe_fields(path: Path, build_platform: str) -> Fields:
    platforms = PlatformConfig(target_platform="win-64", build_platform=build_platform)
    variants = VariantConfig({key: [value] for key, value in VALUES.items()})
    (variant,) = Stage0Recipe.from_file(path).render(variants, RenderConfig(platform=platforms))
    document = json.loads(json.dumps(variant.recipe.to_dict()))
    assert document.pop("schema_version") == 1
    assert document.pop("context") == {}
    return dict(flatten(document))


def differences(meta: Fields, recipe: Fields) -> list[str]:
    """List fields that one lacks, and fields that differ."""
    unknown = [f"unknown in meta.yaml: {name}" for name in meta.keys() - SAME.keys()]
    expected = {SAME[name][0]: SAME[name][1](value) for name, value in meta.items() if name in SAME}
    return unknown + [
        f"{name}: {expected.get(name)!r} != {recipe.get(name)!r}"
        for name in sorted(expected.keys() | recipe.keys())
        if name not in expected or name not in recipe or expected[name] != recipe[name]
    ]


@pytest.mark.parametrize("build_platform", ["win-64", "linux-64"])
def test_both_recipes_say_the_same(build_platform: str, tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_bytes(read_recipe("conda/recipe.yaml"))
    meta = meta_fields(read_recipe("conda/meta.yaml").decode(), build_platform)

    assert differences(meta, recipe_fields(path, build_platform)) == []
    assert meta.keys() == SAME.keys()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<{{ cudnn_upper }}", ""),
        ("number: 0", "number: 1"),
        ("__cuda >=", "__cuda >"),
        ("LicenseRef-NVIDIA-cuDNN", "MIT"),
        ("binary_relocation: false", "binary_relocation: true"),
        ('    - "*"', '    - "x"'),
        ("unmodified", "patched"),
        ("summary:", "description:"),
        ("    - libcudnn <0.0a0\n", ""),
        ("prefix/.", "prefix"),
        ("../payload", "payload"),
        ('  missing_dso_whitelist:\n    - "*"', '  missing_dso_whitelist: ["*"]'),
    ],
)
def test_a_change_in_one_of_them_is_noticed(old: str, new: str, tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_bytes(read_recipe("conda/recipe.yaml"))
    text = read_recipe("conda/meta.yaml").decode()
    assert text.count(old) == 1

    changed = meta_fields(text.replace(old, new), "linux-64")

    assert differences(changed, recipe_fields(path, "linux-64")) != []


@pytest.mark.parametrize(
    ("version", "cuda", "constrains", "run_export"),
    [
        ("8.9.5.29", "11", ["__cuda >=11", "cuda-version >=11,<12"], "cudnn >=8.9.5.29,<9.0a0"),
        ("7.6.5.32", "10.1", ["__cuda >=10.1", "cuda-version >=10.1,<10.2"],
         "cudnn >=7.6.5.32,<8.0a0"),
        ("9.28.1.4", "13", ["__cuda >=13", "cuda-version >=13,<14"], "cudnn >=9.28.1.4,<10.0a0"),
    ],
)  # fmt: skip
def test_what_the_package_asks_for(
    version: str, cuda: str, constrains: list[str], run_export: str
) -> None:
    identity = ReleaseIdentity(Version.parse(version), cuda, Platform.WINDOWS_X86_64)

    metadata = render(variables(identity, []), identity.platform)

    assert (metadata.name, metadata.version) == ("cudnn", version)
    assert list(metadata.constrains) == [*constrains, "libcudnn <0.0a0"]
    assert metadata.run_exports == (run_export,)
    assert re.fullmatch(rf"cuda{cuda.replace('.', '')}_[0-9a-f]{{8}}_0", metadata.build)
