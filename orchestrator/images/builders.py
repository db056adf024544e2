"""Builds the images that vNET has recipes for, and checks whether a built one matches its present inputs."""

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
    """Returns the image of that name; builds it if it is absent, if its inputs changed, or with `force`.

    Raises ImageError if the name has no recipe or the build fails.
    """
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
    """Returns whether the image was built from the present inputs; True if vNET has no recipe for it."""
    recipe = recipes().get(image.name)
    return recipe is None or image.made.get("inputs") == input_hash(recipe)
