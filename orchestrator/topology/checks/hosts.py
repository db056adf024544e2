"""Checks `host`, `near` and `apart` of nodes and groups; the planner checks whether the nodes fit on the
hosts.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...language.source import Path
from ...language.units import UnitError
from ...language.uris import libvirt_machine
from ..nodes import Group, Machine
from ..together import Together
from .report import Report

NAME_SOME = "write `hosts: [lab1, lab2]`, or give them by --hosts"


def check(report: Report) -> None:
    """Reports hosts that share a machine or an address, wrong names in `host`, `near` and `apart`, `libvirt`
    on one machine in addition to hosts, and contradictory constraints. Checks nothing if `hosts` has problems
    already.
    """
    if report.lost("hosts"):
        return
    _different(report)
    for path, machine in _machines(report):
        _host(report, path, machine)
        _near(report, path, machine)
        _apart(report, path, machine)
    if report.model.hosts:
        _libvirt(report)
        _together(report)


def _machines(report: Report) -> Iterator[tuple[Path, Machine]]:
    for section in ("nodes", "groups"):
        for name, machine in getattr(report.model, section).items():
            yield (section, name), machine


def _different(report: Report) -> None:
    """Reports hosts that share a machine or an address."""
    seen: dict[str, str] = {}
    for name, host in report.model.hosts.items():
        for key, value in (("machine", host.machine or "local"), ("address", host.address)):
            if value is not None and (other := seen.setdefault(f"{key} {value}", name)) != name:
                rule = f"is that of host {other} already"
                report.add(("hosts", name, key), value, rule, "each host is another machine")


def _host(report: Report, path: Path, machine: Machine) -> None:
    if machine.host is None:
        return
    if not report.model.hosts:
        report.add((*path, "host"), machine.host, "the lab has no hosts to choose from", NAME_SOME)
    elif machine.host not in report.model.hosts:
        report.unknown((*path, "host"), machine.host, "host", set(report.model.hosts))


def _near(report: Report, path: Path, machine: Machine) -> None:
    for name in machine.near:
        if name == path[1]:
            report.add((*path, "near"), name, "is the node itself", "name another one")
        elif name in report.names.groups:
            rule = "is a group, whose members stand on several hosts"
            report.add((*path, "near"), name, rule, f"name one of them, for example {name}1")
        else:
            report.node((*path, "near"), name)


def _apart(report: Report, path: Path, machine: Machine) -> None:
    at = (*path, "apart")
    if machine.apart and not report.model.hosts:
        report.add(at, None, "the lab has no hosts to be apart on", NAME_SOME)
    if machine.apart is True:
        if not isinstance(machine, Group):
            report.add(at, True, "is of a group's members, and this is one node", "name the others: [a, b]")
        return
    own = {path[1], *report.names.groups.get(str(path[1]), ())}
    for name in machine.apart:
        if name in own:
            report.add(at, name, "is apart from itself", "of a group's members write `apart: true`")
        else:
            report.machines(at, name)


def _libvirt(report: Report) -> None:
    uri = report.model.libvirt
    try:
        elsewhere = libvirt_machine(uri)
    except UnitError:
        return  # the function that reads the inventory has reported the mistake
    if elsewhere is not None:
        rule = "puts the whole lab on one machine, and the file names hosts"
        report.add(("libvirt",), uri, rule, "leave it out: each host has a libvirt of its own")


def _together(report: Report) -> None:
    """Reports contradictory constraints of placement, and NICs that no host lists although hosts list NICs.
    Checks nothing if nodes, groups, segments or links have problems already.
    """
    if any(report.lost(section) for section in ("nodes", "groups", "segments")) or report.unsure(
        "links", "between"
    ):
        return
    together = Together(report.model, report.names)
    assert together.allowed is not None and together.apart is not None  # both functions find conflicts
    for one in together.conflicts:
        report.add(one.path, one.value or None, one.rule, one.remedy)
    for path, asked in together.homeless():
        rule = "is in a host, and none says that it has it"
        remedy = f"write `nics: [{', '.join(asked)}]` at the host" + " (or `host:` at the node)" * (
            path[0] == "nodes"
        )
        report.add(path, ", ".join(asked), rule, remedy)
