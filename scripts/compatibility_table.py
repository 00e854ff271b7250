"""Make the probe's tables of drivers and GPUs from `recipes/compatibility.json`.

The C file that it writes is committed, so that building the probe needs a compiler and
nothing else; a test makes it again and compares.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "recipes" / "compatibility.json"
OUTPUT = ROOT / "bundler" / "probe" / "compatibility_table.h"

_BEGINNING = """\
/* Made by scripts/compatibility_table.py from recipes/compatibility.json: change those. */
#ifndef COMPATIBILITY_TABLE_H
#define COMPATIBILITY_TABLE_H

#if defined(_WIN32)
#define HERE(linux_driver, windows_driver) windows_driver
#else
#define HERE(linux_driver, windows_driver) linux_driver
#endif
"""


def table(document: str) -> str:
    """Give the C tables for a document of compatibility facts.

    Args:
        document: JSON of the form of `recipes/compatibility.json`.
    """
    facts = json.loads(document)
    drivers = [
        f"    {{{cuda_number(row['cuda'])}, {cuda_end(row['cuda'])}, "
        f'{cuda_number(row["driver_cuda"])}, "{row["driver_cuda"]}", '
        f'HERE("{row["linux"]}", "{row["windows"]}")}},'
        for row in facts["drivers"]["rows"]
    ]
    devices = [
        f"    {{{row['cuda']}, {cudnn_number(row['from'])}, {cudnn_number(row['through'])}, "
        f"{capability_number(row['oldest'])}, {capability_number(row['newest'])}, "
        f'"{row["through"]}"}},'
        for row in facts["devices"]["rows"]
    ]
    return "\n".join(
        [
            _BEGINNING,
            "/* cudnnGetCudartVersion from, below; what the driver must answer; in words. */",
            "static const struct {",
            "    int from, below, driver_cuda;",
            "    const char *driver_cuda_words, *driver;",
            "} DRIVERS[] = {",
            *drivers,
            "};",
            "",
            "/* CUDA major; cuDNN from and through, major * 10000 + minor * 100 + patch; compute",
            " * capabilities, 75 is 7.5 and 0 is no limit. Older cuDNNs first. */",
            "static const struct {",
            "    int cuda, from, through, oldest, newest;",
            "    const char *version;",
            "} DEVICES[] = {",
            *devices,
            "};",
            "",
            "#endif",
            "",
        ]
    )


def cuda_number(label: str) -> int:
    """Give CUDA's own number of a version: `11` and `11.0` are 11000, `10.2` is 10020."""
    major, _, minor = label.partition(".")
    return int(major) * 1000 + int(minor or 0) * 10


def cuda_end(label: str) -> int:
    """Give the number that is too large for a label: 12000 for `11`, 10030 for `10.2`."""
    return cuda_number(label) + (10 if "." in label else 1000)


def cudnn_number(version: str) -> int:
    """Give one number that compares as versions do, cuDNN 9's own: `8.9.5` is 80905."""
    major, minor, patch = (int(part) for part in version.split("."))
    return major * 10000 + minor * 100 + patch


def capability_number(capability: str) -> int:
    """Give a compute capability as a number: `7.5` is 75, and an empty one 0."""
    return int(capability.replace(".", "")) if capability else 0


def main() -> int:
    """Write the tables."""
    OUTPUT.write_text(table(SOURCE.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
