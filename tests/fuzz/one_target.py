"""Fuzz one target in this process: `python -m tests.fuzz.one_target NAME FOLDER [options]`.

The options are libFuzzer's. Started by `tests.fuzz.campaign`.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import atheris

# Coverage can be seen only in modules that are imported in here.
with atheris.instrument_imports(include=["bundler", "pefile", "zipfile", "tarfile"]):
    from bundler.errors import BundlerError
    from tests.fuzz.targets import TARGETS


def main(name: str, folder: Path, options: list[str]) -> None:
    """Run until libFuzzer ends the process."""
    run = TARGETS[name].run

    def one_input(data: bytes) -> None:
        with suppress(BundlerError):
            run(data, folder)

    atheris.Setup([name, *options], one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
