"""Predicts the load of each host, and the traffic between every two hosts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from contract.plan import Host, Plan, Prediction

from ..predict import CAPTURE_BYTES, LAB_BYTES
from .demand import NOTHING, Demand
from .parts import Placement

TRAFFIC = "traffic"


def of_host(name: str) -> str:
    """Returns the scope name of a host's predictions."""
    return f"host {name}"


def between(a: str, b: str) -> str:
    """Returns the scope name of the predicted traffic from host `a` to host `b`."""
    return f"{a} -> {b}"


def host_predictions(plan: Plan, placement: Placement) -> Iterator[Prediction]:
    """Yields for each host its nodes, reserved cores, memory, bridge ports and share of the work, and for
    each pair of hosts with traffic the bit/s, without the headers of tunnels.
    """
    total = sum(one.work for one in placement.demands.values())
    demands: dict[str, list[Demand]] = {host.name: [] for host in plan.hosts}
    for node in plan.nodes:
        demands[node.host].append(placement.demands[node.name])
    ports, captures = most_ports(plan), Counter(capture.host for capture in plan.captures)
    for host in plan.hosts:
        asked = sum(demands[host.name], NOTHING)
        scope = of_host(host.name)
        memory = asked.memory_bytes + LAB_BYTES + CAPTURE_BYTES * captures[host.name]
        yield Prediction("nodes", scope, float(len(demands[host.name])), "nodes")
        yield Prediction("cores reserved", scope, round(_cores(asked, host), 6), "cores")
        yield Prediction("memory", scope, float(memory), "B")
        yield Prediction("bridge ports", scope, float(ports[host.name]), "ports")
        yield Prediction("work", scope, asked.work / total if total else 0.0, "share")
    for (a, b), bps in sorted(passing(placement).items()):
        yield Prediction(TRAFFIC, between(a, b), bps, "bit/s")


def _cores(asked: Demand, host: Host) -> float:
    """Returns the reserved cores and MHz as cores of the host; MHz do not count if its clock is unknown."""
    return asked.cores + (asked.mhz / host.core_mhz if host.core_mhz else 0.0)


def most_ports(plan: Plan) -> dict[str, int]:
    """Returns, by host, the number of ports of its fullest bridge, with those of tunnels."""
    count: dict[str, Counter[str]] = {host.name: Counter() for host in plan.hosts}
    for node in plan.nodes:
        count[node.host].update(card.segment for card in node.interfaces if card.port)
    for link in plan.links:
        if link.kind in ("segments", "medium"):  # a medium has two ports for the stations of its proof
            count[link.forward.host].update((link.a, link.b))
    for tunnel in plan.tunnels:
        for host in tunnel.ends:
            count[host][tunnel.segment] += 1
    return {host: max(ports.values(), default=0) for host, ports in count.items()}


def passing(placement: Placement) -> dict[tuple[str, str], float]:
    """Returns the traffic in bit/s by (sending host, receiving host), without traffic inside a host."""
    found: defaultdict[tuple[str, str], float] = defaultdict(float)
    for (a, b), bps in placement.traffic.items():
        one, other = placement.of[a], placement.of[b]
        if one != other:
            found[one, other] += bps
    return found
