"""Tests that netlab topologies become valid topologies, and that what cannot be converted is reported."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from contract.plan import Plan
from orchestrator.exchange import writing
from orchestrator.exchange.netlab import read
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

TOPOLOGY = """\
name: Two_AS
module: [ospf, bgp]
message: Hello
plugin: [bgp.session]
defaults.device: frr
bgp.as: 65000
ospf.area: 0.0.0.0
groups:
  hosts: {_auto_create: true, members: [h1, h2], device: linux, module: []}
  outside: {members: [X1], bgp.as: 65001, module: [bgp]}
nodes:
  r1: {bgp.rr: true}
  r2:
  X1: {loopback.ipv4: 10.42.42.0/24}
links:
- r1-r2
- r2:
  X1:
  ospf.cost: 5
  tc: {delay: 10, jitter: 1 ms, loss: 0.5, rate: 2000}
- r1:
    ipv4: 172.20.0.9/24
  h1:
  h2:
    ipv4: 172.20.0.7
  prefix: 172.20.0.0/24
  mtu: 1500
validate: {ping: {nodes: [h1]}}
"""


def _read(tmp_path: Path, text: str, **options: Any) -> tuple[Plan, str, str]:
    """Returns the plan, the topology's text, and all messages of the import."""
    file = tmp_path / "topology.yml"
    file.write_text(text)
    network = read(file, **options)
    written = writing.write(network)
    plan = make_plan(parse("imported.yaml", written.text.encode()))
    return plan, written.text, "\n".join([*network.left, *written.changed])


def test_routers_with_their_protocols_and_hosts(tmp_path: Path) -> None:
    plan, text, said = _read(tmp_path, TOPOLOGY)
    nodes = {node.name: node for node in plan.nodes}
    assert plan.lab == "two-as" and sorted(nodes) == ["h1", "h2", "r1", "r2", "x1"]
    daemons = {name: node.software[0].process.env["DAEMONS"] for name, node in nodes.items() if node.software}  # type: ignore[union-attr]
    assert daemons == {"r1": "zebra ospfd bgpd", "r2": "zebra ospfd bgpd", "x1": "zebra bgpd"}
    assert "as: 65001" in text and "cost: 5" in text and "routing: none" in text
    own = {(n.name, i.segment): f"{i.address}/{i.prefix}" for n in plan.nodes for i in n.interfaces}
    assert own["r1", "lan-3"] == "172.20.0.9/24" and own["h2", "lan-3"] == "172.20.0.7/24"
    assert [(r.to, r.via) for r in nodes["h1"].routes] == [(("0.0.0.0/0",), ("172.20.0.9",))]
    (link,) = (one for one in plan.links if one.name == "r2-x1")
    there = link.forward.impairment
    assert link.reverse.impairment == there
    assert (there.delay_ns, there.jitter_ns, there.loss, there.rate_bps) == (
        10_000_000,
        1_000_000,
        0.005,
        2_000_000,
    )
    for one in (
        "line 4: the plugin bgp.session",
        "line 7: ospf.area: no counterpart",
        "line 12: r1: bgp.rr: the kind's own setting stands",
        "line 14: X1: loopback",
        "node X1 is x1 here",
    ):
        assert one in said
    assert "message" not in said and "line 28: validate.ping: to be checked by hand on h1" in said


@pytest.mark.parametrize(
    "nodes",
    ["nodes: [a, b]", "nodes: [{name: a}, b]", "nodes: a b", "nodes: {a: , b: }"],
    ids=["list", "both", "text", "map"],
)
def test_nodes_in_all_their_forms(tmp_path: Path, nodes: str) -> None:
    plan, _, _ = _read(
        tmp_path, f"defaults: {{device: frr}}\n{nodes}\nlinks: [{{interfaces: [{{node: a}}, b]}}]\n"
    )
    assert [node.name for node in plan.nodes] == ["a", "b"] and all(node.forward for node in plan.nodes)


