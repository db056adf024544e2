"""Computes constraints of placement: parts that share a host, their allowed hosts, and parts that share none.

Parts are nodes, links between segments, and segments that stay whole on one host. All parts of a spanning
tree share a host. So do all parts around one transmitter, and nodes that `near` names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from ..language.source import Path
from .document import File
from .expansion import Domain, Expansion, domains
from .nodes import Machine

Part = tuple[str, str]  # "node", "link" or "segment", and its name


@dataclass(frozen=True, slots=True)
class Apart:
    """A rule of `apart`: nodes of different `sides` may not share a host."""

    path: Path
    sides: dict[str, int]  # node -> its side


@dataclass(frozen=True, slots=True)
class Conflict:
    """A contradiction that no placement can satisfy."""

    path: Path
    value: str
    rule: str
    remedy: str


@dataclass
class Together:
    """The clusters of parts that share a host; unknown names are left out, since the checks report them."""

    model: File
    names: Expansion
    conflicts: list[Conflict] = field(default_factory=list)
    _above: dict[Part, Part] = field(default_factory=dict)
    _why: dict[Part, str] = field(default_factory=dict)  # part -> why it shares a host with the part above

    def __post_init__(self) -> None:
        for path, node, machine in self._machines():
            for other in machine.near:
                if other in self.names.nodes and other != node:
                    self._join(("node", node), ("node", other), f"{path[0]}.{path[1]}.near")
        for name in self.whole:
            for part in self._on(name):
                self._join(("segment", name), part, self.whole[name])
        for name, link in self.model.links.items():
            if name in self.names.wires and link.duplex == "half":
                a, b = self.names.wires[name]
                self._join(("node", a), ("node", b), f"links.{name} is half duplex: one transmitter")

    @cached_property
    def whole(self) -> dict[str, str]:
        """The segments that stay whole on one host, each with the reason."""
        found = {}
        for name, segment in self.model.segments.items():
            if segment.duplex == "half":
                found[name] = f"segments.{name} is half duplex: one transmitter"
            elif segment.stp:
                found[name] = f"segments.{name} is part of a spanning tree"
        return found

    def cluster(self, part: Part) -> Part:
        """Returns the representative of this part's cluster."""
        root = part
        while root in self._above:
            root = self._above[root]
        while part != root:  # shortens the chain for later calls
            self._above[part], part = root, self._above[part]
        return root

    def why(self, part: Part) -> str:
        """Returns the reason why a part is in its cluster; "" if it is alone."""
        return self._why.get(part) or next(
            (w for p, w in self._why.items() if self.cluster(p) == self.cluster(part)), ""
        )

    @cached_property
    def allowed(self) -> dict[Part, frozenset[str]]:
        """The allowed hosts of each cluster that has constraints; adds a conflict for contradictory ones."""
        found: dict[Part, frozenset[str]] = {}
        said: dict[Part, tuple[Path, frozenset[str]]] = {}
        for part, path, hosts in self._pinned():
            root = self.cluster(part)
            both = found.get(root, hosts) & hosts
            if not both and root in said:
                there = " or ".join(sorted(said[root][1]))
                other = ".".join(map(str, said[root][0]))
                why = self.why(part)
                rule = f"{other} puts it on {there}" + (f" ({why})" if why else "")
                value = " or ".join(sorted(hosts))
                self.conflicts.append(Conflict(path, value, rule, "let them agree, or take them apart"))
                continue
            found[root], said[root] = both, (path, hosts)
        return found

    @cached_property
    def apart(self) -> list[Apart]:
        """The rules of `apart` that have several sides. Adds a conflict for rules that contradict `near`, the
        clusters or the number of hosts.
        """
        rules = [rule for rule in self._apart() if len(set(rule.sides.values())) > 1]
        for rule in rules:
            first: dict[Part, str] = {}
            for node, side in rule.sides.items():
                other = first.setdefault(self.cluster(("node", node)), node)
                if rule.sides[other] != side:
                    text = f"{other} and {node} stand on one host ({self.why(('node', node))})"
                    self.conflicts.append(Conflict(rule.path, "", text, "leave out one of the two"))
                    break
            else:
                count, hosts = len(set(rule.sides.values())), len(self.model.hosts)
                if count > hosts and rule.sides:
                    text = f"needs {count} hosts, and there are {hosts}"
                    self.conflicts.append(Conflict(rule.path, "", text, "name more hosts, or ask less"))
        return rules

    def _join(self, a: Part, b: Part, why: str) -> None:
        top, other = self.cluster(a), self.cluster(b)
        if top != other:
            self._above[other] = top
            self._why.setdefault(a, why)
            self._why.setdefault(b, why)

    def _machines(self) -> Iterator[tuple[Path, str, Machine]]:
        for node, machine in self.names.nodes.items():
            group = self.names.group_of[node]
            section = "groups" if group in self.names.groups else "nodes"
            yield (section, group), node, machine

    def _on(self, segment: str) -> Iterable[Part]:
        """Yields the parts at a segment that stays whole on one host; with a spanning tree, also the segments
        that links join to it.
        """
        if self.model.segments[segment].stp:
            yield from (("segment", other) for other in self._domains[segment].segments)
        yield from (("node", node) for node in self._members.get(segment, ()))
        for name, link in self.model.links.items():
            if segment in link.between and set(link.between) <= set(self.model.segments):
                yield "link", name

    @cached_property
    def _domains(self) -> dict[str, Domain]:
        return domains(self.model)

    @cached_property
    def _members(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for node, machine in self.names.nodes.items():
            for segment in machine.segment:
                found.setdefault(segment, []).append(node)
        return found

    def _pinned(self) -> Iterator[tuple[Part, Path, frozenset[str]]]:
        known = self.model.hosts
        for path, node, machine in self._machines():
            if machine.host in known:
                yield ("node", node), (*path, "host"), frozenset({machine.host})
        for part, path, asked in self._nics():
            there = frozenset(name for name, host in known.items() if set(asked) <= set(host.nics or ()))
            if there:
                yield part, path, there

    def _nics(self) -> Iterator[tuple[Part, Path, list[str]]]:
        """Yields each part that uses NICs, the path of the key, and the requested NICs."""
        for name, node in self.model.nodes.items():
            if node.nic:
                yield ("node", name), ("nodes", name, "nic"), list(node.nic.values())
        for name, link in self.model.links.items():
            if link.nics is not None:
                first = link.between[0]
                part = ("node", first) if first in self.model.nodes else ("link", name)
                yield part, ("links", name, "nics"), [link.nics.a, link.nics.b]

    def homeless(self) -> Iterator[tuple[Path, list[str]]]:
        """Yields the path and NICs of each request that no host of the file can meet, except requests of
        nodes whose own `host:` has no list of NICs.
        """
        for part, path, asked in self._nics():
            if not any(set(asked) <= set(host.nics or ()) for host in self.model.hosts.values()):
                machine = self.model.nodes.get(part[1]) if part[0] == "node" else None
                there = self.model.hosts.get(machine.host or "") if machine is not None else None
                if there is None or there.nics is not None:
                    yield path, asked

    def _apart(self) -> Iterator[Apart]:
        for section in ("nodes", "groups"):
            for name, machine in getattr(self.model, section).items():
                own = self.names.groups.get(name, (name,))
                path: Path = (section, name, "apart")
                if machine.apart is True:
                    yield Apart(path, {node: side for side, node in enumerate(own)})
                elif machine.apart:
                    others = [
                        n
                        for o in machine.apart
                        for n in self.names.groups.get(o, (o,))
                        if n in self.names.nodes
                    ]
                    yield Apart(path, {**dict.fromkeys(own, 0), **dict.fromkeys(others, 1)})
