"""Tests FRR's routers in the plan: neighbours, routes and their costs, and mistakes."""

from __future__ import annotations

import itertools
from ipaddress import IPv4Network

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mistakes import refused

from contract.plan import Plan, Process
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

OSPF = "frr: {ospf: {hello: 1 s, dead: 4 s}}"
FILE = f"""\
name: routers
routing: none
segments: {{lan: {{subnet: 10.1.0.0/24}}, far: {{subnet: 10.2.0.0/24}}}}
nodes:
  host: {{segment: lan, routes: [{{to: default, via: a}}]}}
  a: {{segment: lan, forward: true, software: {{d: {{{OSPF}}}}}}}
  b: {{segment: lan, forward: true, software: {{d: {{frr: {{ospf: {{hello: 1 s, dead: 4 s}}}}}}}}}}
  c: {{segment: lan, forward: true, software: {{d: {{frr: {{ospf: {{hello: 1 s, dead: 4 s}}}}}}}}}}
  x: {{segment: far, forward: true, software: {{d: {{frr: {{ospf: {{hello: 1 s, dead: 4 s}}}}}}}}}}
links:
  c-x: {{between: [c, x], cost: 7}}
"""
BGP = """\
name: systems
routing: none
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  a: {segment: lan, forward: true, software: {d: {frr: {ospf: {}, bgp: {as: 65001, redistribute: [ospf]}}}}}
  b: {forward: true, software: {d: {frr: {ospf: {}, bgp: {as: 65001}}}}}
  c: {forward: true, software: {d: {frr: {ospf: {}, bgp: {as: 65001}}}}}
  x: {forward: true, software: {d: {frr: {bgp: {as: 65002, hold: 3 s, keepalive: 1 s}}}}}
links: {a-b: {between: [a, b]}, b-c: {between: [b, c]}, c-x: {between: [c, x]}}
"""


def processes(plan: Plan) -> dict[str, Process]:
    return {n.name: s.process for n in plan.nodes for s in n.software if s.process is not None}


def text(plan: Plan, node: str, file: str = "frr.conf") -> str:
    return next(f.content for f in processes(plan)[node].files if f.path == f"d/{file}")


def planned(content: str) -> Plan:
    return make_plan(parse("routers.yaml", content.encode()))


def stanza(conf: str, head: str) -> list[str]:
    """Returns the lines below the line `head`, without their indentation."""
    lines = conf.splitlines()
    return [
        line.strip() for line in itertools.takewhile(lambda s: s != "exit", lines[lines.index(head) + 1 :])
    ]


def test_interfaces_have_the_kind_of_network_that_their_neighbours_make() -> None:
    conf = text(planned(FILE), "c")
    timers = ["ip ospf hello-interval 1", "ip ospf dead-interval 4", "ip ospf area 0"]
    assert stanza(conf, "interface eth0") == [
        "description lan", "ip ospf cost 1", "ip ospf network broadcast", *timers
    ]  # fmt: skip
    wire = ["description c-x", "ip ospf cost 7", "ip ospf network point-to-point", *timers]
    assert stanza(conf, "interface eth1") == wire
    alone = ["description far", "ip ospf cost 1", "ip ospf passive", "ip ospf area 0"]
    assert stanza(text(planned(FILE), "x"), "interface eth0") == alone
    assert stanza(conf, "router ospf") == ["ospf router-id 10.1.0.4", "maximum-paths 1"]


def test_two_routers_alone_on_a_segment_need_no_designated_one() -> None:
    two = FILE.replace("  b: {segment: lan,", "  b: {segment: far,")
    assert "ip ospf network point-to-point" in stanza(text(planned(two), "c"), "interface eth0")


def test_ready_means_every_subnet_at_its_cost() -> None:
    plan = planned(FILE)
    assert text(plan, "a", "routes").split() == ["10.1.0.0/24", "10.2.0.0/24", "10.255.0.0/30"]
    assert text(plan, "a", "costs").splitlines() == [
        "10.1.0.0/24 [1]",
        "10.2.0.0/24 [9]",
        "10.255.0.0/30 [8]",
    ]
    process = processes(plan)["a"]
    assert process.ready.log == "vnet: routes are there" and process.env["DAEMONS"] == "zebra ospfd"
    asked = FILE.replace(OSPF, "frr: {ospf: {hello: 1 s, dead: 4 s}, ready: [10.2.0.0/24, default]}")
    assert text(planned(asked), "a", "routes").split() == ["10.2.0.0/24", "default"]
    assert text(planned(asked), "a", "costs") == ""


SIX = ("10.1.0.0/24", '"fd00:1::/64"'), ("10.2.0.0/24", '"fd00:2::/64"')


def six(content: str) -> Plan:
    for old, new in SIX:
        content = content.replace(old, new)
    return planned(content)


