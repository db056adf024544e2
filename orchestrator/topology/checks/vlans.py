"""Checks tagged interfaces: light nodes only, and one VLAN for each subnet."""

from __future__ import annotations

from ..nodes import Machine, vlans_of
from . import nics
from .report import Report


def check(report: Report) -> None:
    """Reports `vlan` of VMs, of NICs, and of segments to which the node is not connected; also reports nodes
    of one subnet with different VLANs.
    """
    for section in ("nodes", "groups"):
        for name, machine in getattr(report.model, section).items():
            if machine.vlan:
                _one(report, section, name, machine)
    if not any(report.lost(part) for part in ("segments", "nodes", "groups")):
        _alike(report)


def _one(report: Report, section: str, name: str, machine: Machine) -> None:
    path, tags = (section, name, "vlan"), vlans_of(machine)
    if machine.kind == "vm":
        rule = "is of light nodes; a virtual machine makes its tagged interfaces itself"
        report.add(path, None, rule, "make it in the guest, or use `kind: light`")
    for segment in tags.keys() - set(machine.segment):
        listed = ", ".join(machine.segment) or "none"
        report.add(
            (*path, segment), segment, f"{name} is not on this segment", f"write one of its own: {listed}"
        )
    if section == "nodes" and tags.keys() & set(nics.own(report, name)):
        rule = "stands at a NIC of the machine, whose switch tags its frames"
        report.add(path, None, rule, "leave `vlan:` out, or the NIC")


def _alike(report: Report) -> None:
    seen: dict[tuple[str, ...], tuple[str, int | None]] = {}
    machines = {**report.model.nodes, **report.model.groups}
    for name, machine in machines.items():
        tags, section = vlans_of(machine), "nodes" if name in report.model.nodes else "groups"
        for segment in (one for one in machine.segment if one in report.domains):
            vlan = tags.get(segment)
            other, theirs = seen.setdefault(report.domains[segment].segments, (name, vlan))
            if theirs != vlan:
                said = "no `vlan`" if theirs is None else f"VLAN {theirs}"
                rule = f"is on segment {segment} with {other}, which has {said}: they cannot hear each other"
                remedy = (
                    "write the same `vlan:` at all nodes of a subnet, or give each VLAN a segment of its own"
                )
                report.add((section, name, "vlan"), vlan, rule, remedy)
