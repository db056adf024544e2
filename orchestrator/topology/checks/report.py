"""Collects the problems of one topology file, and provides the lookups that checks share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from contract.plan.family import Family, family

from ...language.problem import Problem, TopologyError, closest, shown
from ...language.scalars import Base, Moment
from ...language.source import Document, Path
from ..connectivity import Connectivity
from ..document import File, Routing
from ..expansion import Domain, Expansion, NoSubnetError, domains, expand, wire_subnets
from ..phases import Phases, phases


@dataclass
class Report:
    """One file under check. Checks add to `problems`, and only read everything else."""

    document: Document
    model: File
    parameters: dict[str, Any]
    refused: frozenset[str]  # paths of earlier problems
    problems: list[Problem] = field(default_factory=list)

    @cached_property
    def names(self) -> Expansion:
        return expand(self.model)

    @cached_property
    def domains(self) -> dict[str, Domain]:
        return domains(self.model)

    @cached_property
    def reach(self) -> Connectivity:
        return Connectivity(self.names, self.domains, self.wires)

    @cached_property
    def wires(self) -> dict[str, tuple[str, ...]]:
        """The subnets of each link between two nodes; TopologyError if none is free for one of them."""
        try:
            return wire_subnets(self.model, self.names)
        except NoSubnetError as error:
            rule = "the other subnets of the file leave no private subnet free for this link"
            remedy = "write `subnet:` here, or smaller subnets elsewhere"
            path: Path = ("links", str(error))
            raise TopologyError([*self.problems, self.document.problem(path, "", rule, remedy)]) from error

    def declared(self, section: str) -> set[str]:
        """Returns the names in a section of the file, including the names of invalid parts."""
        data = self.document.data.get(section)
        return set(data) if isinstance(data, dict) else set()

    def lost(self, section: str) -> bool:
        """Returns whether a section of the file, or any part of it, had a problem before these checks."""
        return any(path.split(".")[0] == section for path in self.refused)

    def unsure(self, section: str, key: str) -> bool:
        """Returns whether `key` has a problem in any part of the section, or a whole part has one."""
        paths = [path.split("[")[0].split(".") for path in self.refused | {p.path for p in self.problems}]
        return any(p[0] == section and (len(p) < 3 or p[2] == key) for p in paths)

    def events(self) -> list[int]:
        """Returns, for each event of the model, its index in the file (invalid events are
        not in the model).
        """
        return self.places("timeline", len(self.model.timeline))

    def places(self, listed: str, valid: int) -> list[int]:
        """Returns the index in the file of each of the `valid` items that the model has of a list."""
        pattern = rf"{listed}\[(\d+)\]"
        wrong = {int(m[1]) for path in self.refused if (m := re.match(pattern, path))}
        return [index for index in range(valid + len(wrong)) if index not in wrong][:valid]

    def broken(self, section: str) -> set[str]:
        """Returns the names in a section whose part is missing from the model, since it is invalid; checks
        ignore them.
        """
        return self.declared(section) - set(getattr(self.model, section))

    def node(self, path: Path, name: str) -> bool:
        """Returns whether the node exists and is valid; reports a name that does not exist."""
        if name in self.broken("nodes"):
            return False
        if name not in self.names.nodes:
            self.unknown(path, name, "node", set(self.names.nodes) | self.declared("nodes"))
            return False
        return True

    def machines(self, path: Path, name: str) -> tuple[str, ...]:
        """Returns the node of this name, or the members of the group; () for an invalid one. Reports a name
        that does not exist.
        """
        if name in self.names.groups:
            return self.names.groups[name]
        if name in self.broken("groups") | self.broken("nodes"):
            return ()
        if name not in self.names.nodes:
            known = set(self.model.nodes) | set(self.model.groups) | self.declared("nodes")
            self.unknown(path, name, "node or group", known | self.declared("groups"))
            return ()
        return (name,)

    @property
    def everyone(self) -> Iterable[str]:
        """The names of all nodes, including the members of groups."""
        return self.names.nodes

    def member(self, node: str) -> tuple[str, int, int]:
        """Returns the node's group (itself without one), its index there from 1, and the group's size."""
        group = self.names.group_of[node]
        return group, self.names.index_of[node], len(self.names.groups.get(group, (node,)))

    def programs(self, node: str) -> Mapping[str, Base]:
        """Returns the node's software by name."""
        return self.names.nodes[node].software

    @property
    def captured(self) -> bool:
        """Whether the run keeps the packets of a capture point; True if mistakes in the file hide it."""
        kept = (one.keep and one.to is None for one in self.model.captures.values())
        return any(kept) or self.lost("captures")

    def reachable(self, nodes: Iterable[str], node: str) -> bool | None:
        """Returns whether packets from all `nodes` can reach a node; None if the file has too many mistakes
        to decide.
        """
        broken = any(self.lost(section) for section in ("segments", "nodes", "groups"))
        if broken or self.unsure("links", "between"):
            return None
        return all(self.reach.reachable(one, node) for one in nodes)

    def families(self, node: str) -> set[Family]:
        """Returns the address families of a node; empty if the file has too many mistakes
        to determine them.
        """
        lost = self.lost("segments") or self.unsure("links", "between")
        return set() if lost else self.reach.families(node)

    def common(self, segments: tuple[str, ...], node: str) -> set[str] | None:
        """Returns the segments that frames from both `segments` and the node reach without a router; None if
        the file has too many mistakes to decide.
        """
        ours, theirs = self._reach(segments), self._reach(self.names.nodes[node].segment)
        return None if not ours or not theirs or self.unsure("links", "between") else ours & theirs

    def bridged(self, segments: Iterable[str]) -> set[str] | None:
        """Returns the segments that frames from `segments` reach without a router; None if the file has too
        many mistakes to decide.
        """
        found = self._reach(segments)
        return None if not found or self.unsure("links", "between") else found

    def segments(self, node: str) -> tuple[str, ...]:
        """Returns the segments on which a node has interfaces."""
        return tuple(self.names.nodes[node].segment)

    def _reach(self, segments: Iterable[str]) -> set[str]:
        found = [self.domains[name].segments for name in segments if name in self.domains]
        return {name for names in found for name in names}

    @property
    def routing(self) -> str:
        """The metric that the plan's shortest routes minimise (delay, hops or cost); "none" if the plan
        computes no routes.
        """
        return (self.model.routing or Routing.model_validate({})).by

    def forwards(self, node: str) -> bool:
        """Returns whether a node forwards packets."""
        return self.names.nodes[node].forward

    def image(self, node: str) -> str | None:
        """Returns the image of a VM node; None for a light node."""
        machine = self.names.nodes[node]
        return None if machine.kind == "light" else machine.image or "builtin"

    def subnet(self, segment: str, kind: Family | None = None) -> str | None:
        """Returns the subnet of a segment, as its domain has it: the first, or that of the family `kind`;
        None if it has none, or mistakes in the file hide it.
        """
        found = self.domains.get(segment)
        if found is None or not found.agrees:
            return None
        return next((one for one in found.subnets if kind in (None, family(one))), None)

    def unroutable(self, a: str, b: str) -> Family | None:
        """Returns an address family in which two nodes have addresses but no packet of `a` can reach `b`, if
        one of them has both families on one interface. None if there is none, or if the file has too many
        mistakes to decide.
        """
        broken = any(self.lost(section) for section in ("segments", "nodes", "groups"))
        if broken or self.unsure("links", "between"):
            return None
        return self.reach.unroutable(a, b)

    def mtu(self, segment: str) -> int | None:
        """Returns the MTU of a segment in bytes; None for a segment that is not in the file."""
        found = self.model.segments.get(segment)
        return None if found is None else found.mtu

    @cached_property
    def lengths(self) -> Phases:
        """The lengths of the phases, computed from the valid parts of the file only."""
        return phases(self.model, self.names)

    @cached_property
    def phases(self) -> Phases | None:
        """The lengths of the phases; None if a value that they depend on had a problem."""
        return None if any(map(self.lost, ("groups", "nodes", "run"))) else self.lengths

    def since_start_ns(self, moment: Moment) -> int | None:
        """Returns the ns from the scenario's start to a moment; None if the phases' lengths are unknown."""
        return None if self.phases is None else self.phases.start_ns(moment.phase) + moment.at_ns

    def add(self, path: Path, value: Any, rule: str, remedy: str) -> None:
        text = "" if value is None else shown(value)
        self.problems.append(self.document.problem(path, text, rule, remedy))

    def unknown(self, path: Path, value: str, what: str, known: set[str]) -> None:
        """Adds a problem for a reference to a name that does not exist, with the closest known name as
        remedy.
        """
        self.add(path, value, f"no {what} is called that", closest(value, known, what=what))
