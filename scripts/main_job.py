"""The main job, from nothing: an archive in, three tested artifacts out.

    python scripts/main_job.py [ARCHIVE] [options of `cudnn-bundler build`]

Without an archive it makes the demo archive first (a 712 MB download from PyPI).
"""

from __future__ import annotations

import sys

import environment


def main(arguments: list[str]) -> int:
    """Set the environment up and run `cudnn-bundler build`."""
    python = environment.ensure()
    if not arguments:
        folder = environment.ROOT / "demo"
        code = environment.run(python, "scripts/demo_archive.py", "-o", str(folder))
        if code:
            return code
        archive = folder / "cudnn-windows-x86_64-8.9.5.29_cuda11-archive.zip"
        manifest = folder / "redistrib_8.9.5.29_rebuilt.json"
        arguments = [str(archive), "--manifest", str(manifest)]
    return environment.run(python, "-m", "bundler", "build", *arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
