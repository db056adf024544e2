"""Which images can be built, and whether one is still what its inputs would give."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.images import builtin, cache, disk
from orchestrator.images.errors import ImageError
from orchestrator.images.find import agent_binary
from orchestrator.images.inputs import input_hash
from orchestrator.images.model import Image, read_image
from orchestrator.images.recipe import Disk, recipes
from orchestrator.project import LAB_KERNELS


def names() -> list[str]:
    return list(recipes())


def build(name: str, *, force: bool, say: Callable[[str], None]) -> Image:
    """The image, built if its inputs are new or `force`. Errors: ImageError."""
    recipe = recipes().get(name)
    if recipe is None:
        raise ImageError(
            f'image "{name}": not one that vNET builds; write one of {", ".join([*names(), *LAB_KERNELS])}'
        )
    directory = cache.cache_dir() / f"{name}-{input_hash(recipe)}"
    if directory.is_dir() and not force:
        say(f"{name}: is there already")
        return read_image(directory)
    if isinstance(recipe, Disk):
        return disk.build(recipe, say)
    return builtin.build(recipe, agent_binary(), say)


def current(image: Image) -> bool:
    """Whether a build now would have the same inputs; images that vNET does not build always are."""
    recipe = recipes().get(image.name)
    return recipe is None or image.made.get("inputs") == input_hash(recipe)
