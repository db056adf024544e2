"""Tests links between nodes and routers in a plan: assigned subnets, static routes, paths in text and
drawing.
"""

from __future__ import annotations

import ipaddress

import pytest

from contract.plan import Node, Plan
from orchestrator.plan.build import make_plan
from orchestrator.plan.graph import dot
from orchestrator.plan.paths import Paths
from orchestrator.plan.render import render
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

LINE = """\
name: line
segments: {west: {subnet: 10.1.0.0/24}, east: {subnet: 10.2.0.0/24}}
nodes:
  client: {segment: west}
  server: {segment: east}
  r1: {segment: west, forward: true}
  r2: {forward: true}
  r3: {segment: east, forward: true}
links:
  near: {between: [r1, r2], forward: {delay: 3 ms, rate: 10 Mbit/s}}
  far: {between: [r2, r3], both: {delay: 4 ms}, subnet: 10.255.0.0/24}
"""


def plan(text: str = LINE, **changed: str) -> Plan:
    for old, new in changed.items():
        text = text.replace(old, new)
    return make_plan(parse("line.yaml", text.encode()))


def node(made: Plan, name: str) -> Node:
    return next(n for n in made.nodes if n.name == name)


def test_a_link_between_nodes_is_a_subnet_that_no_other_overlaps() -> None:
    made = plan()
    subnets = [ipaddress.IPv4Network(li.subnet or "") for li in made.links]
    assert [str(s) for s in subnets] == ["10.255.1.0/30", "10.255.0.0/24"]
    card = node(made, "r2").interfaces
    assert [(c.name, c.segment, c.address, c.port) for c in card] == [
        ("eth0", "near", "10.255.1.2", ""),
        ("eth1", "far", "10.255.0.1", ""),
    ]


def test_hosts_get_a_gateway_and_routers_every_subnet_but_their_own() -> None:
    made = plan()
    assert [(r.to, r.via) for r in node(made, "client").routes] == [(("0.0.0.0/0",), ("10.1.0.2",))]
    known = {to for route in node(made, "r1").routes for to in route.to}
    assert known == {"10.2.0.0/24", "10.255.0.0/24"}


def test_a_path_has_the_delays_and_the_lowest_rate_of_its_links() -> None:
    made = plan()
    path = Paths.of(made).between("client", "server")
    assert path is not None and path.nodes == ("client", "r1", "r2", "r3", "server")
    assert path.delay_ns() == 7_000_000 + 1514 * 8 * 100
    assert path.bottleneck_bps == 10_000_000
    assert "r1, r2, r3" in render(made)
    assert '"node r1" -- "node r2"' in dot(made)


@pytest.mark.parametrize("by", ["none", "hops"])
def test_routes_by_hand_stand_in_place_of_the_computed_ones(by: str) -> None:
    text = LINE.replace("name: line\n", f"name: line\nrouting: {by}\n")
    hand = "{segment: west, routes: [{to: 10.2.0.0/24, via: r1}]}"
    made = plan(text.replace("client: {segment: west}", f"client: {hand}"))
    assert [(r.to, r.via) for r in node(made, "client").routes] == [(("10.2.0.0/24",), ("10.1.0.2",))]
    assert bool(node(made, "r1").routes) is (by == "hops")
    path = Paths.of(made).between("client", "server")
    assert (path is not None) is (by == "hops"), "r1 itself knows no way without routes"


def test_a_loop_of_routes_ends() -> None:
    text = LINE.replace("r2: {forward: true}", "r2: {forward: true, routes: [{to: 10.2.0.0/24, via: r1}]}")
    made = plan(text)
    assert Paths.of(made).between("client", "server") is None


def test_software_is_reached_over_routers() -> None:
    sub = "{pub: {mqtt: {broker: server, subscribe: [{topic: a}]}}}"
    text = LINE.replace("client: {segment: west}", f"client: {{segment: west, software: {sub}}}")
    text = text.replace(
        "server: {segment: east}", "server: {segment: east, software: {m: {broker: mosquitto}}}"
    )
    (client,) = node(plan(text), "client").software
    assert client.spec["broker"] == "10.2.0.1"
    with pytest.raises(TopologyError, match="no segment, link or router joins it to server"):
        plan(text.replace("r2: {forward: true}", "r2: {}"))


