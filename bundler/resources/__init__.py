"""Files that run elsewhere and are never imported here."""

from __future__ import annotations

from importlib.resources import files


def activation_sources() -> dict[str, bytes]:
    """Read the modules of the emitted wheel: file name to bytes."""
    folder = files(__name__) / "activation"
    return {
        item.name: item.read_bytes()
        for item in folder.iterdir()
        if item.name.endswith(".py") or item.name == "py.typed"
    }
