"""Writes a plan's hosts as tables: the load of each host, the place of each part, the tunnels, and the
traffic between hosts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from contract.plan import Host, Plan, Prediction

from ...language.units import text_bps, text_bytes, text_share
from ..summary import groups, link_views
from .loads import TRAFFIC, of_host
from .notes import some

MOST_WAYS = 20  # rows for traffic between hosts, the highest rates first; one more row adds up the others
Table = tuple[str, Sequence[str], list[Sequence[str]]]


def host_tables(plan: Plan) -> Iterator[Table]:
    """Yields title, header and rows of each table; yields nothing for a plan without hosts."""
    if not plan.hosts:
        return
    values = {(p.scope, p.name): p for p in plan.predictions}
    header = ("host", "machine", "nodes", "cores reserved", "memory", "ports of a bridge", "of the work")
    yield "Hosts", header, [_host(host, values) for host in plan.hosts]
    yield "Where the parts stand", ("what", "on"), [*_nodes(plan), *_links(plan)]
    rows: list[Sequence[str]] = [
        (t.segment, str(t.vni), t.device, str(t.mtu), some(t.ends)) for t in plan.tunnels
    ]
    yield "Tunnels between hosts (VXLAN)", ("segment or link", "VNI", "device", "MTU", "hosts"), rows
    yield from _between(plan)


def of_hosts(plan: Plan) -> set[str]:
    """Returns the scopes of the predictions that `host_tables` shows: the hosts, and the pairs of hosts with
    traffic.
    """
    ways = {p.scope for p in plan.predictions if p.name == TRAFFIC}
    return ways | {of_host(host.name) for host in plan.hosts}


def _host(host: Host, values: dict[tuple[str, str], Prediction]) -> Sequence[str]:
    def value(name: str) -> float:
        return values[of_host(host.name), name].value

    memory = text_bytes(value("memory"))
    return (
        host.name,
        host.machine or "this one",
        f"{value('nodes'):.0f}",
        _of(f"{value('cores reserved'):g}", None if host.cores is None else f"{host.cores:g}"),
        _of(memory, None if host.memory_bytes is None else text_bytes(host.memory_bytes)),
        _of(f"{value('bridge ports'):.0f}", str(host.bridge_ports)),
        text_share(round(value("work"), 3)),
    )


def _of(amount: str, most: str | None) -> str:
    return amount if most is None else f"{amount} of {most}"


def _nodes(plan: Plan) -> Iterator[Sequence[str]]:
    for group in groups(plan):
        first, last = group.nodes[0].name, group.nodes[-1].name
        yield first if first == last else f"{first} ... {last}", _shares(node.host for node in group.nodes)


def _links(plan: Plan) -> Iterator[Sequence[str]]:
    for view in link_views(plan):
        link = view.links[0]
        if link.kind == "segments":
            yield f"link {view.name}", _shares(one.forward.host for one in view.links)
        elif link.over_hosts:
            yield f"link {view.name}", f"{link.forward.host} and {link.reverse.host}"


def _shares(hosts: Iterable[str]) -> str:
    """Returns the host of each part as one text: `lab1`, or the number of parts of each host, `lab1 (120),
    lab2 (80)`.
    """
    count = Counter(hosts)
    if len(count) == 1:
        return next(iter(count))
    return some([f"{host} ({number})" for host, number in count.items()])


def _between(plan: Plan) -> Iterator[Table]:
    found = sorted((p for p in plan.predictions if p.name == TRAFFIC), key=lambda p: (-p.value, p.scope))
    rows: list[Sequence[str]] = [(p.scope, text_bps(p.value)) for p in found[:MOST_WAYS]]
    if rest := found[MOST_WAYS:]:
        rows.append((f"{len(rest)} more ways", text_bps(sum(p.value for p in rest)) + " together"))
    yield "Between hosts (foreseen, without the tunnels' headers)", ("from -> to", "rate"), rows
