"""A plan of one machine, laid over several hosts by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from orchestrator.model import Direction, Host, Link, Plan, Step, Tunnel
from orchestrator.plan.steps import impair_steps, network_steps

FIRST_VNI = 7001


def laid_over(plan: Plan, hosts: Sequence[Host], at: Mapping[str, str], mtu: int = 1500) -> Plan:
    """`at`: host by node. All links are the nodes' own; each segment is on every host that has a node of it."""

    def there(way: Direction, host: str) -> Direction:
        return dataclasses.replace(way, host=host, far_host=host)

    nodes = tuple(dataclasses.replace(node, host=at[node.name]) for node in plan.nodes)
    links = tuple(
        dataclasses.replace(li, forward=there(li.forward, at[li.a]), reverse=there(li.reverse, at[li.a]))
        for li in plan.links
    )
    tunnels = tuple(
        Tunnel(s.name, s.bridge, FIRST_VNI + n, f"vx{n}", mtu, ends, learning=len(ends) > 2)
        for n, s in enumerate(plan.segments)
        if len(ends := tuple(h.name for h in hosts if any(_on(n, s.name, h.name) for n in nodes))) > 1
    )
    captures = tuple(
        dataclasses.replace(c, host=at[c.at.split()[1]] if c.at.startswith("node ") else hosts[0].name)
        for c in plan.captures
    )
    steps = [step for host in hosts for step in _steps(plan, nodes, links, tunnels, host.name)]
    return dataclasses.replace(
        plan, hosts=tuple(hosts), nodes=nodes, links=links, tunnels=tunnels, captures=captures,
        steps=tuple(steps),
    )  # fmt: skip


def _on(node: object, segment: str, host: str) -> bool:
    return getattr(node, "host") == host and any(c.segment == segment for c in getattr(node, "interfaces"))


def _steps(plan: Plan, nodes: Sequence, links: Sequence[Link], tunnels: Sequence[Tunnel], host: str) -> list[Step]:
    mine = {node.name: node.interfaces for node in nodes if node.host == host}
    of = [link for link in links if link.forward.host == host]
    vms = [node.name for node in nodes if node.vm is not None]
    text = "".join(
        f"link set dev {t.device} addrgenmode none\nlink set dev {t.device} master {t.bridge} up\n"
        for t in tunnels if host in t.ends
    )  # fmt: skip
    found = [*network_steps(plan.lab, plan.segments, mine, of, vms), Step("ip", plan.core_netns, text, "tunnels")]
    return [dataclasses.replace(step, host=host) for step in (*found, *impair_steps(plan.lab, of)) if step.text]
