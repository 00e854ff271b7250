"""Find the `recipes` folder and read from it: the only module that knows where it lies.

The build copies the top-level `recipes/` into the package as `bundler/recipes`; a checkout
(and an editable install of one) has it beside the package instead.
"""

from __future__ import annotations

import importlib.resources
from pathlib import Path
from typing import TYPE_CHECKING

from bundler.catalogue import Catalogue, load_catalogue
from bundler.errors import MissingError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_LANDMARK = "catalogue.json"


def read_recipe(name: str) -> bytes:
    """Read one file of the recipes.

    Args:
        name: posix path inside `recipes`, such as `manifests/cudnn/redistrib_9.6.0.json`.

    Raises:
        MissingError: this installation lacks the file.
    """
    try:
        return recipes_folder().joinpath(*name.split("/")).read_bytes()
    except (OSError, KeyError) as error:
        raise _incomplete(f"recipes/{name}") from error


def recipe_names(folder: str) -> tuple[str, ...]:
    """List the files directly inside one folder of the recipes, sorted.

    Args:
        folder: posix path inside `recipes`; the results begin with it too.

    Raises:
        MissingError: this installation lacks the folder.
    """
    try:
        children = list(recipes_folder().joinpath(*folder.split("/")).iterdir())
    except (OSError, ValueError) as error:
        raise _incomplete(f"recipes/{folder}") from error
    return tuple(sorted(f"{folder}/{child.name}" for child in children if child.is_file()))


def builtin_catalogue() -> Catalogue:
    """Load the catalogue that this installation carries.

    Raises:
        MissingError: this installation lacks one of its files.
    """
    return load_catalogue(
        read_recipe("catalogue.json"),
        wrong_hashes=read_recipe("known_wrong_hashes.json"),
        pins=read_recipe("manifest_pins.json"),
    )


def recipes_folder() -> Traversable:
    """Find the folder.

    Raises:
        MissingError: this installation lacks it.
    """
    candidates: tuple[Traversable, ...] = (
        importlib.resources.files("bundler") / "recipes",
        Path(__file__).parent.parent / "recipes",
    )
    for candidate in candidates:
        # A folder called `recipes` in site-packages may be anybody's: look for our own file.
        if (candidate / _LANDMARK).is_file():
            return candidate
    raise _incomplete("recipes")


def _incomplete(name: str) -> MissingError:
    return MissingError(
        f"this installation lacks its data: {name}",
        next_step="install the package again from a wheel or a complete checkout",
    )
