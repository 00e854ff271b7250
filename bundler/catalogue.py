"""The built-in table of known archives: bytes in, records out.

Its rows come from NVIDIA's manifests and from public packaging recipes, and each says how
well it is founded. Public recipes also hold hashes that belong to another archive than the
one they name; those are kept apart, to explain a mismatch that starts with one of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bundler.errors import ArchiveError, BundlerError
from bundler.json_fields import SHA256, FieldReader
from bundler.names import Platform, ReleaseIdentity, Version, cuda_label
from bundler.strict_json import JsonNode, read_json_object


class Confidence(StrEnum):
    """How well a row of the catalogue is founded, best first."""

    PINNED_MANIFEST = "pinned manifest"
    MANIFEST = "manifest"
    SEVERAL_SOURCES = "several sources"
    ONE_SOURCE = "one source"


_LISTED_BY_NVIDIA = (Confidence.PINNED_MANIFEST, Confidence.MANIFEST)
_REDIST = "https://developer.download.nvidia.com/compute/cudnn/redist/"


@dataclass(frozen=True)
class CatalogueEntry:
    """One known archive.

    Args:
        identity: which release it is; its `cuda` is a label.
        cuda: the CUDA version as NVIDIA's file name spells it, `11.6`.
        file_name: NVIDIA's own name for it.
        sha256: lower-case hex.
        md5: lower-case hex, where a manifest says it.
        size: bytes, where a manifest says it.
        confidence: how well the hash is founded.
        sources: how many independent sources gave this hash.
    """

    identity: ReleaseIdentity
    cuda: str
    file_name: str
    sha256: str
    md5: str | None
    size: int | None
    confidence: Confidence
    sources: int


@dataclass(frozen=True)
class WrongHash:
    """A hash seen in public for an archive whose hash it is not.

    Args:
        file_name: the archive that public recipes give this hash for.
        sha256: the wrong hash, lower-case hex.
        belongs_to: the archive whose hash it really is.
    """

    file_name: str
    sha256: str
    belongs_to: str


@dataclass(frozen=True)
class ManifestPin:
    """The hash of a manifest file that is known to be NVIDIA's own.

    Args:
        file: product and file name, `cudnn/redistrib_9.6.0.json`.
        sha256: of the file's bytes, lower-case hex.
    """

    file: str
    sha256: str


@dataclass(frozen=True)
class Catalogue:
    """Everything that is known about archives before one is seen.

    Args:
        entries: the known archives; no file name and no hash occurs twice.
        wrong_hashes: hashes published for the wrong archive.
        pins: manifests whose bytes are known.
    """

    entries: tuple[CatalogueEntry, ...]
    wrong_hashes: tuple[WrongHash, ...] = ()
    pins: tuple[ManifestPin, ...] = ()

    def by_sha256(self, sha256: str) -> CatalogueEntry | None:
        """Find the archive with this hash (lower-case hex)."""
        return next((entry for entry in self.entries if entry.sha256 == sha256), None)

    def by_file_name(self, file_name: str) -> CatalogueEntry | None:
        """Find the archive that NVIDIA calls by this name, whatever the case of its letters."""
        wanted = file_name.lower()
        return next((entry for entry in self.entries if entry.file_name.lower() == wanted), None)

    def by_identity(self, identity: ReleaseIdentity) -> tuple[CatalogueEntry, ...]:
        """Find the archives of a release.

        There can be several: builds for CUDA 11.0 and 11.1 share the label 11, and a
        version of three numbers can stand for two builds (8.9.5 is 8.9.5.29 and 8.9.5.30).
        """
        return tuple(
            entry
            for entry in self.entries
            if entry.identity.platform == identity.platform
            and entry.identity.cuda == identity.cuda
            and entry.identity.version.agrees_with(identity.version)
        )

    def known_wrong(self, sha256: str) -> tuple[WrongHash, ...]:
        """Find the archives for which this hash is published although it is another's."""
        return tuple(wrong for wrong in self.wrong_hashes if wrong.sha256 == sha256)


def load_catalogue(
    archives: bytes, *, wrong_hashes: bytes | None = None, pins: bytes | None = None
) -> Catalogue:
    """Read the three generated tables.

    Args:
        archives: the bytes of `catalogue.json`.
        wrong_hashes: the bytes of `known_wrong_hashes.json`.
        pins: the bytes of `manifest_pins.json`.

    Raises:
        BundlerError: a table is damaged; it is this tool's own data, so that is a bug.
    """
    return Catalogue(
        entries=tuple(_entry(row) for row in _rows(archives, "archives")),
        wrong_hashes=tuple(
            WrongHash(_text(row, "filename"), _sha256(row), _text(row, "belongs_to"))
            for row in _rows(wrong_hashes, "wrong_hashes")
        ),
        pins=tuple(ManifestPin(_text(row, "file"), _sha256(row)) for row in _rows(pins, "pins")),
    )


def download_url(catalogue: Catalogue, sha256: str) -> str | None:
    """Give NVIDIA's address for an archive that one of its manifests lists, else nothing.

    Source: NVIDIA's redist folder, whose manifests name each archive by
    `cudnn/PLATFORM/FILE` below it.

    Args:
        catalogue: what is known.
        sha256: of the archive, lower-case hex.
    """
    entry = catalogue.by_sha256(sha256)
    if entry is None or entry.confidence not in _LISTED_BY_NVIDIA:
        return None
    return f"{_REDIST}cudnn/{entry.identity.platform}/{entry.file_name}"


def _rows(data: bytes | None, key: str) -> tuple[JsonNode, ...]:
    if data is None:
        return ()
    try:
        document = read_json_object(data, f"the built-in table of {key}")
    except ArchiveError as error:
        raise _damaged(str(error)) from error
    rows = document.top.value.get(key)
    if document.faults or not isinstance(rows, list):
        raise _damaged(f"{key}: {[str(fault) for fault in document.faults] or 'no rows'}")
    nodes = [
        JsonNode(f"{key}[{number}]", r) for number, r in enumerate(rows) if isinstance(r, dict)
    ]
    if len(nodes) != len(rows):
        raise _damaged(f"{key}: a row is not an object")
    return tuple(nodes)


def _entry(row: JsonNode) -> CatalogueEntry:
    cuda = _text(row, "cuda")
    try:
        platform = Platform(_text(row, "platform"))
        version = Version.parse(_text(row, "version"))
        return CatalogueEntry(
            identity=ReleaseIdentity(version, cuda_label(cuda), platform),
            cuda=cuda,
            file_name=_text(row, "filename"),
            sha256=_sha256(row),
            md5=_text(row, "md5") if "md5" in row.value else None,
            size=_whole_number(row, "size") if "size" in row.value else None,
            confidence=Confidence(_text(row, "confidence")),
            sources=_whole_number(row, "sources"),
        )
    except ValueError as error:
        raise _damaged(f"{row.where}: {error}") from error


def _text(row: JsonNode, key: str) -> str:
    value = row.value.get(key)
    if not isinstance(value, str):
        raise _damaged(f"{row.path(key)} is not a string")
    return value


def _sha256(row: JsonNode) -> str:
    reader = FieldReader()
    value = reader.text(row, "sha256", SHA256)
    if reader.faults:
        raise _damaged(str(reader.faults[0]))
    return value


def _whole_number(row: JsonNode, key: str) -> int:
    value = row.value.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _damaged(f"{row.path(key)} is not a whole number")
    return value


def _damaged(why: str) -> BundlerError:
    return BundlerError(
        "the built-in catalogue is damaged", why=why, next_step="install this tool again"
    )
