"""Tests IPv6 in a plan: assigned subnets, routes of each family, static neighbours, reported mistakes."""

from __future__ import annotations

import ipaddress

import pytest

from contract.plan import Node, Plan
from orchestrator.plan.build import make_plan
from orchestrator.plan.naming import node_mac
from orchestrator.plan.paths import Paths
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

LINE = """\
name: line
segments: {west: {subnet: "fd00:1::/64"}, east: {subnet: "fd00:2::/64"}}
nodes:
  client: {segment: west}
  server: {segment: east}
  r1: {segment: west, forward: true}
  r2: {forward: true}
  r3: {segment: east, forward: true}
links:
  near: {between: [r1, r2], forward: {delay: 3 ms}}
  far: {between: [r2, r3], both: {delay: 4 ms}, subnet: "fdff::/126"}
"""
# The same routers, with a route of their own for IPv4 between two segments.
BOTH = LINE.replace(
    "segments: {",
    "routing: {by: hops, family: ipv4}\nsegments: {old: {subnet: 10.1.0.0/24}, new: {subnet: 10.2.0.0/24}, ",
)
BOTH = BOTH.replace("client: {segment: west}", "client: {segment: [west, old]}")
BOTH = BOTH.replace("server: {segment: east}", "server: {segment: [east, new]}")
BOTH = BOTH.replace("r1: {segment: west", "r1: {segment: [west, old]")
BOTH = BOTH.replace("r3: {segment: east", "r3: {segment: [east, new]")
BOTH = BOTH.replace("near: {", 'short: {between: [r1, r3]}\n  near: {subnet: "fdff:1::/126", ')


def plan(text: str) -> Plan:
    return make_plan(parse("line.yaml", text.encode()))


def node(made: Plan, name: str) -> Node:
    return next(n for n in made.nodes if n.name == name)


def way(made: Plan, a: str, address: str) -> tuple[str, ...] | None:
    path = Paths.of(made).to(a, address)
    return None if path is None else path.nodes


def test_links_get_a_small_subnet_of_their_own_where_all_subnets_are_of_ipv6() -> None:
    made = plan(LINE)
    assert [li.subnet for li in made.links] == ["fdff::4/126", "fdff::/126"]
    assert [c.address for c in node(made, "r2").interfaces] == ["fdff::6", "fdff::1"]
    assert node(made, "client").interfaces[0].address == "fd00:1::1", "::0 is any router's"
    assert all(segment.ipv6 for segment in made.segments)
    macs = [card.mac for n in made.nodes for card in n.interfaces]
    assert len(set(macs)) == len(macs)


def test_a_family_can_be_asked_for() -> None:
    text = "name: two\nrouting: {family: ipv6}\nnodes: {a: {}, b: {}}\nlinks: {w: {between: [a, b]}}\n"
    assert plan(text).links[0].subnet == "fdff::/126"
    assert plan(text.replace("ipv6", "ipv4")).links[0].subnet == "10.255.0.0/30"
    assert plan(text.replace("routing: {family: ipv6}\n", "")).links[0].subnet == "10.255.0.0/30"


def test_hosts_get_a_gateway_and_routers_the_subnets() -> None:
    made = plan(LINE)
    assert [(r.to, r.via) for r in node(made, "client").routes] == [(("::/0",), ("fd00:1::2",))]
    known = {to for route in node(made, "r1").routes for to in route.to}
    assert known == {"fd00:2::/64", "fdff::/126"}
    assert way(made, "client", "fd00:2::1") == ("client", "r1", "r2", "r3", "server")


def test_each_family_has_its_own_ways() -> None:
    made = plan(BOTH)
    assert way(made, "client", "fd00:2::1") == ("client", "r1", "r2", "r3", "server")
    assert way(made, "client", "10.2.0.1") == ("client", "r1", "r3", "server")
    assert {to for route in node(made, "client").routes for to in route.to} == {"::/0", "0.0.0.0/0"}


def test_a_default_route_by_hand_is_of_every_family_that_the_neighbour_shares() -> None:
    made = plan(BOTH.replace("old]}", "old], routes: [{to: default, via: r1}]}", 1))
    assert [(r.to, r.via) for r in node(made, "client").routes] == [
        (("0.0.0.0/0",), ("10.1.0.2",)),
        (("::/0",), ("fd00:1::2",)),
    ]
    made = plan(BOTH.replace("old]}", 'old], routes: [{to: "fd00:2::/64", via: r1}]}', 1))
    assert [(r.to, r.via) for r in node(made, "client").routes] == [(("fd00:2::/64",), ("fd00:1::2",))]


