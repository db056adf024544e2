"""Gives NICs of a lab back to the machine, from its lease files alone: at the lab's end, or after a crash."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from orchestrator.nics import binding, interface, leases
from orchestrator.nics.leases import Lease
from orchestrator.nics.model import GoneError, NicError
from orchestrator.nics.netdevs import run

KINDS = ("namespace", "vm")


def give_back(
    root: Path, lab: str, kinds: tuple[str, ...] = KINDS, patience_s: float = binding.OURS_S
) -> tuple[list[str], list[str]]:
    """Gives the lab's NICs of these kinds back to the machine; returns (keys of those given back, error
    texts). A NIC with an error keeps its lease, except an interface without PCI function that does not exist
    any more.

    Interfaces must leave namespaces before the namespaces end (virtual ones would end with them); PCI
    functions of guests are given back after the guests have ended. `patience_s`: how long to wait for libvirt
    to give them back.
    """
    back: list[str] = []
    errors: list[str] = []
    for lease in leases.of_lab(root, lab):
        if lease.kind not in kinds:
            continue
        try:
            one(root, lease, patience_s)
        except NicError as error:
            errors.append(f"NIC {error}")
        else:
            back.append(lease.key)
    return back, errors


def one(root: Path, lease: Lease, patience_s: float = 0) -> None:
    """Gives one NIC back to the machine, then removes its lease; raises NicError if that fails."""
    if lease.kind == "vm":
        _function(lease, patience_s)
    elif lease.found is not None:
        _interface(root, lease)
    leases.drop(root, lease.key)


def _interface(root: Path, lease: Lease) -> None:
    """Puts an interface back. If it does not exist any more and has no PCI function, removes its lease and
    raises GoneError.
    """
    try:
        interface.put_back(lease)
    except GoneError:
        if lease.pci is None:
            leases.drop(root, lease.key)  # one report is enough, since the NIC no longer exists
        raise


def _function(lease: Lease, patience_s: float) -> None:
    """Gives a PCI function back to its driver, and its interface the former name and settings, except
    offloads.
    """
    assert lease.pci is not None
    name = binding.give_back(lease.pci, lease.driver, patience_s)
    if lease.found is None or name is None:
        return
    if name != lease.found.name:
        run(["ip", "link", "set", "dev", name, "down"])
        run(["ip", "link", "set", "dev", name, "name", lease.found.name])
    # The driver created the interface again, so its offloads are already the driver's own.
    interface.restore(dataclasses.replace(lease.found, offloads={}, gso_max_segs=None))
