"""Plans the `ip` steps of a multi-host lab: each host gets the steps of its own segments, interfaces and
links.
Steps of tunnels are not included, since the addresses between hosts are known only after the hosts were
asked.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator

from contract.plan import Interface, Link, Step

from ..network import Network
from ..steps import network_steps
from .across import segment_hosts
from .parts import Placement

# Distance between the hosts' first numbers of hardware addresses (naming.link_macs and similar): room for a
# million bridges on each of 1,000 hosts.
APART = 1 << 20


def host_steps(lab: str, network: Network, placement: Placement, vms: Collection[str]) -> Iterator[Step]:
    """Yields the `ip` steps of `network_steps` for each host, with `Step.host` set to its name. A segment
    that spans hosts, and a link with its ends on two hosts, have steps on each of them; on each next host,
    the numbers of hardware addresses begin APART higher.
    """
    on = segment_hosts(network, placement)
    segments: dict[str, list[str]] = {}
    for name, ends in on.items():
        for end in ends:
            segments.setdefault(end, []).append(name)
    by_name = {segment.name: segment for segment in network.segments}
    cards: dict[str, dict[str, tuple[Interface, ...]]] = {}
    for node, own in network.interfaces.items():
        cards.setdefault(placement.of["node", node], {})[node] = own
    links: dict[str, list[Link]] = {}
    for link in network.links:
        for end in dict.fromkeys((link.forward.host, link.reverse.host)):
            links.setdefault(end, []).append(link)
    for number, host in enumerate(placement.hosts):
        there = [by_name[name] for name in segments.get(host.name, ())]
        of_host, joined = cards.get(host.name, {}), links.get(host.name, [])
        for step in network_steps(lab, there, of_host, joined, vms, number * APART):
            yield dataclasses.replace(step, host=host.name)
