"""Uses NICs of the machine in a lab: leases them, moves them to the plan's namespaces, gives them back."""

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
    """Leases every NIC of the plan and adds its hardware address to its node; raises LabError if one is
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
    """Returns the interface with the values that only the machine provides: PCI address and
    hardware address.
    """
    mac = lease.found.mac if lease.found else card.mac
    return dataclasses.replace(card, pci=lease.pci, mac=mac)


def place(lab: Lab) -> None:
    """Moves leased interfaces into their namespaces, which exist by now, and gives them the plan's names."""
    try:
        for lease in leases.of_lab(lab.state.directory.parent, lab.plan.lab):
            if lease.kind == "namespace":
                interface.move(lease)
    except NicError as error:
        raise LabError(str(error)) from error


def wait_for_carrier(lab: Lab) -> None:
    """Waits until every NIC whose cable leads back into the lab has a link, which takes seconds to negotiate;
    raises TimedOut if one has none.
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
    """Returns whether the NIC's cable leads back into the lab; a device outside may be switched off."""
    cards = lab.node(use.node).interfaces if use.node else ()
    return not use.node or any(c.name == use.interface and c.cable is not None for c in cards)


def give_back(lab: Lab, kind: str) -> None:
    """Gives back the NICs of one kind; raises LabError with those that remain (`vnet down` tries again)."""
    _, errors = recover.give_back(lab.state.directory.parent, lab.plan.lab, (kind,))
    if errors:
        raise LabError("; ".join(errors))


def held(root: Path) -> dict[str, str]:
    """Maps lease keys and former interface names of NICs to their labs, for labs that run or left more than
    the lease.
    """
    alive = [lease for lease in leases.every(root) if not _dead(root, lease)]
    return {key: le.lab for le in alive for key in (le.key, *((le.found.name,) if le.found else ()))}


def forget_dead(root: Path) -> None:
    """Gives back the NICs of labs of which only the lease is left, and ends these leases."""
    for lease in leases.every(root):
        if _dead(root, lease):
            recover.one(root, lease)


def _dead(root: Path, lease: Lease) -> bool:
    if Owned("lab", lease.pid, lease.start_ticks).alive:
        return False
    return not cleanup.leftovers(lease.lab, root, leases_too=False)
