"""Read NVIDIA's `redistrib_*.json`: bytes in, records or a full list of faults out.

Three generations and their mixture are understood. A platform holds

* one archive directly (the first two generations, and all of the CUDA toolkit's), or
* one archive per CUDA major version, under keys such as `cuda11` (the third), or
* both at once (`cudnn.windows-arm64` of 9.27.0).

A manifest must not contradict itself: an archive lies at `<component>/<platform>/<file>`,
its name says the component's version, no file name has two hashes, and no hash is that of
two files. Keys that are not known and hold text are left alone: newer manifests may say more.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bundler.errors import ArchiveError, Fault
from bundler.json_fields import BYTES, DATE, MD5, SHA256, VERSION, FieldReader, Form
from bundler.strict_json import JsonNode, read_json_object, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from bundler.catalogue import ManifestPin

_MAXIMUM_FAULTS = 100
_ARCHIVE_KEYS = ("relative_path", "sha256", "md5", "size")
_VARIANT = re.compile(r"cuda([0-9]{1,3}(?:\.[0-9]{1,3})?)")
_PLATFORM_KEY = re.compile(r"(?:windows|linux|osx)-[a-z0-9_-]+|source")
_PATH = Form(
    re.compile(r"(?:[A-Za-z0-9_+-][A-Za-z0-9._+-]*/){0,8}[A-Za-z0-9_+-][A-Za-z0-9._+-]{0,200}"),
    "a relative path below the redist folder",
)
_FILE_NAME = re.compile(
    r"(?P<stem>[A-Za-z0-9_+-]+?)-(?P<version>[0-9][0-9.]*)(?:_cuda(?P<cuda>[0-9]+(?:\.[0-9]+)?))?"
    r"-archive\.(?:zip|tar\.xz)"
)
# CUDA 13.0.2 keeps what serves every Linux in the folder of sources.
_FOLDERS_OF_PLATFORM = {"linux-all": "source"}


@dataclass(frozen=True)
class ManifestArchive:
    """One archive that a manifest lists.

    Args:
        component: `cudnn`, `cudnn_samples`, `libcublas`, ...
        platform: as the manifest spells it; `source` and `linux-all` are among them.
        cuda: the CUDA version its file name or its variant key says, `11` or `13.4`.
        relative_path: posix path below the redist folder.
        file_name: the last part of that path.
        sha256: lower-case hex.
        md5: lower-case hex.
        size: bytes.
        json_path: where the manifest says so, `cudnn.windows-x86_64.cuda11`.
    """

    component: str
    platform: str
    cuda: str | None
    relative_path: str
    file_name: str
    sha256: str
    md5: str
    size: int
    json_path: str


@dataclass(frozen=True)
class ManifestComponent:
    """One product of a manifest and its archives.

    Args:
        key: its key in the manifest, and the folder of its archives.
        name: its name in words.
        version: all numbers, `8.9.5.29`.
        licence: the name of the licence; the text is only in the archives.
        licence_path: posix path of the text below the redist folder.
        archives: in the manifest's order.
    """

    key: str
    name: str
    version: str
    licence: str
    licence_path: str | None
    archives: tuple[ManifestArchive, ...]


@dataclass(frozen=True)
class Manifest:
    """One manifest.

    Args:
        sha256: of the manifest's own bytes, lower-case hex.
        release_date: `YYYY-MM-DD`; re-issued manifests say when they were re-issued.
        release_label: `8.9.5` or `8.9.5.29`; the first generation has none.
        product: `cudnn`, `cudnn-v8-9-cuda-11`, `cuda`; the first generation has none.
        components: in the manifest's order.
    """

    sha256: str
    release_date: str
    release_label: str | None
    product: str | None
    components: tuple[ManifestComponent, ...]

    @property
    def archives(self) -> tuple[ManifestArchive, ...]:
        """The archives of all components."""
        return tuple(archive for part in self.components for archive in part.archives)


def parse_manifest(data: bytes) -> Manifest:
    """Read a manifest of any generation.

    Args:
        data: the file's bytes, unchanged: their hash is what a pin knows.

    Raises:
        ArchiveError: it is not JSON, or not a manifest, or it contradicts itself; with the
            path inside the JSON for each fault.
    """
    document = read_json_object(data, "the manifest")
    fields = FieldReader(document.faults)
    top = document.top
    manifest = Manifest(
        sha256=hashlib.sha256(data).hexdigest(),
        release_date=fields.text(top, "release_date", DATE),
        release_label=fields.optional_text(top, "release_label", VERSION),
        product=fields.optional_text(top, "release_product"),
        components=tuple(_components(fields, top)),
    )
    if not manifest.components:
        fields.fault("", "lists no component such as cudnn")
    fields.faults += _contradictions(manifest.archives)
    if fields.faults:
        raise _unusable(tuple(dict.fromkeys(fields.faults)))
    return manifest


def is_authentic(manifest: Manifest, pins: Iterable[ManifestPin]) -> bool:
    """Say whether the manifest's own bytes are known to be NVIDIA's."""
    return any(pin.sha256 == manifest.sha256 for pin in pins)


def pinned_sha256(manifest: Manifest, pins: Iterable[ManifestPin]) -> str | None:
    """Find the hash that NVIDIA's own manifest of this product and label has, where known."""
    folder = (manifest.product or "").split("-")[0]
    file = f"{folder}/redistrib_{manifest.release_label}.json"
    return next((pin.sha256 for pin in pins if pin.file == file), None)