def test_ipv6_has_a_version_of_its_own() -> None:
    plan = six(FILE)
    conf = text(plan, "c")
    timers = ["ipv6 ospf6 hello-interval 1", "ipv6 ospf6 dead-interval 4", "ipv6 ospf6 area 0"]
    wire = ["description c-x", "ipv6 ospf6 cost 7", "ipv6 ospf6 network point-to-point", *timers]
    assert stanza(conf, "interface eth1") == wire
    assert stanza(conf, "router ospf6") == ["ospf6 router-id 0.0.0.4", "maximum-paths 1"]
    assert "router ospf\n" not in conf
    assert processes(plan)["c"].env["DAEMONS"] == "zebra ospf6d"
    assert text(plan, "a", "costs6").splitlines() == ["fd00:1::/64 [1]", "fd00:2::/64 [9]", "fdff::/126 [8]"]
    assert text(plan, "a", "costs") == ""


def test_a_router_of_both_families_runs_both_versions_each_with_its_own_costs() -> None:
    both = FILE.replace("10.2.0.0/24", '"fd00:2::/64"').replace("c: {segment: lan", "c: {segment: [lan, far]")
    plan = planned(both)
    assert processes(plan)["c"].env["DAEMONS"] == "zebra ospfd ospf6d"
    assert stanza(text(plan, "c"), "router ospf6")[0] == "ospf6 router-id 10.1.0.4"
    assert text(plan, "c", "costs6").splitlines() == ["fd00:2::/64 [1]"]
    assert text(plan, "x", "costs").splitlines() == ["10.1.0.0/24 [8]", "10.255.0.0/30 [7]"]
    assert text(plan, "a", "costs6") == "", "no way of IPv6 leads there"


def test_systems_speak_ipv6_in_its_own_address_family() -> None:
    plan = six(BGP)
    conf = text(plan, "a")
    assert "neighbor fdff::6 update-source fd00:1::1" in conf and "address-family ipv4" not in conf
    family = conf[conf.index(" address-family ipv6 unicast") : conf.index(" exit-address-family")]
    assert "  neighbor fdff::6 activate\n  neighbor fdff::6 next-hop-self\n" in family
    assert "  redistribute ospf6\n" in family


def test_systems_speak_at_their_borders_and_each_with_all_its_own() -> None:
    plan = planned(BGP)
    border = stanza(text(plan, "c"), "router bgp 65001")
    assert (
        "neighbor 10.255.0.10 remote-as 65002" in border
        and "neighbor 10.255.0.10 next-hop-self" not in border
    )
    inner = stanza(text(plan, "a"), "router bgp 65001")
    assert {"neighbor 10.255.0.2 remote-as 65001", "neighbor 10.255.0.6 remote-as 65001"} <= set(inner)
    assert "neighbor 10.255.0.6 update-source 10.1.0.1" in inner  # c is not a neighbour of a
    assert "neighbor 10.255.0.6 next-hop-self" in inner and "redistribute ospf" in inner
    # the node x belongs to another autonomous system
    assert "ip ospf passive" in stanza(text(plan, "c"), "interface eth1")
    assert text(plan, "x", "routes").split() == sorted(
        ["10.1.0.0/24", "10.255.0.0/30", "10.255.0.4/30", "10.255.0.8/30"]
    )
    assert text(plan, "x", "costs") == ""


def test_a_router_without_bgp_belongs_to_any_system() -> None:
    plan = planned(BGP.replace("b: {forward: true, software: {d: {frr: {ospf: {}, bgp: {as: 65001}}}}}",
                               "b: {forward: true, software: {d: {frr: {ospf: {}}}}}"))  # fmt: skip
    assert "ip ospf network point-to-point" in stanza(text(plan, "b"), "interface eth0")
    assert "10.255.0.4/30 [2]" in text(plan, "a", "costs").splitlines(), "by way of b"


def test_a_router_waits_for_what_its_border_redistributes() -> None:
    """Shows that b, which speaks OSPF only, waits for the BGP routes of x that c redistributes."""
    inner, border = (
        "b: {forward: true, software: {d: {frr: {ospf: {}",
        "c: {forward: true, software: {d: {frr: {ospf: {}",
    )
    text_ = BGP.replace(f"{inner}, bgp: {{as: 65001}}", inner)
    text_ = text_.replace("x: {forward", "x: {segment: far, forward")
    text_ = text_.replace(
        "lan: {subnet: 10.1.0.0/24}", "lan: {subnet: 10.1.0.0/24}, far: {subnet: 10.9.0.0/24}"
    )
    assert "10.9.0.0/24" not in text(planned(text_), "b", "routes").split()
    plan = planned(text_.replace(border, border.replace("ospf: {}", "ospf: {redistribute: [bgp]}")))
    assert "10.9.0.0/24" in text(plan, "b", "routes").split()
    assert "10.9.0.0/24" not in text(plan, "b", "costs")


def test_a_configuration_of_ones_own_is_taken_as_it_stands() -> None:
    own = 'frr: {config: "router rip\\n network {{ address }}/24\\nrouter bgp 5\\n"}'
    plan = planned(FILE.replace(OSPF, own))
    assert text(plan, "a") == "router rip\n network 10.1.0.2/24\nrouter bgp 5\n"
    assert processes(plan)["a"].env["DAEMONS"] == "zebra ripd bgpd"
    assert text(plan, "a", "routes").split() == ["10.1.0.0/24", "10.2.0.0/24", "10.255.0.0/30"]


