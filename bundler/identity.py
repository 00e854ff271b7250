"""Deciding which cuDNN an archive holds: its content first, its name last.

Users rename archives, and download sites do too, so a name is a claim. Version resources
and headers give the version, the names of CUDA's own libraries give CUDA, the machine
type of the libraries gives the platform. Where the name disagrees, that is said.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bundler.binary_facts import BinaryFacts
from bundler.catalogue import CatalogueEntry
from bundler.errors import Fault
from bundler.inventory import MAIN_LIBRARY
from bundler.names import Platform, ReleaseIdentity, Version, cuda_label, parse_archive_name

_PLATFORMS = {"x86_64": Platform.WINDOWS_X86_64, "arm64": Platform.WINDOWS_ARM64}
_CUBLAS = re.compile(r"cublas(?:lt)?64_(\d+)\.dll", re.IGNORECASE)
_DEFINE = re.compile(
    rb"^\s*#\s*define\s+CUDNN_(MAJOR|MINOR|PATCHLEVEL)\s+(\d{1,6})\s*$", re.MULTILINE
)


@dataclass(frozen=True)
class Evidence:
    """Everything that says which release this is.

    Args:
        facts: of each library, by file name.
        header: bytes of the headers that define the version; empty when there are none.
        archive_name: the file's own name.
        entry: the catalogue's entry for the archive's hash, when it has one.
    """

    facts: Mapping[str, BinaryFacts]
    header: bytes
    archive_name: str
    entry: CatalogueEntry | None


@dataclass(frozen=True)
class Identification:
    """The verdict on the evidence.

    Args:
        identity: nothing when the evidence does not suffice.
        faults: contradictions inside the archive.
        notes: disagreements with the file's name, for the user.
    """

    identity: ReleaseIdentity | None
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]


def identify(evidence: Evidence) -> Identification:
    """Weigh the evidence."""
    name = parse_archive_name(evidence.archive_name)
    claims = [name.identity] if name else []
    if evidence.entry is not None:
        claims.insert(0, evidence.entry.identity)
    version, faults = _version(evidence, claims)
    cuda, cuda_faults = _cuda(evidence, claims)
    platform, platform_faults = _platform(evidence.facts)
    faults += cuda_faults + platform_faults
    if version is None or cuda is None or platform is None:
        return Identification(None, tuple(faults), ())
    identity = ReleaseIdentity(version, cuda, platform)
    notes = _disagreements(identity, name.identity, evidence.archive_name) if name else ()
    return Identification(identity, tuple(faults), tuple(notes))


def _version(
    evidence: Evidence, claims: list[ReleaseIdentity]
) -> tuple[Version | None, list[Fault]]:
    header = _header_version(evidence.header)
    resource = _resource_version(evidence.facts)
    if header and resource and not header.agrees_with(resource):
        what = f"says {header}, the libraries' version resources say {resource}"
        return None, [Fault("include/cudnn_version.h", what)]
    content = resource or header
    for claim in claims:
        if content is None or claim.version.agrees_with(content):
            return max(claim.version, content or claim.version), []
    if content is None:
        return None, [Fault("", "does not say its version, neither inside nor by its name")]
    return content, []


def _header_version(header: bytes) -> Version | None:
    values = {key.decode(): int(value) for key, value in _DEFINE.findall(header)}
    if values.keys() != {"MAJOR", "MINOR", "PATCHLEVEL"}:
        return None
    return Version((values["MAJOR"], values["MINOR"], values["PATCHLEVEL"]))


def _resource_version(facts: Mapping[str, BinaryFacts]) -> Version | None:
    """Take what most libraries say, if it is of the generation that their names say."""
    versions = Counter(
        version for fact in facts.values() if (version := parse_file_version(fact.file_version))
    )
    majors = {int(match[1]) for name in facts if (match := MAIN_LIBRARY.fullmatch(name))}
    for version, _ in versions.most_common():
        if version.major in majors:
            return version
    return None


def parse_file_version(text: str | None) -> Version | None:
    """Read a version resource's text: `8.9.5.29`, or `8,9,5,29` as some tools write it."""
    try:
        return Version.parse((text or "").replace(",", ".").replace(" ", ""))
    except ValueError:
        return None


def _cuda(evidence: Evidence, claims: list[ReleaseIdentity]) -> tuple[str | None, list[Fault]]:
    labels = sorted({_label_of(number) for number in _cublas_numbers(evidence.facts.values())})
    if len(labels) > 1:
        return None, [Fault("", f"wants cuBLAS of several CUDA versions: {', '.join(labels)}")]
    claimed = [claim.cuda for claim in claims]
    if not labels:
        if claimed:
            return claimed[0], []
        what = "names no CUDA library, and its file name does not say for which CUDA it is"
        return None, [Fault("", what)]
    # cublas64_10.dll serves CUDA 10.1 and 10.2; only a name can tell which.
    finer = [cuda for cuda in claimed if cuda == labels[0] or cuda.startswith(labels[0] + ".")]
    return (finer or labels)[0], []


def _cublas_numbers(facts: Iterable[BinaryFacts]) -> set[str]:
    return {
        match[1]
        for fact in facts
        for name in (*fact.imports, *fact.run_time_names)
        if (match := _CUBLAS.fullmatch(name))
    }


def _label_of(number: str) -> str:
    """Turn cuBLAS's file number into a CUDA label: `11`, and `10.0` for `100`."""
    return f"{number[:-1]}.{number[-1]}" if int(number) >= 80 else cuda_label(number)


def _platform(facts: Mapping[str, BinaryFacts]) -> tuple[Platform | None, list[Fault]]:
    machines = Counter(fact.machine for fact in facts.values())
    if not machines:
        return None, []
    machine = machines.most_common(1)[0][0]
    if machine not in _PLATFORMS:
        what = f"holds libraries for {machine}; cuDNN exists for x86_64 and arm64"
        return None, [Fault("", what)]
    return _PLATFORMS[machine], []


def _disagreements(
    identity: ReleaseIdentity, claim: ReleaseIdentity, file_name: str
) -> Iterable[str]:
    if not claim.version.agrees_with(identity.version):
        yield f"{file_name} says version {claim.version}, its content says {identity.version}"
    if claim.cuda != identity.cuda:
        yield f"{file_name} says CUDA {claim.cuda}, its content says {identity.cuda}"
    if claim.platform != identity.platform:
        yield f"{file_name} says {claim.platform}, its content says {identity.platform}"