def _unusable(faults: Sequence[Fault]) -> ArchiveError:
    listed = list(faults[:_MAXIMUM_FAULTS])
    if len(faults) > len(listed):
        listed.append(Fault("", f"and {len(faults) - len(listed):,} more faults"))
    return ArchiveError(
        "the manifest is not a redistrib manifest that can be relied on",
        faults=listed,
        next_step="download it again from NVIDIA's redist folder, and do not edit it",
    )


def _components(fields: FieldReader, top: JsonNode) -> Iterator[ManifestComponent]:
    for key, value in top.value.items():
        if key.startswith("release_") and not isinstance(value, dict):
            fields.text(top, key)
            continue
        node = fields.child(top, key)
        if node is not None:
            yield _component(fields, node, key)


def _component(fields: FieldReader, node: JsonNode, key: str) -> ManifestComponent:
    version = fields.text(node, "version", VERSION)
    fields.texts(node, "cuda_variant")
    return ManifestComponent(
        key=key,
        name=fields.text(node, "name"),
        version=version,
        licence=fields.text(node, "license"),
        licence_path=fields.optional_text(node, "license_path", _PATH),
        archives=tuple(_archives_of_component(fields, node, _Place(key, "", version))),
    )


@dataclass(frozen=True)
class _Place:
    """What the surroundings of an archive say about it."""

    component: str
    platform: str
    version: str
    variant: str | None = None


def _archives_of_component(
    fields: FieldReader, node: JsonNode, place: _Place
) -> Iterator[ManifestArchive]:
    known = {"name", "license", "license_path", "version", "cuda_variant"}
    for key, value in node.value.items():
        if key in known or not (isinstance(value, dict) or _PLATFORM_KEY.fullmatch(key)):
            continue
        platform = fields.child(node, key)
        if platform is not None:
            here = _Place(place.component, key, place.version)
            yield from _archives_of_platform(fields, platform, here)


def _archives_of_platform(
    fields: FieldReader, node: JsonNode, place: _Place
) -> Iterator[ManifestArchive]:
    flat = any(key in node.value for key in _ARCHIVE_KEYS)
    if flat:
        yield from _archive(fields, node, place)
    variants = [key for key in node.value if _VARIANT.fullmatch(key)]
    for key in variants:
        child = fields.child(node, key)
        if child is not None:
            here = _Place(place.component, place.platform, place.version, key.removeprefix("cuda"))
            yield from _archive(fields, child, here)
    for key, value in node.value.items():
        if isinstance(value, dict) and key not in variants and key not in _ARCHIVE_KEYS:
            fields.fault(node.path(key), "is not a CUDA variant such as cuda12")
    if not flat and not variants:
        fields.fault(node.where, "holds neither an archive nor a CUDA variant such as cuda12")


def _archive(fields: FieldReader, node: JsonNode, place: _Place) -> Iterator[ManifestArchive]:
    before = len(fields.faults)
    path = fields.text(node, "relative_path", _PATH)
    sha256 = fields.text(node, "sha256", SHA256)
    md5 = fields.text(node, "md5", MD5)
    size = fields.text(node, "size", BYTES)
    if path:
        _check_path(fields, node, place, path)
    if len(fields.faults) > before:
        return
    match = _FILE_NAME.fullmatch(path.split("/")[-1])
    yield ManifestArchive(
        component=place.component,
        platform=place.platform,
        cuda=(match["cuda"] if match else None) or place.variant,
        relative_path=path,
        file_name=path.split("/")[-1],
        sha256=sha256,
        md5=md5,
        size=int(size),
        json_path=node.where,
    )


def _check_path(fields: FieldReader, node: JsonNode, place: _Place, path: str) -> None:
    where = node.path("relative_path")
    *folders, name = path.split("/")
    folder = _FOLDERS_OF_PLATFORM.get(place.platform, place.platform)
    if folders != [place.component, folder]:
        fields.fault(
            where, f"must be {shown(f'{place.component}/{folder}/...')}, not {shown(path)}"
        )
    match = _FILE_NAME.fullmatch(name)
    if match is None:
        fields.fault(where, f"its file name {shown(name)} is not that of a redist archive")
        return
    # The toolkit's `imex` archives are called `nvidia-imex-...`; `linux-all` ones name no platform.
    stems = {f"{place.component}-{folder}", place.component if folder == "source" else ""}
    if match["stem"].removeprefix("nvidia-") not in stems:
        fields.fault(where, f"its file name {shown(name)} is that of another component or platform")
    if place.version and match["version"] != place.version:
        fields.fault(where, f"its file name says version {match['version']}, not {place.version}")
    if place.variant and (match["cuda"] or "").split(".")[0] != place.variant.split(".")[0]:
        fields.fault(where, f"its file name {shown(name)} is not one for CUDA {place.variant}")


def _contradictions(archives: Iterable[ManifestArchive]) -> Iterator[Fault]:
    by_name: dict[str, ManifestArchive] = {}
    by_hash: dict[str, ManifestArchive] = {}
    for archive in archives:
        named = by_name.setdefault(archive.file_name, archive)
        hashed = by_hash.setdefault(archive.sha256, archive)
        if named.sha256 != archive.sha256:
            what = f"contradicts {named.json_path}, which gives {archive.file_name} another sha256"
            yield Fault(f"{archive.json_path}.sha256", what)
        if hashed.file_name != archive.file_name:
            what = f"is also what {hashed.json_path} says of another file, {hashed.file_name}"
            yield Fault(f"{archive.json_path}.sha256", what)
