"""The hash in the name of the image that a build now would give."""

from __future__ import annotations

from orchestrator.images import builtin, disk
from orchestrator.images.recipe import Disk, Recipe


def input_hash(recipe: Recipe | Disk) -> str:
    """16 hexadecimal digits over what the image is made of and how."""
    return disk.input_hash(recipe) if isinstance(recipe, Disk) else builtin.input_hash(recipe)