@pytest.mark.parametrize(
    ("old", "new", "place", "rule"),
    [
        ("a: {segment: lan, forward: true", "a: {segment: lan", "nodes.a.software.d.frr", "does not forward"),
        (OSPF, "frr: {}", "nodes.a.software.d.frr", "states no protocol"),
        (OSPF, "frr: {ospf: {hello: 1500 ms}}", "nodes.a.software.d.frr.ospf.hello", "whole number of sec"),
        (OSPF, "frr: {ospf: {dead: 9 s}}", "nodes.a.software.d.frr.ospf.dead", "not more than `h"),
        (OSPF, "frr: {bgp: {as: 1, hold: 30 s}}", "nodes.a.software.d.frr.bgp.hold", "less than three times"),
        (OSPF, "frr: {bgp: {as: 0}}", "nodes.a.software.d.frr.bgp.as", "must be at least 1"),
        (OSPF, "frr: {ospf: {}, config: x}", "nodes.a.software.d.frr.ospf", "configuration of your own"),
        (OSPF, 'frr: {config: "{{ nobody }}"}', "nodes.a.software.d.frr.config", "no name nobody"),
        (f"d: {{{OSPF}}}", f"d: {{{OSPF}}}, e: {{{OSPF}}}", "nodes.a.software.d.frr", "has one router"),
        ("a: {segment: lan", "a: {segment: lan, kind: vm", "nodes.a.software.d.frr", "image builtin has no"),
    ],
)  # fmt: skip
def test_mistakes_are_refused_by_their_rule(old: str, new: str, place: str, rule: str) -> None:
    refused(FILE, old, new, place, rule)


@pytest.mark.parametrize(
    ("base", "old", "new", "rule"),
    [
        (FILE, OSPF, "frr: {ospf: {hello: 2 s, dead: 4 s}}", "never be neighbours"),
        (FILE, OSPF, "frr: {router_id: 10.1.0.3, ospf: {hello: 1 s, dead: 4 s}}", "router id 10.1.0.3, as a"),
        (
            BGP.replace("ospf: {}, ", "").replace(", redistribute: [ospf]", ""),
            "c-x: {",
            "c-x: {",
            "no way to it",
        ),
    ],
)
def test_what_no_router_breaks_alone_is_refused_in_the_plan(base: str, old: str, new: str, rule: str) -> None:
    with pytest.raises(TopologyError) as caught:
        planned(base.replace(old, new, 1))
    assert any(rule in p.rule and p.remedy for p in caught.value.problems)


def test_the_plan_leaves_the_routes_to_them() -> None:
    for routing in ("routing: delay\n", ""):
        with pytest.raises(TopologyError) as caught:
            parse("f", FILE.replace("routing: none\n", routing).encode())
        found = {p.path: str(p) for p in caught.value.problems}
        assert "the plan does (routing: delay); write `routing: none`" in found["nodes.a.software.d.frr"]


def test_a_machine_with_the_daemons_is_taken() -> None:
    vm = FILE.replace("a: {segment: lan", "a: {segment: lan, kind: vm, image: debian")
    assert processes(planned(vm))["a"].argv[0] == "sh"


@st.composite
def graphs(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """Draws the edges of a connected graph with their costs."""
    size = draw(st.integers(2, 7))
    tree = [(draw(st.integers(0, n - 1)), n) for n in range(1, size)]
    more = draw(st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), max_size=6))
    edges = dict.fromkeys([*tree, *((min(e), max(e)) for e in more if e[0] != e[1])])
    return [(a, b, draw(st.integers(1, 20))) for a, b in edges]


@settings(max_examples=40, deadline=None)
@given(graphs())
def test_costs_are_those_of_networkx(edges: list[tuple[int, int, int]]) -> None:
    graph = networkx.Graph()
    graph.add_weighted_edges_from(edges)
    nodes = "".join(f"  r{n}: {{forward: true, software: {{d: {{frr: {{ospf: {{}}}}}}}}}}\n" for n in graph)
    links = "".join(f"  l{a}-{b}: {{between: [r{a}, r{b}], cost: {cost}}}\n" for a, b, cost in edges)
    plan = planned(f"name: g\nrouting: none\nnodes:\n{nodes}links:\n{links}")
    subnets = {link.name: link.subnet for link in plan.links}
    far = dict(networkx.all_pairs_dijkstra_path_length(graph))
    for node in graph:
        wanted = {subnets[f"l{a}-{b}"]: min(far[node][a], far[node][b]) + cost for a, b, cost in edges}
        said = dict(line.split() for line in text(plan, f"r{node}", "costs").splitlines())
        assert said == {subnet: f"[{cost}]" for subnet, cost in wanted.items()}
        assert all(IPv4Network(subnet) for subnet in said)
