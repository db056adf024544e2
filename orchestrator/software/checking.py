"""The interface with which a kind checks its part of a file; the topology's Report implements it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from contract.plan.family import Family

from ..language.scalars import Base, Moment
from ..language.source import Path


@dataclass(frozen=True, slots=True)
class Here:
    """The place in the file of the software under check."""

    path: Path  # ("nodes", "reader", "software", "sub")
    nodes: tuple[str, ...]  # the node, or the members of the group
    segments: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its own name."""
        return str(self.path[3])

    @property
    def in_group(self) -> bool:
        return self.path[0] == "groups"


class Checks(Protocol):
    """A file under check: gives its other parts, and collects mistakes."""

    def add(self, path: Path, value: Any, rule: str, remedy: str) -> None:
        """Report a mistake; `value` None where the text shows none."""

    def node(self, path: Path, name: str) -> bool:
        """Whether a node exists; reports a name that does not."""

    def machines(self, path: Path, name: str) -> tuple[str, ...]:
        """The node of this name, or the members of the group; reports a name that does not exist."""

    @property
    def everyone(self) -> Iterable[str]:
        """All nodes, members of groups among them."""

    def member(self, node: str) -> tuple[str, int, int]:
        """A node's group (itself where it is in none), its index there from 1, and how many there are."""

    def programs(self, node: str) -> Mapping[str, Base]:
        """The software of a node, by name."""

    def reachable(self, nodes: Iterable[str], node: str) -> bool | None:
        """Whether packets of all of `nodes` can get to a node; None where the file is too broken to tell."""

    def families(self, node: str) -> set[Family]:
        """The address families of a node; none if the file is too broken to find them."""

    def common(self, segments: tuple[str, ...], node: str) -> set[str] | None:
        """Segments of the domains that both belong to; None if the file is too broken to find them."""

    def bridged(self, segments: Iterable[str]) -> set[str] | None:
        """Segments that frames from these reach without a router; None if the file is too broken."""

    def segments(self, node: str) -> tuple[str, ...]:
        """The segments on which a node has interfaces."""

    @property
    def routing(self) -> str:
        """The metric of the plan's routes; "none": there are none."""

    def forwards(self, node: str) -> bool:
        """Whether a node is a router."""

    def image(self, node: str) -> str | None:
        """The image of a VM node; None for a light node."""

    def mtu(self, segment: str) -> int | None:
        """Bytes; None for a segment that is not in the file."""

    def since_start_ns(self, moment: Moment) -> int | None:
        """The moment's time from the scenario's start; None if the phases' lengths are not known."""


def light(report: Checks, here: Here, path: Path, why: str) -> None:
    """The rule of software that only light nodes have; `why`: what of virtual machines forbids it."""
    machine = next((node for node in here.nodes if report.image(node) is not None), None)
    if machine is not None:
        rule = f"node {machine} is a virtual machine, {why}"
        report.add(path, None, rule, "write `kind: light` at the node")


def joined(report: Checks, here: Here, path: Path, name: str, node: str) -> bool:
    """Whether packets can get to a node that the file names by `name`; reports where they cannot."""
    if report.reachable(here.nodes, node) is not False:
        return True
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
