"""Manifests made by code, in each shape that NVIDIA has used."""

from __future__ import annotations

import copy
import hashlib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bundler.strict_json import JsonObject, JsonValue

WINDOWS = "windows-x86_64"


def archive_fields(
    platform: str, cuda: str, version: str = "8.9.5.29", content: bytes | None = None
) -> JsonObject:
    """Make one archive object; its hashes are those of `content`."""
    suffix = "zip" if platform.startswith("windows") else "tar.xz"
    name = f"cudnn-{platform}-{version}_cuda{cuda}-archive.{suffix}"
    body = name.encode() if content is None else content
    return {
        "relative_path": f"cudnn/{platform}/{name}",
        "sha256": hashlib.sha256(body).hexdigest(),
        "md5": hashlib.md5(body).hexdigest(),
        "size": str(len(body)),
    }


def component(platforms: JsonObject, version: str = "8.9.5.29") -> JsonObject:
    """Make the `cudnn` component around its platforms."""
    named: JsonObject = {
        "name": "NVIDIA CUDA Deep Neural Network library",
        "license": "cudnn",
        "license_path": "cudnn/LICENSE.txt",
        "version": version,
    }
    return named | platforms


def manifest_object(platforms: JsonObject, version: str = "8.9.5.29") -> JsonObject:
    """Make a manifest of the third generation."""
    return {
        "release_date": "2024-03-15",
        "release_label": ".".join(version.split(".")[:3]),
        "release_product": "cudnn",
        "cudnn": component(platforms, version),
    }


def two_variants() -> JsonObject:
    """Make a small, sound manifest with two CUDA variants and a Linux archive."""
    return manifest_object(
        {
            WINDOWS: {
                "cuda11": archive_fields(WINDOWS, "11"),
                "cuda12": archive_fields(WINDOWS, "12"),
            },
            "cuda_variant": ["11", "12"],
            "linux-x86_64": {"cuda12": archive_fields("linux-x86_64", "12")},
        }
    )


def irregular_9_27() -> JsonObject:
    """Make the shape of 9.27.0: a platform that is an archive and holds a variant as well."""
    version = "9.27.0.42"
    arm: JsonObject = {"cuda13": archive_fields("windows-arm64", "13", version)}
    arm |= archive_fields("windows-arm64", "13.4", version)
    x86: JsonObject = {"cuda13": archive_fields(WINDOWS, "13", version)}
    return manifest_object({"windows-arm64": arm, WINDOWS: x86}, version)


def changed(document: JsonObject, path: str, value: JsonValue) -> JsonObject:
    """Copy a document and set one value by its dotted path."""
    copied = copy.deepcopy(document)
    *parents, last = path.split("/")
    place = copied
    for key in parents:
        child = place[key]
        assert isinstance(child, dict)
        place = child
    if value is None:
        del place[last]
    else:
        place[last] = value
    return copied


def encoded(document: JsonObject) -> bytes:
    """Write a document as NVIDIA does: indented, without a final newline."""
    return json.dumps(document, indent=4).encode()
