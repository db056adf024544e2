"""Compares computed routes with networkx: packets arrive, over paths as cheap as the shortest one."""

from __future__ import annotations

import ipaddress
from typing import Any

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.plan import Plan
from contract.plan.family import BITS, FAMILIES, Family, family
from orchestrator.plan.build import make_plan
from orchestrator.plan.paths import Paths
from orchestrator.plan.routes import merged
from orchestrator.topology.loading import parse


@st.composite
def networks(draw: st.DrawFn) -> dict[str, Any]:
    """Draws routers joined by links with delays and costs, with loops or in separate parts, and hosts on some
    of their segments.
    """
    count = draw(st.integers(2, 9))
    routers = [f"r{i}" for i in range(1, count + 1)]
    ends = st.tuples(st.sampled_from(routers), st.sampled_from(routers)).filter(lambda e: e[0] != e[1])
    links = draw(st.lists(st.tuples(ends, st.integers(0, 5), st.integers(1, 5)), min_size=1, max_size=18))
    homes = draw(st.lists(st.sampled_from(routers), min_size=1, max_size=4))
    return {"routers": routers, "links": links, "homes": homes}


HOMES: dict[Family, str] = {"IPv4": "10.{}.0.0/24", "IPv6": "fd00:{}::/64"}
LONELY: dict[Family, str] = {"IPv4": "172.16.0.0/24", "IPv6": "fd0a::/64"}


def _plan(network: dict[str, Any], by: str, ecmp: bool, kind: Family) -> Plan:
    homes = network["homes"]
    lines = ["name: some", f"routing: {{by: {by}, ecmp: {str(ecmp).lower()}}}", "segments:"]
    lines += [f'  s{i}: {{subnet: "{HOMES[kind].format(i)}"}}' for i in range(len(homes))]
    lines.append("nodes:")
    for router in network["routers"]:
        on = [f"s{i}" for i, home in enumerate(homes) if home == router]
        lines.append(f"  {router}: {{forward: true, segment: [{', '.join(on or ['lonely'])}]}}")
    lines += [f"  h{i}: {{segment: s{i}}}" for i in range(len(homes))]
    lines.insert(3, f'  lonely: {{subnet: "{LONELY[kind]}"}}')
    lines.append("links:")
    for i, ((a, b), delay, cost) in enumerate(network["links"]):
        lines.append(f"  l{i}: {{between: [{a}, {b}], cost: {cost}, both: {{delay: {delay} ms}}}}")
    return make_plan(parse("some.yaml", "\n".join(lines).encode()))


def _oracle(plan: Plan, by: str) -> networkx.MultiDiGraph:
    """Returns the plan's network as a networkx graph of nodes and subnets in which paths lead only through
    forwarding nodes.
    """
    graph = networkx.MultiDiGraph()
    for link in plan.links:
        for a, b, way in ((link.a, link.b, link.forward), (link.b, link.a, link.reverse)):
            weight = {"delay": way.impairment.delay_ns, "hops": 1, "cost": link.cost}[by]
            graph.add_edge(a, b, weight=weight)
    for node in plan.nodes:
        for card in node.interfaces:
            if card.segment[0] != "l" or card.segment == "lonely":
                step = 0 if by == "delay" else 1  # a hop over a segment costs 1, half on each side
                graph.add_edge(node.name, card.segment, weight=step / 2)
                graph.add_edge(card.segment, node.name, weight=step / 2)
    return graph


@pytest.mark.parametrize("ecmp", [False, True])
@pytest.mark.parametrize("by", ["delay", "hops", "cost"])
@settings(max_examples=25, deadline=None)
@given(network=networks(), kind=st.sampled_from(FAMILIES))
def test_ways_are_as_short_as_networkx_says(
    network: dict[str, Any], kind: Family, by: str, ecmp: bool
) -> None:
    plan = _plan(network, by, ecmp, kind)
    assert {family(card.address) for node in plan.nodes for card in node.interfaces} == {kind}
    oracle, paths = _oracle(plan, by), Paths.of(plan)
    wires = {link.name: link for link in plan.links}
    hosts = [node.name for node in plan.nodes if not node.forward]
    for a in hosts:
        for b in hosts:
            if a == b:
                continue
            path = paths.between(a, b)
            if not networkx.has_path(oracle, a, b):
                assert path is None
                continue
            assert path is not None
            cost = networkx.shortest_path_length(oracle, a, b, "weight")
            found = 0.0
            for here, there, address in zip(path.nodes[:-1], path.nodes[1:], path.addresses, strict=True):
                card = next(
                    c for n in plan.nodes if n.name == there for c in n.interfaces if c.address == address
                )
                wire = wires.get(card.segment)
                if wire is None:
                    found += 0 if by == "delay" else 1
                else:
                    way = wire.forward if wire.a == here else wire.reverse
                    found += {"delay": way.impairment.delay_ns, "hops": 1, "cost": wire.cost}[by]
            assert found == cost


@settings(max_examples=25, deadline=None)
@given(network=networks(), kind=st.sampled_from(FAMILIES))
def test_equal_ways_are_all_there_and_no_other(network: dict[str, Any], kind: Family) -> None:
    plan = _plan(network, "cost", True, kind)
    oracle = _oracle(plan, "cost")
    owner = {card.address: node.name for node in plan.nodes for card in node.interfaces}
    home = {HOMES[kind].format(i): f"s{i}" for i in range(len(network["homes"]))}
    for node in (n for n in plan.nodes if n.forward):
        on = {card.segment for card in node.interfaces}
        for subnet, segment in home.items():
            if segment in on:
                continue
            net: Any = ipaddress.ip_network(subnet)
            routes = [r for r in node.routes if any(net.subnet_of(ipaddress.ip_network(t)) for t in r.to)]
            if not networkx.has_path(oracle, node.name, segment):
                assert not routes
                continue
            assert len(routes) == 1
            ways = networkx.all_shortest_paths(oracle, node.name, segment, "weight")
            wanted = {next(n for n in way[1:] if n.startswith("r")) for way in ways}
            assert {owner[via] for via in routes[0].via} == wanted


@given(st.lists(st.tuples(st.integers(0, 255), st.integers(2, 8)), max_size=40), st.sampled_from(FAMILIES))
def test_merged_subnets_hold_the_same_addresses(raw: list[tuple[int, int]], kind: Family) -> None:
    first, bits = int(ipaddress.ip_network(LONELY[kind]).network_address), BITS[kind]
    subnets: set[Any] = {
        ipaddress.ip_network((first + low * 256 + (low * 37 % 256 >> size << size), bits - size))
        for low, size in raw
    }
    apart = [s for s in subnets if not any(s != o and s.subnet_of(o) for o in subnets)]
    found: list[Any] = [
        ipaddress.ip_network(one) if kind == "IPv4" else ipaddress.IPv6Network(one)
        for one in merged(((int(s.network_address), s.prefixlen) for s in apart), bits)
    ]
    assert sorted(found) == sorted(ipaddress.collapse_addresses(apart))