def test_only_a_rate_with_backpressure_needs_no_netem() -> None:
    from orchestrator.kernel.needs import needs_of

    text = LINE.replace("delay: 3 ms, ", "").replace("both: {delay: 4 ms}, ", "")
    made = plan(text)
    assert "netem" in needs_of(made).kinds and "tbf" not in needs_of(made).kinds
    made = plan(text.replace("rate: 10 Mbit/s", "rate: 10 Mbit/s, backpressure: true"))
    assert "tbf" in needs_of(made).kinds and "netem" not in needs_of(made).kinds
    assert "tbf: the sender's sockets wait" in render(made)


R2, CLIENT = "r2: {forward: true}", "client: {segment: west}"
WRONG = {
    "to nowhere": (R2, "r2: {forward: true, routes: [{to: 10.9.0.0/24, via: r1}]}", "nowhere"),
    "no neighbour": (R2, "r2: {forward: true, routes: [{to: default, via: server}]}", "not forward"),
    "far router": (CLIENT, "client: {segment: west, routes: [{to: default, via: r3}]}", "no neighbour"),
    "unknown via": (R2, "r2: {routes: [{to: default, via: r9}]}", "no node is called that"),
    "no address": (R2, "r2: {routes: [{to: default, via: 10.9.x}]}", "neither a node nor an IP"),
    "address elsewhere": (R2, "r2: {routes: [{to: default, via: 10.1.0.9}]}", "in no subnet of r2"),
    "twice": (
        R2, "r2: {routes: [{to: default, via: r1}, {to: default, via: r3}]}", "stands twice"
    ),
    "no subnet": (R2, "r2: {routes: [{to: 10.2.0.1/24, via: r1}]}", "not a subnet"),
    "to IPv6 by IPv4": (R2, 'r2: {routes: [{to: "fd00:2::/64", via: r1}]}', "route to nowhere"),
    "everywhere by IPv4": (R2, 'r2: {routes: [{to: "::/0", via: r1}]}', "by IPv4, and ::/0 is IPv6"),
    "IPv6 address elsewhere": (R2, 'r2: {routes: [{to: default, via: "fd00::9"}]}', "in no subnet of r2"),
    "overlap": ("subnet: 10.255.0.0/24", "subnet: 10.2.0.0/30", "overlaps 10.2.0.0/24 of segment east"),
    "itself": ("between: [r1, r2]", "between: [r1, r1]", "joins a node to itself"),
    "a segment's name": ("near: {between", "west: {between", "a link between two nodes and a segment, too"),
    "alone": ("far: {between: [r2, r3]", "far: {between: [r2, r1]", "r4 is on no segment"),
    "cost at a segment": ("links:\n", "links:\n  c: {between: [client, west], cost: 3}\n", "two nodes"),
    "cost": ("near: {", "near: {cost: 0, ", "must be at least 1"),
    "nics": ("near: {", "near: {nics: {a: x0, b: x1}, ", "stands at a link between two nodes"),
    "routing": ("name: line\n", "name: line\nrouting: fastest\n", "not one of the values"),
    "address without segment": (R2, "r2: {address: 10.255.1.9}", "is on no segment"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_refused_with_a_remedy(name: str) -> None:
    old, new, rule = WRONG[name]
    text = LINE.replace(old, new)
    if name == "alone":
        text = text.replace("links:\n", "  r4: {forward: true}\nlinks:\n")
    with pytest.raises(TopologyError) as caught:
        plan(text)
    problems = [str(p) for p in caught.value.problems]
    assert any(rule in p and "; " in p for p in problems), problems


def test_a_link_without_a_free_subnet_is_a_mistake_of_the_file() -> None:
    used = "".join(f"  s{n}: {{subnet: 10.{n}.0.0/16}}\n" for n in range(256))
    text = f"name: full\nsegments:\n{used}nodes: {{a: {{}}, b: {{}}}}\nlinks: {{far: {{between: [a, b]}}}}\n"
    with pytest.raises(TopologyError, match=r"full\.yaml:260: links\.far: the other .*; write `subnet"):
        parse("full.yaml", text.encode())
