"""Makes the project's own virtual environment, so that two commands are all there is.

Standard library only: it runs before anything is installed.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".venv"
_MINIMUM = (3, 11)


def ensure(extra: str = "") -> Path:
    """Make or refresh the environment.

    It is made anew only when `pyproject.toml` or the set of extras changed.

    Args:
        extra: an optional dependency group of `pyproject.toml`, or nothing.

    Returns:
        the environment's Python.
    """
    if sys.version_info < _MINIMUM:
        found = ".".join(str(part) for part in sys.version_info[:3])
        sys.exit(f"this is Python {found}; the project needs 3.11 or later: try python3.11")
    python = FOLDER / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = FOLDER / f"installed-{extra or 'plain'}"
    state = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    if stamp.is_file() and stamp.read_text(encoding="ascii") == state:
        return python
    print(f"setting up {FOLDER} (once)", file=sys.stderr)
    if not python.is_file():
        _make()
    target = f"{ROOT}[{extra}]" if extra else str(ROOT)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*command, "--editable", target], check=False).returncode:
        sys.exit("pip could not install the project: see its message above, mend it and run again")
    stamp.write_text(state, encoding="ascii")
    return python


def _make() -> None:
    if subprocess.run([sys.executable, "-m", "venv", str(FOLDER)], check=False).returncode:
        sys.exit("cannot make a virtual environment; on Debian: apt-get install python3-venv")


def run(python: Path, *arguments: str) -> int:
    """Run a Python command in the project's folder and give its exit code."""
    return subprocess.run([str(python), *arguments], cwd=ROOT, check=False).returncode
