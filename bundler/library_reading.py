"""Reading what unpacked import libraries and headers say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from bundler.errors import Fault
from bundler.import_library import Promise, read_promises
from bundler.staging import StagedFile


def read_import_libraries(
    files: Iterable[StagedFile],
) -> tuple[dict[str, frozenset[Promise]], list[Fault]]:
    """Read what each import library promises a linker.

    NVIDIA ships each twice, under two names, so equal bytes are read once.

    Returns:
        the promises by path, and the faults of those that cannot be read.
    """
    known: dict[str, frozenset[Promise] | str] = {}
    promises: dict[str, frozenset[Promise]] = {}
    faults: list[Fault] = []
    for file in files:
        if file.sha256 not in known:
            with file.location.open("rb") as stream:
                known[file.sha256] = read_promises(stream)
        found = known[file.sha256]
        if isinstance(found, str):
            faults.append(Fault(file.path, found))
        else:
            promises[file.path] = found
    return promises, faults


def read_version_headers(files: Sequence[StagedFile]) -> bytes:
    """Join the headers that define the version, `cudnn_version.h` since cuDNN 8."""
    names = {"cudnn_version.h", "cudnn.h"}
    return b"\n".join(_head(file.location) for file in files if file.location.name.lower() in names)


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(1024 * 1024)
