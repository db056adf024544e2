"""Checks software: the rules of each kind, port conflicts on a node, unique names in records."""

from __future__ import annotations

from ...software.checking import Here
from ...software.kind import Bind
from ...software.registry import endpoints, kind_of
from ..nodes import Machine
from .report import Report


def check(report: Report) -> None:
    """Checks all software of every node and group: the rules of its kind, ports that two programs of a node
    use, and names that occur twice in records.
    """
    for section in ("nodes", "groups"):
        for name, machine in getattr(report.model, section).items():
            _ports(report, section, name, machine)
            nodes = report.names.groups.get(name, (name,)) if section == "groups" else (name,)
            for label, software in machine.software.items():
                here = Here((section, name, "software", label), nodes, tuple(machine.segment))
                kind_of(software).check(report, here, software)
    _recorded(report)


def _ports(report: Report, section: str, name: str, machine: Machine) -> None:
    """Reports each port on which two pieces of software of a node listen, once, at the later one."""
    taken: dict[tuple[str, int], str] = {}
    for label, software in machine.software.items():
        conflicts: dict[int, tuple[Bind, str]] = {}
        for bind in kind_of(software).binds(software):
            other = taken.setdefault((bind.transport, bind.port), label)
            if other != label:
                conflicts.setdefault(bind.port, (bind, other))  # UDP and TCP may use the same port number
        for bind, other in conflicts.values():
            path = (section, name, "software", label, *bind.key)
            report.add(path, bind.port, f"is already the port of {other} on this node", bind.remedy)


def _recorded(report: Report) -> None:
    """Reports two pieces of software that would have the same name in records."""
    owners: dict[str, str] = {}
    for node, machine in report.names.nodes.items():
        group = report.names.group_of[node]
        section = "groups" if group in report.names.groups else "nodes"
        for label, endpoint in endpoints(node, machine.software).items():
            owner = owners.setdefault(endpoint, f"{label} of {node}")
            if owner != f"{label} of {node}":
                rule = f"is called {endpoint} in records, as {owner} is"
                report.add((section, group, "software", label), label, rule, "rename one of them")
