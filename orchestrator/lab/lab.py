"""The state of a running lab, which the lab's modules share: plan, driver, nodes, links, captures."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contract.manifest import Time
from contract.plan import Capture, Impairment, Link, Node, Plan, Software
from orchestrator.lab.driver import CaptureProcess, Driver
from orchestrator.lab.errors import LabError
from orchestrator.lab.events import Events
from orchestrator.lab.loop import Loop
from orchestrator.lab.manifest import Manifest
from orchestrator.lab.state import State
from orchestrator.lab.stopped_processes import StoppedChildren


@dataclass(frozen=True)
class Running:
    """A running capture. live: True if a client of the control socket started it."""

    point: Capture
    process: CaptureProcess
    file: Path
    live: bool = False


@dataclass
class Lab:
    """The state of one lab. nodes, links: those that exist now, after additions and removals. impairments:
    the present ones by link and direction.
    """

    plan: Plan
    run_dir: Path
    loop: Loop
    events: Events
    state: State
    manifest: Manifest
    driver: Driver
    time: Time = "real"
    nodes: dict[str, Node] = field(default_factory=dict)
    links: dict[str, Link] = field(default_factory=dict)
    node_states: dict[str, str] = field(default_factory=dict)
    impairments: dict[tuple[str, str], Impairment] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)  # links that are down
    meant: set[tuple[str, str]] = field(default_factory=set)  # software whose end the lab expects
    started: dict[tuple[str, str], Software] = field(default_factory=dict)
    pids: dict[str, int] = field(default_factory=dict)
    ready: bool = False
    in_scenario: bool = False  # true from the start of the lab's software to the end of the drain
    sampling: bool = False  # whether a scenario takes samples; true until the lab ends
    watched: bool = False  # samples are taken only because a client of the control socket requested them
    serving: bool = False  # the lab only serves requests, without a scenario
    entered: set[str] = field(default_factory=set)  # nodes on which a command ran (`vnet exec`, `run:`)
    captures: dict[str, Running] = field(default_factory=dict)  # running captures by name
    stopped: StoppedChildren = field(default_factory=StoppedChildren)
    connected: tuple[int, int] = (0, 0)  # connected sessions now, and all sessions that connect
    on_added: Callable[[Iterable[Link]], None] = field(default=lambda _: None)  # gets an added node's links
    on_end: list[Callable[[], None]] = field(default_factory=list)  # called before the lab is taken away
    before_change: Callable[[str, Iterable[str], str], None] = field(
        default=lambda *_: None
    )  # action, targets and label of an event
    # The function is called with link and direction after each change of a link.
    after_change: Callable[[str, str], None] = field(default=lambda *_: None)

    def __post_init__(self) -> None:
        self.nodes = {n.name: n for n in self.plan.nodes}
        self.node_states = dict.fromkeys(self.nodes, "planned")
        self.join(self.plan.links)

    def join(self, links: Iterable[Link]) -> None:
        """Adds links with their initial impairments."""
        for link in links:
            self.links[link.name] = link
            self.impairments[link.name, "forward"] = link.forward.impairment
            self.impairments[link.name, "reverse"] = link.reverse.impairment

    def note_limits(self, applied: dict[str, dict[str, Any]]) -> None:
        """Records applied limits in the manifest; keeps the node's other recorded limits, because a new
        reservation of another node changes only weights.
        """
        known = self.manifest.limits
        for node, limits in applied.items():
            known[node] = known.get(node, {}) | limits

    def forget_limits(self, nodes: Iterable[Node]) -> None:
        """Removes the recorded limits of nodes with these names."""
        for node in nodes:
            self.manifest.limits.pop(node.name, None)

    def part(self, node: str) -> None:
        """Removes the access links of a node and its wires to other nodes, also the interfaces of the other
        nodes on these wires.
        """
        own = [n for n, link in self.links.items() if link.kind == "access" and link.a == node]
        wires = [n for n, link in self.links.items() if link.kind == "nodes" and node in (link.a, link.b)]
        for other, of in list(self.nodes.items()):  # a wire vanishes at both of its ends
            left = tuple(card for card in of.interfaces if card.segment not in wires)
            self.nodes[other] = dataclasses.replace(of, interfaces=left) if wires else of
        for name in own + wires:
            del self.links[name], self.impairments[name, "forward"], self.impairments[name, "reverse"]
            self.down.discard(name)

    def node(self, name: str) -> Node:
        try:
            return self.nodes[name]
        except KeyError:
            raise LabError(
                f"node {name}: not in lab {self.plan.lab}; `vnet inspect` lists its nodes"
            ) from None

    def link(self, name: str) -> Link:
        if (link := self.links.get(name)) is not None:
            return link
        known = ", ".join(list(self.links)[:10]) or "none"
        raise LabError(f"link {name}: not in lab {self.plan.lab}; its links: {known}")

    def software(self, node: str, name: str) -> Software:
        for software in self.node(node).software:
            if software.name == name:
                return software
        known = ", ".join(s.name for s in self.node(node).software) or "none"
        raise LabError(f"node {node}: no software {name}; it has: {known}")

    def processes(self, nodes: Iterable[str]) -> list[tuple[str, Software]]:
        """Returns node and software of all programs of these nodes, in the order of the plan; omits roles
        that the agent itself plays.
        """
        return [(n, s) for n in nodes for s in self.node(n).software if s.process is not None]


Request = dict[str, Any]
