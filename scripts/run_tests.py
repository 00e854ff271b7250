"""The tests, from nothing.

    python scripts/run_tests.py [options of pytest]

Tests that need Wine are skipped with a reason where it is not installed; with
CUDNN_BUNDLER_REQUIRE_WINE=1 they fail instead.
"""

from __future__ import annotations

import sys

import environment


def main(arguments: list[str]) -> int:
    """Set the environment up and run pytest."""
    return environment.run(environment.ensure("test"), "-m", "pytest", *arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
