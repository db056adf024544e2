"""Plans virtual machines: their resources and their own impaired links."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from contract.plan import Direction, Interface, Link, Vm

from .naming import InterfaceNames, core_netns

if TYPE_CHECKING:
    from ..topology.nodes import Machine  # imports pydantic, which `vnet doctor` on a host does without

BUILTIN = "builtin"
MEMORY_OF_OTHERS = 512 << 20


def vm(machine: Machine, topology: str) -> Vm | None:
    """Returns the settings of a VM node, by default with the built-in image and the memory that `memory`
    returns; None for a light node. A relative image path is relative to the topology file's directory.
    """
    if machine.kind != "vm":
        return None
    image = machine.image or BUILTIN
    made = Vm(_image(image, topology), machine.memory or memory(image))
    changed: dict[str, object] = {"vcpus": machine.vcpus, "boot_deadline_ns": machine.boot_within}
    changed["cloud_init"] = machine.cloud_init
    changed["disk_bytes"] = machine.disk
    return dataclasses.replace(made, **{k: v for k, v in changed.items() if v is not None})  # type: ignore[arg-type]


@cache
def memory(image: str) -> int:
    """Returns the default memory in bytes of a node with this image: that of a built-in image's recipe, else
    MEMORY_OF_OTHERS.
    """
    from ..images.recipe import recipes  # imported here, because a lab of light nodes needs no images

    ours = recipes()
    return ours[image].memory_mib << 20 if image in ours else MEMORY_OF_OTHERS


def has_disk(image: str) -> bool:
    """Returns whether machines of this image have a disk; False for a built-in initramfs, which lives in
    memory.
    """
    from ..images.recipe import Recipe, recipes

    return not isinstance(recipes().get(image), Recipe)


def _image(image: str, topology: str) -> str:
    """Returns the name of an image unchanged, and a path (text with "/", ".qcow2" or ".img") as an absolute
    one, since the lab process runs in another directory.
    """
    if "/" not in image and not image.endswith((".qcow2", ".img")):
        return image
    return str((Path(topology).parent / image).absolute())


def own_link(
    lab: str, name: str, card: Interface, link: Link, names: InterfaceNames
) -> tuple[Interface, Link]:
    """Returns the interface and access link of a VM with a veth pair between a bridge of its own and the
    segment's.

    The link proof cannot run inside the guest, so the pair gives both directions a device in the core.
    """
    core, a, b = core_netns(lab), names.allot(f"{name}-a"), names.allot(f"{name}-b")
    forward = Direction(link.forward.impairment, core, a, core, b, trace=link.forward.trace)
    reverse = Direction(link.reverse.impairment, core, b, core, a, trace=link.reverse.trace)
    moved = dataclasses.replace(card, bridge=names.allot(f"x-{card.port}"))
    return moved, dataclasses.replace(link, forward=forward, reverse=reverse)
