"""Defines the interface with which a kind checks its part of a file; the topology's Report implements it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from contract.plan.family import Family

from ..language.scalars import Base, Moment
from ..language.source import Path


@dataclass(frozen=True, slots=True)
class Here:
    """The place in the file of the software under check, with its nodes and their segments."""

    path: Path  # path in the file, such as ("nodes", "reader", "software", "sub")
    nodes: tuple[str, ...]  # the node, or the members of the group
    segments: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the software under check."""
        return str(self.path[3])

    @property
    def in_group(self) -> bool:
        return self.path[0] == "groups"


class Checks(Protocol):
    """A topology file under check: shows its other parts, and collects mistakes."""

    def add(self, path: Path, value: Any, rule: str, remedy: str) -> None:
        """Reports a mistake at `path`; `value` is None if the message shows no value."""

    def node(self, path: Path, name: str) -> bool:
        """Returns whether a node exists; reports a name that does not."""

    def machines(self, path: Path, name: str) -> tuple[str, ...]:
        """Returns the node of this name, or the members of the group; reports a name that does not exist."""

    @property
    def everyone(self) -> Iterable[str]:
        """The names of all nodes, with the members of groups."""

    def member(self, node: str) -> tuple[str, int, int]:
        """Returns a node's group (the node itself if it is in none), its index there from 1, and the number
        of members.
        """

    def programs(self, node: str) -> Mapping[str, Base]:
        """Returns the software of a node, by name."""

    @property
    def captured(self) -> bool:
        """Whether the run keeps the packets of a capture point; True if mistakes in the file hide it."""

    def reachable(self, nodes: Iterable[str], node: str) -> bool | None:
        """Returns whether packets of all of `nodes` can reach `node`; None if the file has mistakes that
        hide the answer.
        """

    def families(self, node: str) -> set[Family]:
        """Returns the address families of a node; an empty set if mistakes in the file hide them."""

    def common(self, segments: tuple[str, ...], node: str) -> set[str] | None:
        """Returns the segments in the broadcast domains that both `segments` and the node are in; None if
        mistakes in the file hide them.
        """

    def bridged(self, segments: Iterable[str]) -> set[str] | None:
        """Returns the segments that frames from `segments` reach without a router; None if mistakes in the
        file hide them.
        """

    def segments(self, node: str) -> tuple[str, ...]:
        """Returns the segments on which a node has interfaces."""

    @property
    def routing(self) -> str:
        """The metric by which the plan computes routes; "none" if it computes no routes."""

    def forwards(self, node: str) -> bool:
        """Returns whether a node forwards packets."""

    def image(self, node: str) -> str | None:
        """Returns the image of a VM node; None for a light node."""

    def subnet(self, segment: str, kind: Family | None = None) -> str | None:
        """Returns the subnet of a segment: the first, or that of the family `kind`; None if it has none, or
        mistakes in the file hide it.
        """

    def unroutable(self, a: str, b: str) -> Family | None:
        """Returns an address family in which both nodes have addresses but packets of `a` cannot reach `b`,
        if at least one node has dual stack; None if there is none, or if mistakes in the file hide it.
        """

    def mtu(self, segment: str) -> int | None:
        """Returns the MTU of a segment in bytes; None for a segment that is not in the file."""

    def since_start_ns(self, moment: Moment) -> int | None:
        """Returns a moment as nanoseconds from the scenario's start; None if the lengths of the phases are
        not known.
        """


def light(report: Checks, here: Here, path: Path, why: str) -> None:
    """Reports software that runs only on light nodes if one of its nodes is a VM; `why` is the reason in
    the message.
    """
    machine = next((node for node in here.nodes if report.image(node) is not None), None)
    if machine is not None:
        rule = f"node {machine} is a virtual machine, {why}"
        report.add(path, None, rule, "write `kind: light` at the node")


def joined(report: Checks, here: Here, path: Path, name: str, node: str) -> bool:
    """Returns False, and reports `node`, if packets of the software's nodes cannot reach it; True if they
    can, or if other mistakes hide the answer. `name` is the value that the message shows.
    """
    if report.reachable(here.nodes, node) is not False:
        return _in_both_families(report, here, path, name, node)
    theirs, ours = report.families(node), {one: report.families(one) for one in here.nodes}
    apart = next((one for one in here.nodes if ours[one] and not ours[one] & theirs), None)
    if apart is None or not theirs:
        rule = f"no segment, link or router joins it to {node}"
        remedy = "add a link between their segments, or a node that forwards"
    else:
        has, other = (" and ".join(sorted(some)) for some in (theirs, ours[apart]))
        rule = f"{node} has addresses of {has} only, {apart} of {other}"
        remedy = "give both a segment or link of one family"
    report.add(path, name, rule, remedy)
    return False


def _in_both_families(report: Checks, here: Here, path: Path, name: str, node: str) -> bool:
    """Returns False, and reports `node`, if it and one of the software's nodes share an address family in
    which no packet passes between them; programs would try that family, too.
    """
    for one in here.nodes:
        if (kind := report.unroutable(one, node)) is not None:
            rule = f"{one} and {node} have addresses of {kind}, and no segment, link or router carries it"
            remedy = f"give the links between them a subnet of {kind}, or one of the nodes no address of it"
            report.add(path, name, f"{rule} from one to the other", remedy)
            return False
    return True
