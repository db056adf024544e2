"""Tests that containerlab topologies become valid topologies, and that what cannot be converted
is reported.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from containerlab_lab import TOPOLOGY, write

from contract.plan import Plan
from orchestrator.exchange import writing
from orchestrator.exchange.containerlab import read
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse


def planned(text: str) -> Plan:
    return make_plan(parse("imported.yaml", text.encode()))


def test_two_routers_and_two_hosts(tmp_path: Path) -> None:
    network = read(write(tmp_path))
    written = writing.write(network)
    plan = planned(written.text)
    nodes = {node.name: node for node in plan.nodes}
    assert nodes["r1"].forward and not nodes["pc1"].forward
    own = {(n.name, i.name): i.address for n in plan.nodes for i in n.interfaces}
    assert own["r1", "eth1"] == "192.168.11.1" and own["pc1", "eth0"] == "192.168.11.2"
    assert {link.name for link in plan.links} == {"r2-r1", "r1-pc1"}
    assert own["pc2", "eth0"] == "192.168.12.20", "kept on a segment"
    (config,) = (
        f.content for s in nodes["r1"].software for f in s.process.files if f.path.endswith("frr.conf")
    )  # type: ignore[union-attr]
    assert "interface eth0\n ip ospf network point-to-point\n" in config, "their eth1, without its address"
    assert "passive-interface eth1" in config and "network 192.168.11.0/24 area 0" in config
    assert "network 10.255.0.0/30 area 0" in config, "of a /31 became a subnet of the plan's"
    assert "ip address 10.10.10.1/32" in config
    assert [(r.to, r.via) for r in nodes["pc2"].routes] == [(("192.168.0.0/16",), ("192.168.12.1",))]
    left = "\n".join(network.left)
    for said in ("line 2: mgmt", "alpine", "one/daemons", "`touch /tmp/x` is not run"):
        assert said in left
    assert "node PC1 is pc1 here" in written.changed
    assert "pc2 has no route to 10.10.10.0/24: no subnet of the lab is there" in written.changed


def test_a_bridge_is_a_segment_and_addresses_on_it_stay(tmp_path: Path) -> None:
    file = tmp_path / "lan.clab.yml"
    file.write_text(
        """\
name: LAN
topology:
  kinds: {linux: {exec: [sysctl -w net.ipv4.ip_forward=1]}}
  nodes:
    br: {kind: bridge}
    a: {kind: linux, exec: ["ip address add 10.3.0.77/24 dev eth1"]}
    b: {kind: linux}
  links:
    - endpoints: ["a:eth1", "br:eth1"]
    - endpoints: ["br:eth2", "b:eth1"]
    - endpoints: ["a:eth2", "host:a2"]
    - {type: dummy, endpoint: {node: b, interface: eth9}}
"""
    )
    network = read(file)
    plan = planned(writing.write(network).text)
    assert plan.segments[0].name == "br" and plan.segments[0].subnet == "10.3.0.0/24"
    assert {n.name: n.interfaces[0].address for n in plan.nodes}["a"] == "10.3.0.77"
    assert all(node.forward for node in plan.nodes)
    assert sum("outside of the lab" in line or "type dummy" in line for line in network.left) == 2


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("kind: linux", "kind: nokia_srlinux", r':\d+: topology.nodes.R1.kind: the kind "nokia_srlinux"'),
        ('"R2:eth1"', '"R9:eth1"', r':19: topology.links\[0\]: names the node "R9"'),
        ('"two:/etc/frr"', '"gone:/etc/frr"', r":11: topology.nodes.R2: its configuration .* cannot be read"),
        ('["R1:eth1", "R2:eth1"]', '["R1:eth1"]', "a link has two endpoints"),
        ("topology:", "topologies:", "has no nodes"),
        ("nodes:", "nodes: [", "is not YAML"),
    ],
)
def test_what_cannot_be_taken_over_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    file = write(tmp_path)
    assert old in TOPOLOGY
    file.write_text(TOPOLOGY.replace(old, new, 1))
    with pytest.raises(TopologyError, match=said):
        read(file)


def test_a_plain_router_stands_for_a_vendors_system_where_that_is_asked_for(tmp_path: Path) -> None:
    file = write(tmp_path)
    file.write_text(
        file.read_text().replace("R2: {group: routers", "R2: {kind: nokia_srlinux, group: routers")
    )
    network = read(file, stand_ins=True)
    assert network.machines["r2"].forward and network.machines["r2"].kind is None
    assert any("its system (nokia_srlinux): a plain router stands for it" in line for line in network.left)
    assert {node.name for node in planned(writing.write(network).text).nodes} == {"r1", "r2", "pc1", "pc2"}


DUAL = """\
name: both
topology:
  nodes:
    br: {kind: bridge}
    a:
      kind: linux
      exec:
      - ip addr add 10.0.0.7/24 dev eth1
      - ip -6 addr add fd00:1::7/64 dev eth1
      - ip route add default via 10.0.0.254
      - ip -6 route add default via fd00:1::254
    r:
      kind: linux
      exec:
      - sysctl -w net.ipv4.ip_forward=1
      - ip addr add 10.0.0.254/24 dev eth1
      - ip addr add fd00:1::254/64 dev eth1
      - ip addr add 10.0.1.1/30 dev eth2
      - ip addr add fd00:2::1/64 dev eth2
    b:
      kind: linux
      exec:
      - ip addr add 10.0.1.2/30 dev eth1
      - ip addr add fd00:2::2/64 dev eth1
      - ip route add 10.0.0.0/24 via 10.0.1.1
      - ip route add fd00:1::/64 via fd00:2::1
  links:
  - endpoints: ["a:eth1", "br:eth1"]
  - endpoints: ["r:eth1", "br:eth2"]
  - endpoints: ["r:eth2", "b:eth1"]
"""


def test_a_file_of_two_families_loses_nothing(tmp_path: Path) -> None:
    file = tmp_path / "lan.clab.yml"
    file.write_text(DUAL)
    network = read(file)
    written = writing.write(network)
    assert not network.left and not written.changed and not written.problems
    plan = planned(written.text)
    own = {(node.name, card.name): card.addresses for node in plan.nodes for card in node.interfaces}
    assert own == {
        ("a", "eth0"): ("10.0.0.7", "fd00:1::7"),
        ("r", "eth0"): ("10.0.0.254", "fd00:1::254"),
        ("r", "eth1"): ("10.0.1.1", "fd00:2::1"),
        ("b", "eth0"): ("10.0.1.2", "fd00:2::2"),
    }
    routes = {
        (node.name, to, via) for node in plan.nodes for r in node.routes for to in r.to for via in r.via
    }
    assert routes == {
        ("a", "0.0.0.0/0", "10.0.0.254"), ("a", "::/0", "fd00:1::254"),
        ("b", "10.0.0.0/24", "10.0.1.1"), ("b", "fd00:1::/64", "fd00:2::1"),
    }  # fmt: skip


def test_a_subnet_of_ipv6_that_has_no_counterpart_is_told(tmp_path: Path) -> None:
    file = tmp_path / "lan.clab.yml"
    file.write_text(DUAL.replace("fd00:2::1/64", "fd00:2::0/127").replace("fd00:2::2/64", "fd00:2::1/127"))
    written = writing.write(read(file))
    assert any("fd00:2::/127 is too small for a subnet here" in line for line in written.changed)
    assert not written.problems
    (link,) = planned(written.text).links
    assert link.second_subnet == "fdff::/126"
