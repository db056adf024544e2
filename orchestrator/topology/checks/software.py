"""Software: each kind's own rules, and ports that no two programs of a node share."""

from __future__ import annotations

from ...software.checking import Here
from ...software.registry import kind_of
from ..network import Machine
from .report import Report


def check(report: Report) -> None:
    """Every program of every node and group."""
    for section in ("nodes", "groups"):
        for name, machine in getattr(report.model, section).items():
            _ports(report, section, name, machine)
            nodes = report.names.groups.get(name, (name,)) if section == "groups" else (name,)
            for label, software in machine.software.items():
                here = Here((section, name, "software", label), nodes, tuple(machine.segment))
                kind_of(software).check(report, here, software)


def _ports(report: Report, section: str, name: str, machine: Machine) -> None:
    taken: dict[tuple[str, int], str] = {}
    for label, software in machine.software.items():
        for bind in kind_of(software).binds(software):
            other = taken.setdefault((bind.transport, bind.port), label)
            if other != label:
                rule = f"is already the port of {other} on this node"
                path = (section, name, "software", label, *bind.key)
                report.add(path, bind.port, rule, "choose another port")