def test_software_speaks_to_an_address_of_a_family_that_it_has() -> None:
    text = BOTH.replace("client: {segment: [west, old]", "client: {segment: old")
    text = text.replace(
        "old}", "old, software: {say: {udp: {to: server, push: {size: 100 B, rate: 1 /s}}}}}", 1
    )
    text = text.replace("new]}", "new], software: {take: {udp: {listen: 9000}}}}", 1)
    (say,) = node(plan(text), "client").software
    assert say.spec["to"][0]["address"] == "10.2.0.1", "not its first, which is of IPv6"
    (take,) = node(plan(text), "server").software
    assert (take.spec.get("ipv6"), say.spec.get("ipv6")) == (True, None)


def test_hardware_addresses_differ_within_a_subnet_and_between_them() -> None:
    subnets = [ipaddress.IPv6Network(f"fd00:{i:x}::/64") for i in range(50)]
    macs = [node_mac(str(subnet[n])) for subnet in subnets for n in range(1, 41)]
    assert len(set(macs)) == len(macs)


UDP = "software: {say: {udp: {to: server, push: {size: 100 B, rate: 1 /s}}}}"
WRONG = {
    "prefix": ('"fd00:1::/64"', '"fd00:1::/127"', "from /16 to /126"),
    "host bits": ('"fd00:1::/64"', '"fd00:1::1/64"', "has host bits set"),
    "link-local": ('"fd00:1::/64"', '"fe80::/64"', "another meaning"),
    "multicast": ('"fd00:1::/64"', '"ff05::/64"', "another meaning"),
    "mapped": ('"fd00:1::/64"', '"::ffff:10.0.0.0/120"', "another meaning"),
    "overlap": ('"fdff::/126"', '"fd00:2::8/126"', "overlaps fd00:2::/64 of segment east"),
    "mtu of a segment": ('"fd00:1::/64"', '"fd00:1::/64", mtu: 1000', "less than 1280"),
    "mtu of a link": ("near: {", "near: {mtu: 1200, ", "less than 1280"),
    "guest without IPv6": (
        "client: {segment: west}", "client: {segment: west, kind: vm, image: builtin-tiny}", "has no IPv6"
    ),
    "joined": (
        "links:\n", "links:\n  j: {between: [west, v4]}\n",
        "joins it to a segment with 10.9.0.0/24; joined segments are one subnet",
    ),
    "address of the other family": (
        "client: {segment: west}", "client: {segment: west, address: 10.0.0.1}",
        "not a host's address in fd00:1::/64"
    ),
    "address twice": (
        "client: {segment: west}", 'client: {segment: west, address: "fd00:1:0::7"}\n'
        '  other: {segment: west, address: "FD00:1::0007"}', "already that of node client",
    ),
    "route to nowhere": (
        "r2: {forward", 'r2: {routes: [{to: "fd00:77::/64", via: r1}], forward', "a route to nowhere"
    ),
    "IPv4 by IPv6": ("r2: {forward", 'r2: {routes: [{to: 0.0.0.0/0, via: r1}], forward', "is IPv4"),
    "defaults of two families": (
        "r2: {forward", 'r2: {segment: v4, routes: [{to: default, via: [r1, 10.9.0.9]}], forward',
        "of different families",
    ),
    "IPv4 only, and IPv6 only": (
        "client: {segment: west}", f"client: {{segment: v4, {UDP}}}",
        "server has addresses of IPv6 only, client of IPv4",
    ),
    "multicast of IPv4": (
        "client: {segment: west}",
        "client: {segment: west, software: "
        "{p: {zeromq: {pub: 5555, transport: epgm, push: {size: 100 B, rate: 1 /s}}}}}",
        "multicast here is of IPv4",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_told_with_a_remedy(name: str) -> None:
    old, new, rule = WRONG[name]
    text = LINE.replace("segments: {", "segments: {v4: {subnet: 10.9.0.0/24}, ").replace(
        "server: {segment: east}", "server: {segment: east, software: {take: {udp: {listen: 9000}}}}"
    )
    text = text.replace("segments: {", "routing: {family: ipv6}\nsegments: {").replace(old, new)
    with pytest.raises(TopologyError) as caught:
        plan(text)
    problems = [str(p) for p in caught.value.problems]
    assert any(rule in p and "; " in p and "line.yaml:" in p for p in problems), problems
