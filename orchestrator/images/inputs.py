"""Computes the hash in an image's name from the present inputs of its build."""

from __future__ import annotations

from orchestrator.images import builtin, disk
from orchestrator.images.recipe import Disk, Recipe


def input_hash(recipe: Recipe | Disk) -> str:
    """Returns 16 hexadecimal digits over the inputs and build steps of an image."""
    return disk.input_hash(recipe) if isinstance(recipe, Disk) else builtin.input_hash(recipe)
