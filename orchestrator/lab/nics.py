"""Uses NICs of the machine in a lab: leases them, moves them into their namespaces, waits for their carrier,
and gives them back.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

from contract.plan import Interface
from orchestrator.lab import cleanup
from orchestrator.lab.clock import SECOND
from orchestrator.lab.errors import LabError, TimedOut
from orchestrator.lab.lab import Lab
from orchestrator.lab.state import Owned, owned
from orchestrator.nics import binding, facts, interface, leases, recover
from orchestrator.nics.leases import Lease
from orchestrator.nics.model import Nic, NicError
from orchestrator.nics.resolve import Choice, resolve
from orchestrator.plan.nics import NicUse, nic_uses

CARRIER_NS = 15 * SECOND


def claim(lab: Lab) -> None:
    """Leases every NIC of the plan, adds hardware address and PCI address to the interface of its node, and
    loads VFIO if a VM node uses a NIC; first gives back NICs of dead labs. Raises LabError if a NIC is
    unavailable.
    """
    uses = nic_uses(lab.plan)
    if not uses:
        return
    root = lab.state.directory.parent
    try:
        forget_dead(root)
        choices = resolve(uses, facts.look(), held(root))
        if refused := [refusal_text(choice) for choice in choices if choice.refusal]:
            raise LabError("; ".join(refused))
        for choice in choices:
            if choice.nic is not None:
                _take(lab, root, choice.use, choice.nic)
        if any(use.kind == "vm" for use in uses):
            binding.load_vfio()
    except NicError as error:
        raise LabError(str(error)) from error
    lab.events.phase("create", 0, len(lab.nodes), f"{len(uses)} NICs leased")


def refusal_text(choice: Choice) -> str:
    """Returns the text of a refusal: place, requested NIC, reason and remedy."""
    assert choice.refusal is not None
    return f'{choice.use.place}: NIC "{choice.use.asked}": {choice.refusal.rule}; {choice.refusal.remedy}'


def _take(lab: Lab, root: Path, use: NicUse, nic: Nic) -> None:
    us, function = owned("lab", os.getpid()), nic.function
    lease = Lease(
        key=nic.key, lab=lab.plan.lab, place=use.place, kind=use.kind, netns=use.netns, name=use.name,
        pid=us.pid, start_ticks=us.start_ticks,
        pci=function.address if function else None,
        driver=function.driver if function else None,
        found=interface.found(nic.netdev) if nic.netdev else None,
    )  # fmt: skip
    leases.take(root, lease)
    if use.node:
        node = lab.node(use.node)
        cards = tuple(_real(c, lease) if c.name == use.interface else c for c in node.interfaces)
        lab.nodes[node.name] = dataclasses.replace(node, interfaces=cards)


def _real(card: Interface, lease: Lease) -> Interface:
    """Returns the interface with the NIC's PCI address, and its hardware address if the NIC has an interface
    on the machine.
    """
    mac = lease.found.mac if lease.found else card.mac
    return dataclasses.replace(card, pci=lease.pci, mac=mac)


def place(lab: Lab) -> None:
    """Moves the lab's leased interfaces into their namespaces, which must exist, and gives them the plan's
    names; leaves NICs of VM nodes out. Raises LabError.
    """
    try:
        for lease in leases.of_lab(lab.state.directory.parent, lab.plan.lab):
            if lease.kind == "namespace":
                interface.move(lease)
    except NicError as error:
        raise LabError(str(error)) from error


def wait_for_carrier(lab: Lab) -> None:
    """Waits up to 15 s until every NIC has a link, except those of nodes whose cable leads out of the lab;
    raises TimedOut with the places of those without a link.
    """
    uses = [u for u in nic_uses(lab.plan) if u.kind == "namespace" and _cabled(lab, u)]
    waiting: list[str] = []

    def up() -> bool:
        flags = {
            (netns, entry["ifname"]): entry.get("flags", ())
            for netns in dict.fromkeys(u.netns for u in uses)
            for entry in lab.driver.devices(netns)
        }
        waiting[:] = [u.place for u in uses if "LOWER_UP" not in flags.get((u.netns, u.name), ())]
        return not waiting

    try:
        lab.loop.until(lab.loop.clock.now_ns() + CARRIER_NS, "cabled NICs to have a link", up)
    except TimedOut as error:
        raise TimedOut(f"{error}: {', '.join(waiting)} has none; is the cable in?") from None


def _cabled(lab: Lab, use: NicUse) -> bool:
    """Returns whether to wait for a NIC's link. It waits if the NIC belongs to no node, or if its interface
    has a cable back into the lab; a device outside the lab may be switched off.
    """
    cards = lab.node(use.node).interfaces if use.node else ()
    return not use.node or any(c.name == use.interface and c.cable is not None for c in cards)


def give_back(lab: Lab, kind: str) -> None:
    """Gives back the lab's NICs of one kind (`namespace` or `vm`); raises LabError with the errors of those
    that remain (`vnet down` tries again).
    """
    _, errors = recover.give_back(lab.state.directory.parent, lab.plan.lab, (kind,))
    if errors:
        raise LabError("; ".join(errors))


def held(root: Path) -> dict[str, str]:
    """Maps keys and former interface names of leased NICs to their labs; omits leases of dead labs."""
    alive = [lease for lease in leases.every(root) if not _dead(root, lease)]
    return {key: le.lab for le in alive for key in (le.key, *((le.found.name,) if le.found else ()))}


def forget_dead(root: Path) -> None:
    """Gives back the NICs of labs whose process is dead and that left nothing except the lease."""
    for lease in leases.every(root):
        if _dead(root, lease):
            recover.one(root, lease)


def _dead(root: Path, lease: Lease) -> bool:
    """Returns whether the lab's process has ended and of the lab only its leases exist."""
    if Owned("lab", lease.pid, lease.start_ticks).alive:
        return False
    return not cleanup.leftovers(lease.lab, root, leases_too=False)
