"""Another cuDNN, laid where a wrongly built artifact would find it first.

A folder of decoys, one per payload name, stands at the head of the child's PATH. A trap
that never catches anything proves nothing, so it is tried once with the probe alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bundler.errors import SmokeError
from bundler.names import Platform
from bundler.probe import decoy_library
from bundler.smoke.host import Host
from bundler.smoke.probe_run import run_probe


@dataclass(frozen=True)
class Trap:
    """The folder that must never be loaded from.

    Args:
        folder: holds a library under every payload name.
        environment: puts it first where the child searches.
    """

    folder: Path
    environment: dict[str, str]


def lay_trap(host: Host, platform: Platform, names: Iterable[str], folder: Path) -> Trap:
    """Fill a folder with decoys.

    Args:
        host: where programs will run.
        platform: of the libraries.
        names: payload file names.
        folder: a new folder.
    """
    folder.mkdir()
    decoy = decoy_library(platform)
    for name in names:
        (folder / name).write_bytes(decoy)
    return Trap(folder, host.search_path([folder]))


def check_trap(host: Host, probe: Path, trap: Trap) -> None:
    """Make sure the trap catches a probe that stands alone.

    Args:
        host: where programs run.
        probe: the probe in a folder without libraries.
        trap: as laid.

    Raises:
        SmokeError: it does not, so a pass would prove nothing.
    """
    outcome = run_probe(host, [probe], environment=trap.environment, cwd=probe.parent)
    if not any(module.folder_is(host.path_argument(trap.folder)) for module in outcome.modules):
        raise SmokeError(
            "the smoke test's own trap does not work",
            why="a probe without libraries did not load the decoys on PATH",
            next_step="report this with the smoke report; the other results cannot be relied on",
        )
