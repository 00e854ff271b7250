"""Rebuild the catalogue of known archives in `recipes/` from the collected records.

    python scripts/update_catalogue.py SOURCE_DIR [--check] [--recipes DIR]

Manifests are copied byte for byte: one changed newline would change the hash that
authenticates them. Tables have one record a line, sorted, so that a change reads as a diff.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

CHECKOUT_RECIPES = Path(__file__).resolve().parent.parent / "recipes"
MANIFEST_FOLDERS = {"cudnn": "redistrib", "cuda": "redistrib_cuda"}
CONFIDENCE_WORDS = {
    "manifest-pinned": "pinned manifest",
    "manifest": "manifest",
    "multi-source": "several sources",
    "single-source": "one source",
}
Record = dict[str, str | int]


def render(source: Path) -> dict[str, bytes]:
    """Compute every generated file, by its posix path inside `recipes`."""
    files = {
        "catalogue.json": _table("archives", catalogue_records(source)),
        "known_wrong_hashes.json": _table("wrong_hashes", wrong_hash_records(source)),
        "manifest_pins.json": _table("pins", pin_records(source)),
    }
    for product, folder in MANIFEST_FOLDERS.items():
        for path in sorted((source / folder).glob("redistrib_*.json")):
            files[f"manifests/{product}/{path.name}"] = path.read_bytes()
    return files


def catalogue_records(source: Path) -> list[Record]:
    """List the known archives; a file name or a hash that occurs twice is an error."""
    archives = json.loads((source / "cudnn_archives.json").read_bytes())
    for key in ("filename", "sha256"):
        twice = [value for value, n in Counter(a[key] for a in archives).items() if n > 1]
        if twice:
            sys.exit(f"cudnn_archives.json: {key} occurs more than once: {', '.join(twice)}")
    return [_catalogue_record(archive) for archive in archives]


def _catalogue_record(archive: Mapping[str, Any]) -> Record:
    kept = ("version", "cuda", "platform", "filename", "sha256", "md5", "size")
    record: Record = {key: archive[key] for key in kept if archive.get(key) is not None}
    record["confidence"] = CONFIDENCE_WORDS[archive["confidence"]]
    record["sources"] = len(archive["independent_sources"])
    return record


def wrong_hash_records(source: Path) -> list[Record]:
    """List hashes that public recipes give for one archive and that belong to another."""
    conflicts = json.loads((source / "archive_hash_conflicts.json").read_bytes())["conflicts"]
    return [
        {"filename": row["filename"], "sha256": row["rejected"], "belongs_to": owner}
        for row in conflicts
        for owner in row["rejected_is_hash_of"]
    ]


def pin_records(source: Path) -> list[Record]:
    """List the SHA-256 of manifest files that are known to be NVIDIA's own bytes."""
    pins = json.loads((source / "manifest_pins.json").read_bytes())["pins"]
    return [{"file": name, "sha256": pin["sha256"]} for name, pin in pins.items()]


def _table(key: str, records: Iterable[Record]) -> bytes:
    lines = sorted((json.dumps(record) for record in records), key=_natural_order)
    body = ",\n".join(lines)
    return f'{{"{key}": [\n{body}\n]}}\n'.encode("ascii")


def _natural_order(line: str) -> list[str]:
    return [piece.zfill(9) if piece.isdigit() else piece for piece in re.split(r"(\d+)", line)]


def differences(files: Mapping[str, bytes], recipes: Path) -> list[str]:
    """Name the files under `recipes` that are absent, changed, or no longer generated."""
    faults = [
        f"{name} is not up to date"
        for name, data in sorted(files.items())
        if not (recipes / name).is_file() or (recipes / name).read_bytes() != data
    ]
    present = {path.relative_to(recipes).as_posix() for path in recipes.glob("manifests/*/*")}
    return faults + [f"{name} has no source" for name in sorted(present - files.keys())]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or with `--check` only say which would change."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path, metavar="SOURCE_DIR")
    parser.add_argument("--recipes", type=Path, default=CHECKOUT_RECIPES)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 on a change")
    options = parser.parse_args(arguments)
    files = render(options.source)
    if not options.check:
        for name, data in files.items():
            (options.recipes / name).parent.mkdir(parents=True, exist_ok=True)
            (options.recipes / name).write_bytes(data)
    faults = differences(files, options.recipes)
    sys.stderr.write("".join(f"{fault}\n" for fault in faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
