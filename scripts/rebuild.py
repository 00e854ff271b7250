"""Make an artifact again from NVIDIA's archive, and see that all bytes are the same.

    python scripts/rebuild.py ARTIFACT ARCHIVE [--manifest FILE] [--provenance FILE]

In an environment of the project's own, for an auditor who has nothing but a checkout.
"""

from __future__ import annotations

import sys

import environment


def main(arguments: list[str]) -> int:
    """Set the environment up and run `cudnn-bundler verify --rebuild`."""
    if len(arguments) < 2:
        print((__doc__ or "").strip(), file=sys.stderr)
        return 2
    artifact, archive, *options = arguments
    words = ("-m", "bundler", "verify", artifact, "--rebuild", archive, *options)
    return environment.run(environment.ensure(), *words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
