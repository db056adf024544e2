"""Spreads a lab that was planned for one machine over hosts: nodes, steps, captures and tunnels."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence

from contract.plan import Capture, Host, Node, Step, Tunnel

from ...topology.expansion import Expansion
from ...topology.loading import Topology
from ...topology.together import Together
from ..network import Network
from ..paths import Paths
from ..predict import costs_of
from ..software import Programme
from .across import segment_hosts, spread
from .mtu import hosts_of, insist_they_fit
from .parts import Placement, placed
from .steps import host_steps
from .traffic import traffic


@dataclasses.dataclass(frozen=True)
class OverHosts:
    """The parts of a plan that depend on hosts: hosts, nodes, tunnels, `ip` steps, placement, and captures'
    hosts.
    """

    hosts: tuple[Host, ...]
    nodes: tuple[Node, ...]
    tunnels: tuple[Tunnel, ...]
    steps: tuple[Step, ...]  # steps for `ip`
    placement: Placement
    captured: Mapping[str, str]  # segment -> the host on whose bridge it is captured

    def capture(self, capture: Capture, network: Network) -> Capture:
        """Returns the capture with the host that records it: for a node its host, for a segment the host in
        `captured`, for a link the host of its forward direction.
        """
        kind, _, target = capture.at.partition(" ")
        if kind == "segment":
            host = self.captured[target]
        elif kind == "node":
            host = self.placement.of["node", target]
        else:
            host = next(link.forward.host for link in network.links if link.name == target)
        return dataclasses.replace(capture, host=host)


def over_hosts(
    topology: Topology,
    names: Expansion,
    lab: str,
    network: Network,
    nodes: Sequence[Node],
    programme: Programme,
    paths: Paths,
) -> OverHosts:
    """Places all parts on hosts and returns the parts of the plan that depend on hosts. Changes links and
    interfaces of `network`; raises TopologyError if a part fits nowhere, or frames do not fit into the
    tunnels.
    """
    hosts = hosts_of(topology)
    flowing = traffic(nodes, network.links, paths, programme.flows, programme.receivers, programme.relays)
    together = Together(topology.model, names)
    costs = costs_of(nodes, programme.flows)
    placement = placed(topology, together, hosts, nodes, network.links, costs, flowing)
    tunnels = spread(lab, network, placement, topology.model.underlay.port)
    insist_they_fit(topology, tunnels, hosts)
    there = tuple(
        dataclasses.replace(
            node, host=placement.of["node", node.name], interfaces=network.interfaces[node.name]
        )
        for node in nodes
    )
    vms = {node.name for node in there if node.kind == "vm"}
    steps = tuple(host_steps(lab, network, placement, vms))
    return OverHosts(hosts, there, tunnels, steps, placement, _captured(network, placement))


def _captured(network: Network, placement: Placement) -> dict[str, str]:
    """Returns for each segment the host that has most of its members; if several have as many, the first of
    them.
    """
    members: dict[str, Counter[str]] = {segment.name: Counter() for segment in network.segments}
    for node, cards in network.interfaces.items():
        for card in cards:
            if card.segment in members:
                members[card.segment][placement.of["node", node]] += 1
    on = segment_hosts(network, placement)
    return {name: max(at, key=members[name].__getitem__) for name, at in on.items()}
