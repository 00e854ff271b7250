"""The records that pass between an archive, its witnesses and the decision about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bundler.names import ReleaseIdentity, parse_archive_name

if TYPE_CHECKING:
    from bundler.catalogue import Catalogue
    from bundler.errors import Fault
    from bundler.manifest import Manifest

WitnessKind = Literal["catalogue", "manifest", "sha256"]


@dataclass(frozen=True)
class ArchiveDigest:
    """What identifies an archive's bytes.

    Args:
        size: bytes.
        sha256: lower-case hex.
        md5: lower-case hex; nothing when no witness names one.
    """

    size: int
    sha256: str
    md5: str | None


@dataclass(frozen=True)
class GivenWitnesses:
    """The witnesses the user named.

    Args:
        manifest: parsed; it need not be NVIDIA's own.
        manifest_name: its file name, for messages and the lock.
        sha256: lower-case hex, as `normalise_sha256` returns it.
    """

    manifest: Manifest | None = None
    manifest_name: str = ""
    sha256: str | None = None

    @property
    def any(self) -> bool:
        """Say whether the user named a witness at all."""
        return self.manifest is not None or self.sha256 is not None


@dataclass(frozen=True)
class AgreedWitness:
    """A witness that vouches for an archive.

    Args:
        kind: which one.
        detail: the catalogue's file name, the manifest's name and the path in it, or the hash.
        confidence: how well the catalogue's row is founded.
        authentic: whether the manifest's own bytes are known to be NVIDIA's.
    """

    kind: WitnessKind
    detail: str
    confidence: str | None = None
    authentic: bool | None = None


@dataclass(frozen=True)
class Case:
    """The archive in question and all that is known about it.

    Args:
        digest: of the archive's bytes.
        archive_name: its file name.
        given: the witnesses the user named.
        catalogue: what is known beforehand.
    """

    digest: ArchiveDigest
    archive_name: str
    given: GivenWitnesses
    catalogue: Catalogue

    @property
    def claim(self) -> ReleaseIdentity | None:
        """What the file's name claims, when it is that of a cuDNN archive."""
        name = parse_archive_name(self.archive_name)
        return name.identity if name else None


@dataclass(frozen=True)
class Opinion:
    """What one witness says; one that was not asked says nothing.

    Args:
        agreed: set when it vouches.
        faults: set when it disagrees.
        warnings: what the user should know all the same.
    """

    agreed: AgreedWitness | None = None
    faults: tuple[Fault, ...] = ()
    warnings: tuple[str, ...] = ()
