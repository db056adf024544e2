"""Tests that links of netlab get the addresses, MTUs, impairments and states that netlab gives them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from orchestrator.exchange import writing
from orchestrator.exchange.netlab import read
from orchestrator.exchange.network import Network
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

NODES = "defaults.device: frr\nnodes: {r1: , r2: , r3: , h: {device: linux}}\nlinks:\n"


def network(tmp_path: Path, links: str, nodes: str = NODES) -> Network:
    file = tmp_path / "x.yml"
    file.write_text(nodes + links)
    return read(file)


def topology(made: Network) -> dict[str, Any]:
    written = writing.write(made)
    assert not written.problems
    make_plan(parse("x.yaml", written.text.encode()))
    data: dict[str, Any] = yaml.safe_load(written.text)
    return data


def addresses(made: Network) -> dict[str, list[str]]:
    return {
        name: [one for some in machine.addresses.values() for one in some]
        for name, machine in made.machines.items()
    }


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        # The order of the numbers: between two routers by name; on a link with a host or of several nodes, by
        # the nodes' numbers.
        ("{r3: , r1: , prefix: 10.0.0.0/24}", {"r1": "10.0.0.1/24", "r3": "10.0.0.2/24"}),
        ("{r3: , h: , prefix: 10.0.0.0/24}", {"r3": "10.0.0.3/24", "h": "10.0.0.4/24"}),
        ("{r3: , r1: , type: lan, prefix: 10.0.0.0/24}", {"r1": "10.0.0.1/24", "r3": "10.0.0.3/24"}),
        ("{r3: , h: , type: p2p, prefix: 10.0.0.0/24}", {"h": "10.0.0.1/24", "r3": "10.0.0.2/24"}),
        ("{r2: , r3: , h: , prefix: 10.0.0.0/24}", {"r2": "10.0.0.2/24", "h": "10.0.0.4/24"}),
        # The prefix is too small for the number 4, so the order on the link counts.
        ("{h: , r1: , prefix: 10.0.0.0/30}", {"h": "10.0.0.1/30", "r1": "10.0.0.2/30"}),
        (
            "{h: , r1: , prefix: {ipv4: 10.0.0.0/24, allocation: sequential}}",
            {"h": "10.0.0.1/24", "r1": "10.0.0.2/24"},
        ),
        # Static addresses: whole, without a mask, by number from either end, without a prefix of the link.
        (
            "{r2: {ipv4: 192.168.22.17}, r1: {ipv4: 10.42.0.2/29}, r3: , prefix: 192.168.22.0/24}",
            {"r2": "192.168.22.17/24", "r1": "10.42.0.2/29", "r3": "192.168.22.3/24"},
        ),
        (
            "{r1: {ipv4: 5}, r3: {ipv4: -2}, prefix: 10.5.0.0/24}",
            {"r1": "10.5.0.5/24", "r3": "10.5.0.254/24"},
        ),
        ("{r1: {ipv4: 10.6.0.1/24}, r2: {ipv4: 10.6.0.9/24}}", {"r1": "10.6.0.1/24", "r2": "10.6.0.9/24"}),
        ("{r1: , r2: , prefix: {ipv6: '2001:db8::/64'}}", {"r1": "2001:db8::1/64", "r2": "2001:db8::2/64"}),
    ],
)
def test_the_addresses_of_a_link(link: str, expected: dict[str, str], tmp_path: Path) -> None:
    made = network(tmp_path, f"- {link}\n")
    found = addresses(made)
    assert {name: found[name] for name in expected} == {name: [one] for name, one in expected.items()}
    assert not made.left
    topology(made)


def test_numbers_that_nodes_state(tmp_path: Path) -> None:
    nodes = "defaults.device: frr\nnodes: {a: {id: 2}, b: , c: , d: {id: 9}}\nlinks:\n"
    found = addresses(network(tmp_path, "- {a: , b: , c: , d: , prefix: 10.0.0.0/24}\n", nodes))
    assert found == {"a": ["10.0.0.2/24"], "b": ["10.0.0.1/24"], "c": ["10.0.0.3/24"], "d": ["10.0.0.9/24"]}


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ("{r1: {ipv4: false}, r2: , prefix: 10.0.0.0/24}", "ipv4: false of r1: its interface has an address"),
        ("{r1: {ipv4: 10.0.0.1}, r2: }", "ipv4: 10.0.0.1 of r1, without a prefix"),
        ("{r1: , r2: , prefix: false}", "prefix false: the link has a subnet of the plan's"),
        ("{r1: , r2: , prefix: {ipv4: true}}", "prefix true: the link has a subnet of the plan's"),
        ("{r1: {mtu: 1300}, r2: }", "the MTUs of a link's ends (r1 1300, r2 none): all have 1300"),
    ],
)
def test_what_a_link_loses_is_said(link: str, said: str, tmp_path: Path) -> None:
    (line,) = network(tmp_path, f"- {link}\n").left
    assert line.startswith("line 4: ") and said in line


@pytest.mark.parametrize(
    "link",
    [
        "{r1: {ipv4: 300}, r2: , prefix: 10.0.0.0/24}",
        "{r1: , r2: , r3: , prefix: 10.0.0.0/30}",
        "{r1: , r2: , prefix: {ipv4: 10.0.0.0/24, allocation: dice}}",
        "{r1: , r2: , prefix: nowhere}",
        "{r1: , r2: , mtu: big}",
    ],
)
def test_a_wrong_value_is_refused_with_its_line(link: str, tmp_path: Path) -> None:
    with pytest.raises(TopologyError) as raised:
        network(tmp_path, f"- {link}\n")
    assert [problem.line for problem in raised.value.problems] == [4]


def test_the_mtu_of_an_interface_goes_before_link_node_and_default(tmp_path: Path) -> None:
    nodes = "defaults: {device: frr, interfaces.mtu: 9000}\nnodes: {r1: {mtu: 1400}, r2: {mtu: 1400}, r3: }\n"
    links = "links:\n- r1-r2\n- {r2: , r3: , mtu: 1350}\n- {r1: {mtu: 1300}, r3: {mtu: 1300}}\n"
    made = network(tmp_path, links, nodes)
    assert [wire.mtu for wire in made.wires] == [1400, 1350, 1300] and not made.left
    (wire,) = network(tmp_path, "links:\n- r1-r2\n", nodes.replace("mtu: 1400", "")).wires
    assert wire.mtu == 9000


def test_an_impairment_is_of_what_leaves_an_interface(tmp_path: Path) -> None:
    made = network(tmp_path, "- {r1: {tc.delay: 20}, r2: , tc: {delay: 5, loss: 1}}\n")
    assert made.wires[0].impairments == {
        "forward": {"delay": "20 ms", "loss": "1 %"}, "reverse": {"delay": "5 ms", "loss": "1 %"}
    }  # fmt: skip


def test_a_lan_delays_a_packet_once(tmp_path: Path) -> None:
    made = network(tmp_path, "- {r1: , r2: , r3: , tc.delay: 50}\n")
    assert [(line.ends[1][0], line.impairments) for line in made.lines] == [
        ("lan-1", {"forward": {"delay": "50 ms"}})
    ] * 3
    plan = make_plan(parse("x.yaml", writing.write(made).text.encode()))
    for link in plan.links:
        toward, away = link.forward.impairment.delay_ns, link.reverse.impairment.delay_ns
        assert {toward, away} == {0, 50_000_000}


def test_a_shut_link_is_down(tmp_path: Path) -> None:
    for link in ("{r1: , r2: , shutdown: true}", "{r1: {shutdown: true}, r2: }"):
        data = topology(network(tmp_path, f"- {link}\n- r2-r3\n"))
        assert data["timeline"] == [{"at": "hold", "link-down": "r1-r2"}]


def test_a_linux_node_in_the_role_of_a_router_forwards(tmp_path: Path) -> None:
    nodes = NODES.replace("device: linux", "device: linux, role: router")
    made = network(tmp_path, "- r1-h\n", nodes)
    assert made.machines["h"].forward and not made.machines["h"].software
    assert not network(tmp_path, "- r1-h\n").machines["h"].forward


BOTH = "{r1: , r2: , prefix: {ipv4: 10.0.0.0/24, ipv6: '2001:db8::/64'}}"


def test_a_prefix_of_both_families_gives_each_end_an_address_of_each(tmp_path: Path) -> None:
    made = network(tmp_path, f"- {BOTH}\n")
    found = addresses(made)
    assert found["r1"] == ["10.0.0.1/24", "2001:db8::1/64"] and found["r2"] == [
        "10.0.0.2/24",
        "2001:db8::2/64",
    ]
    assert not made.left
    (link,) = topology(made)["links"].values()
    assert link["subnet"] == ["10.0.0.0/24", "2001:db8::/64"]


POOLS = """\
addressing:
  lan: {ipv6: "2001:db8:2::/48"}
  p2p: {ipv4: 10.1.0.0/16, ipv6: "2001:db8:1::/48", prefix: 30}
"""


def test_pools_with_ipv6_give_links_subnets_of_both_families_in_their_order(tmp_path: Path) -> None:
    nodes = f"{POOLS}defaults.device: frr\nnodes: {{r1: , r2: , r3: , h: {{device: linux}}}}\nlinks:\n"
    made = network(tmp_path, "- r1-r2\n- h-r3\n- r2-r3\n", nodes)
    found = addresses(made)
    assert found["r1"] == ["10.1.0.1/30", "2001:db8:1::1/64"]
    assert found["h"] == ["172.16.0.4/24", "2001:db8:2::4/64"], "by its number, in netlab's own pool for LANs"
    assert found["r3"] == ["172.16.0.3/24", "2001:db8:2::3/64", "10.1.0.6/30", "2001:db8:1:1::2/64"]
    assert not made.left
    topology(made)


def test_a_pool_that_is_none_is_refused(tmp_path: Path) -> None:
    nodes = "addressing: {lan: {ipv6: here}}\ndefaults.device: frr\nnodes: {r1: , r2: }\nlinks:\n"
    with pytest.raises(TopologyError, match="has no subnets"):
        network(tmp_path, "- r1-r2\n", nodes)