def test_frr_stands_for_other_devices_where_that_is_asked_for(tmp_path: Path) -> None:
    other = TOPOLOGY.replace("device: frr", "device: eos")
    with pytest.raises(
        TopologyError, match=r"topology.yml:12: .*device: eos: the device of r1 cannot be taken over"
    ):
        _read(tmp_path, other)
    plan, _, said = _read(tmp_path, other, stand_ins=True)
    assert sum(bool(node.software) for node in plan.nodes) == 3
    assert "r1: its system (eos): our router stands for it" in said


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("module: [ospf, bgp]", "module: [isis]", r":12: nodes.r1.module: the module isis of r1 cannot"),
        ("[bgp.session]", "[fabric]", r":4: plugin: the plugin fabric cannot be taken over"),
        ("message: Hello", "vlans: {red: }", r":3: vlans: vlans cannot be taken over"),
        ("- r1-r2", "- r1-r9", r":16: links\[0\]: r9: does not join nodes of the file"),
        ("bgp.as: 65000", "bgp: {}", r":12: nodes.r1: r1 has BGP and no AS"),
        ("172.20.0.0/24", "172.20.0.1/24", r":21: links\[2\]: 172.20.0.1/24: has no subnet or address"),
        ("nodes:\n", "knots:\n", "cannot be taken over|does not join"),
        (TOPOLOGY, "[]", "has no nodes"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(TopologyError, match=said):
        _read(tmp_path, TOPOLOGY.replace(old, new, 1))


FRR = "defaults.device: frr\nmodule: [ospf]\nnodes: [r1, r2, r3]\n"


@pytest.mark.parametrize(
    ("text", "links", "segments"),
    [
        (f"{FRR}links: [[r1, r2, r3]]\n", set(), {"lan-1": 3}),
        (f"{FRR}links: [r1-r2-r3]\n", set(), {"lan-1": 3}),
        (f"{FRR}links: [{{group: core, members: [r1-r2, r2-r3]}}]\n", {"r1-r2", "r2-r3"}, {}),
        (f"{FRR}links: {{core: [r1-r2], edge: [[r2, r3], r1]}}\n", {"r1-r2", "r2-r3"}, {"lan-3": 1}),
        (f"{FRR}links: [r1-r2, {{r2: , r3: , disable: true}}, r2-r3]\n", {"r1-r2", "r2-r3"}, {}),
        ("defaults.device: frr\ngroups: {_auto_create: true, g: [a, b]}\nlinks: [a-b]\n", {"a-b"}, {}),
        (
            "defaults.device: frr\ngroups.g: {_auto_create: true, members: [a, b]}\nlinks: [a-b]\n",
            {"a-b"},
            {},
        ),
    ],
)
def test_links_and_groups_in_all_their_forms(
    text: str, links: set[str], segments: dict[str, int], tmp_path: Path
) -> None:
    plan, _, _ = _read(tmp_path, text)
    assert {link.name for link in plan.links} == links
    members = {
        s.name: sum(i.segment == s.name for n in plan.nodes for i in n.interfaces) for s in plan.segments
    }
    assert members == segments


def test_groups_are_merged_in_depth_and_inner_ones_count(tmp_path: Path) -> None:
    text = (
        "defaults.device: frr\nmodule: [bgp]\nnodes: {a: {bgp.rr: true}, b: , d: , e: {bgp.originate: []},"
        " x: {bgp.as: 1}}\n"
        "groups:\n  g1: [a, b]\n  g2: {members: [d, g1, g3], bgp.as: 65000, module: [bgp, ospf]}\n"
        "  g3: {members: ['~e'], bgp: {as: 65001}}\nlinks: [a-b, b-d, d-e, e-x]\n"
    )
    plan, written, _ = _read(tmp_path, text)
    assert re.findall(r"\bas: (\d+)", written) == ["65000"] * 3 + ["65001", "1"]
    daemons = {n.name: n.software[0].process.env["DAEMONS"] for n in plan.nodes}  # type: ignore[union-attr]
    assert daemons["a"] == "zebra ospfd bgpd" and daemons["x"] == "zebra bgpd"
