"""A lock in the words of CycloneDX, made by cyclonedx-python-lib.

There is no CPE: none is known for cuDNN, and a made-up one would tell
scanners that nothing is known against it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.model import (
    ExternalReference,
    ExternalReferenceType,
    HashAlgorithm,
    HashType,
    Property,
    XsUri,
)
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.contact import OrganizationalEntity
from cyclonedx.model.dependency import Dependency
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.model.tool import ToolRepository
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from bundler import __version__
from bundler.catalogue import download_url
from bundler.lock import Lock, LockedFile, Need, NeedKind, Role
from bundler.probe import PROBE_NAME, probe_executable, probe_library
from bundler.recipe_data import builtin_catalogue

_OWN = "cudnn-bundler"
_NVIDIA = "NVIDIA Corporation"
_LICENCE = "NVIDIA cuDNN Software License Agreement"
_SCOPES = {NeedKind.REQUIRED: ComponentScope.REQUIRED, NeedKind.OPTIONAL: ComponentScope.OPTIONAL}


def describe(lock: Lock) -> str:
    """Describe a release as a CycloneDX 1.6 document.

    Returns:
        JSON, in the library's order and with its clock.

    Raises:
        MissingError: there is no probe for this platform.
    """
    release, tool = _release(lock), _tool()
    lock_sha256 = hashlib.sha256(lock.to_bytes()).hexdigest()
    libraries = {file.name: _library(file) for file in lock.runtime_files}
    needs = {need.name: _need(need) for need in lock.needs}
    licences = [_licence(file) for file in lock.files if file.role is Role.LICENCE]
    probes = list(_probes(lock))
    parts = [*libraries.values(), *needs.values(), *licences, *probes]
    bom = Bom(
        serial_number=uuid5(NAMESPACE_URL, f"urn:{_OWN}:lock:sha256:{lock_sha256}"),
        metadata=BomMetaData(
            component=release,
            tools=ToolRepository(components=[tool]),
            properties=[Property(name=f"{_OWN}:lock-sha256", value=lock_sha256)],
        ),
        components=parts,
        dependencies=[
            _depends(release, [*libraries.values(), *probes]),
            *(_depends(part, _links(lock, part, {**libraries, **needs})) for part in parts),
        ],
    )
    return JsonV1Dot6(bom).output_as_string()


def _release(lock: Lock) -> Component:
    identity, archive = lock.identity, lock.archive
    url = download_url(builtin_catalogue(), archive.sha256)
    qualifiers = {"checksum": f"sha256:{archive.sha256}", "file_name": archive.name}
    words = ", ".join(f"{witness.kind} ({witness.detail})" for witness in archive.witnesses)
    return Component(
        bom_ref="cudnn",
        type=ComponentType.LIBRARY,
        name="cudnn",
        version=str(identity.version),
        description=str(identity),
        supplier=_nvidia(),
        licenses=[DisjunctiveLicense(name=_LICENCE)],
        purl=PackageURL(
            "generic",
            "nvidia",
            "cudnn",
            str(identity.version),
            {**qualifiers, **({"download_url": url} if url else {})},
        ),
        external_references=[
            ExternalReference(
                type=ExternalReferenceType.DISTRIBUTION,
                url=XsUri(url or archive.name),
                comment=f"the archive that the libraries were taken from, {archive.size} "
                f"bytes; vouched for by {words}",
                hashes=_sha256(archive.sha256),
            )
        ],
        properties=_properties({"cuda": identity.cuda, "platform": identity.platform}),
    )


def _tool() -> Component:
    return Component(
        bom_ref="tool",
        type=ComponentType.APPLICATION,
        name=_OWN,
        version=__version__,
        licenses=[DisjunctiveLicense(id="Apache-2.0")],
    )


def _library(file: LockedFile) -> Component:
    facts = file.library
    described = {"size": str(file.size), "role": file.role, "archive-path": file.path}
    if facts is not None:
        described |= {"machine": facts.machine}
    return Component(
        bom_ref=f"file:{file.name}",
        type=ComponentType.LIBRARY,
        name=file.name,
        version=facts.file_version if facts else None,
        supplier=_nvidia(),
        licenses=[DisjunctiveLicense(name=_LICENCE)],
        hashes=_sha256(file.sha256),
        scope=ComponentScope.REQUIRED,
        properties=_properties(described),
    )


def _licence(file: LockedFile) -> Component:
    return Component(
        bom_ref=f"file:{file.path}",
        type=ComponentType.FILE,
        name=file.name,
        description=f"the text of the {_LICENCE}",
        supplier=_nvidia(),
        hashes=_sha256(file.sha256),
        properties=_properties(
            {"size": str(file.size), "role": file.role, "archive-path": file.path}
        ),
    )


def _probes(lock: Lock) -> Iterator[Component]:
    """Describe our own program in both its forms, for the document is the same everywhere."""
    executable = PROBE_NAME[lock.identity.platform.is_windows]
    library, library_data = probe_library(lock.identity)
    forms = (
        (executable, probe_executable(lock.identity), "the app-local bundle, the conda package"),
        (library, library_data, "the wheel"),
    )
    for name, data, where in forms:
        yield Component(
            bom_ref=f"probe:{name}",
            type=ComponentType.APPLICATION,
            name=name,
            version=__version__,
            description=f"checks on the target machine that cuDNN works; in {where}",
            licenses=[DisjunctiveLicense(id="Apache-2.0")],
            hashes=_sha256(hashlib.sha256(data).hexdigest()),
            scope=ComponentScope.OPTIONAL,
            properties=_properties({"size": str(len(data)), "role": "probe"}),
        )


def _need(need: Need) -> Component:
    included = need.satisfied_by is not None
    start = "" if included else "not included: "
    return Component(
        bom_ref=f"need:{need.name}",
        type=ComponentType.LIBRARY,
        name=need.name,
        description=start + need.in_words,
        scope=_SCOPES.get(need.kind),
        properties=_properties(
            {
                "included": "true" if included else "false",
                "need": need.kind,
                "role": "run-time need",
            }
        ),
    )


def _links(lock: Lock, part: Component, known: dict[str, Component]) -> Iterator[Component]:
    """Name what a library links to, and what it opens while running."""
    for file in lock.runtime_files:
        if file.name == part.name and file.library is not None:
            lower = {name.lower(): name for name in known}
            names = (lower.get(name.lower()) for name in file.library.imports)
            yield from (known[name] for name in names if name is not None)
    for need in lock.needs:
        if part.name in need.needed_by:
            yield known[need.name]


def _depends(component: Component, others: Iterable[Component]) -> Dependency:
    return Dependency(
        ref=component.bom_ref, dependencies=[Dependency(ref=other.bom_ref) for other in others]
    )


def _nvidia() -> OrganizationalEntity:
    return OrganizationalEntity(name=_NVIDIA, urls=[XsUri("https://www.nvidia.com/")])


def _sha256(digest: str) -> list[HashType]:
    return [HashType(alg=HashAlgorithm.SHA_256, content=digest)]


def _properties(values: dict[str, str]) -> list[Property]:
    return [Property(name=f"{_OWN}:{name}", value=str(value)) for name, value in values.items()]
