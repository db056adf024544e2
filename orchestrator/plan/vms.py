"""Plans virtual machines: their resources, their own impaired links, and bridge VMs that carry netem."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from contract.plan import Direction, Event, Interface, Link, Node, Vm

from .. import queueing
from ..topology.nodes import Machine
from .naming import InterfaceNames, bridge_vm_macs, core_netns, node_cgroup, node_netns

BUILTIN = "builtin"
MEMORY_OF_OTHERS = 512 << 20
GROUP = "netem"  # of the bridge VMs, in tables and figures


def vm(machine: Machine, topology: str) -> Vm | None:
    """Returns the settings of a VM node; None for a light node. A relative image path is relative to the
    topology.
    """
    if machine.kind != "vm":
        return None
    image = machine.image or BUILTIN
    made = Vm(_image(image, topology), machine.memory or memory(image))
    changed: dict[str, object] = {"vcpus": machine.vcpus, "boot_deadline_ns": machine.boot_within}
    changed["cloud_init"] = machine.cloud_init
    return dataclasses.replace(made, **{k: v for k, v in changed.items() if v is not None})  # type: ignore[arg-type]


@cache
def memory(image: str) -> int:
    """Returns the default memory of a node with this image in bytes; for a built-in image, that of its
    recipe.
    """
    from ..images.recipe import recipes  # here, because a lab of light nodes needs no images

    ours = recipes()
    return ours[image].memory_mib << 20 if image in ours else MEMORY_OF_OTHERS


def has_disk(image: str) -> bool:
    """Whether machines of this image have a disk; False for a built-in initramfs, which lives in memory."""
    from ..images.recipe import Recipe, recipes

    return not isinstance(recipes().get(image), Recipe)


def _image(image: str, topology: str) -> str:
    """Returns the name of an image unchanged, and a path as an absolute one, since the lab process runs in
    another directory.
    """
    if "/" not in image and not image.endswith((".qcow2", ".img")):
        return image
    return str((Path(topology).parent / image).absolute())


def own_link(
    lab: str, name: str, card: Interface, link: Link, names: InterfaceNames
) -> tuple[Interface, Link]:
    """Returns the interface and access link of a VM with a veth pair between a bridge of its own and the
    segment's.

    The link proof cannot run inside the guest; with the pair, both directions have a device in the core.
    """
    core, a, b = core_netns(lab), names.allot(f"{name}-a"), names.allot(f"{name}-b")
    forward = Direction(link.forward.impairment, core, a, core, b, trace=link.forward.trace)
    reverse = Direction(link.reverse.impairment, core, b, core, a, trace=link.reverse.trace)
    moved = dataclasses.replace(card, bridge=names.allot(f"x-{card.port}"))
    return moved, dataclasses.replace(link, forward=forward, reverse=reverse)


def needs_netem(link: Link, events: Iterable[Event]) -> bool:
    """Whether a link has an impairment that only netem can apply, from the start or by the timeline. False
    for half duplex and for links with a queue of a stated kind, which bridge VMs do not support.
    """
    ways = (link.forward.impairment, link.reverse.impairment)
    if link.half_duplex or any(way.queue is not None for way in ways):
        return False
    if any(queue is not None and queue.kind == "netem" for queue in map(queueing.queue_of, ways)):
        return True
    return any(event.action == "impair" and link.name in event.targets for event in events)


def in_bridge_vm(
    lab: str, index: int, link: Link, near: Interface | None, mtu: int, far: Interface | None = None
) -> tuple[Link, Node]:
    """Returns the link with its qdiscs inside a VM that joins both sides, and that VM.

    near, far: the interfaces of nodes at the ends of the link: one for a VM's own link, both for a link
    between two nodes. eth0 is on the side of `a`, eth1 on that of `b`; packets that leave through eth1 go
    forward.
    """
    name, core = f"netem-{link.name}", core_netns(lab)
    netns, a, b = node_netns(lab, name), link.forward.device, link.reverse.device
    forward = Direction(
        link.forward.impairment, netns, "eth1", core, b, enter=a, leave=b, trace=link.forward.trace
    )
    reverse = Direction(
        link.reverse.impairment, netns, "eth0", core, a, enter=b, leave=a, trace=link.reverse.trace
    )
    first, second = bridge_vm_macs(index)
    sides = (
        (near.segment if near else link.a, near.bridge if near else None, a, first),
        (far.segment if far else link.b, far.bridge if far else None, b, second),
    )
    cards = tuple(
        Interface(f"eth{i}", port, segment, "", 0, mac, mtu, bridge=bridge)
        for i, (segment, bridge, port, mac) in enumerate(sides)
    )
    node = Node(
        name, GROUP, "vm", name, netns, node_cgroup(lab, name), cards, (),
        vm=Vm(BUILTIN, memory(BUILTIN), netem=True),
    )  # fmt: skip
    return dataclasses.replace(link, forward=forward, reverse=reverse), node
