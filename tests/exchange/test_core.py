"""Tests that CORE scenarios become valid topologies, and that what cannot be converted is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.exchange import subnets, writing
from orchestrator.exchange.core import read
from orchestrator.exchange.network import Lan, Machine, Network, Wire
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

ROUTER = '<services><service name="zebra"/><service name="OSPFv2"/><service name="IPForward"/></services>'
SCENARIO = f"""\
<?xml version='1.0' encoding='UTF-8'?>
<scenario name="/tmp/two">
  <networks>
    <network id="4" name="hub 1" type="HUB"><position x="1" y="2"/></network>
    <network id="5" name="air" type="WIRELESS_LAN"/>
    <network id="6" name="card" type="RJ45"/>
  </networks>
  <devices>
    <device id="1" name="N1" type="router" class="" image="">{ROUTER}</device>
    <device id="2" name="n2" type="router" class="" image="">{ROUTER}</device>
    <device id="3" name="n3" type="PC" class="docker" image="alpine">
      <configservices><service name="DefaultRoute"/><service name="SSH"/></configservices>
    </device>
    <device id="7" name="n7" type="PC"/>
    <device id="8" name="n8" type="PC"/>
  </devices>
  <links>
    <link node1="1" node2="2">
      <iface1 id="0" name="eth0" ip4="10.0.0.1" ip4_mask="24" ip6="2001::1" ip6_mask="64"/>
      <iface2 id="0" name="eth0" ip4="10.0.0.2" ip4_mask="24"/>
      <options delay="25000" bandwidth="1000000" loss="0.5" dup="0" jitter="0" burst="9" unidirectional="1"/>
    </link>
    <link node1="2" node2="1">
      <iface1 id="0" name="eth0"/>
      <iface2 id="0" name="eth0"/>
      <options delay="5000" bandwidth="0" loss="0.0" unidirectional="1" buffer="50"/>
    </link>
    <link node1="4" node2="2">
      <iface2 id="1" name="eth1" ip4="10.0.1.1" ip4_mask="24"/><options delay="0"/>
    </link>
    <link node1="3" node2="4"><iface1 id="0" name="eth0" ip4="10.0.1.20" ip4_mask="24"/></link>
    <link node1="5" node2="1"><iface2 id="1" name="eth1" ip4="10.0.2.1" ip4_mask="32"/></link>
    <link node1="5" node2="7"><iface2 id="0" name="eth0" ip4="10.0.2.7" ip4_mask="32"/></link>
    <link node1="6" node2="8"><iface2 id="0" name="eth0" ip4="10.0.3.8" ip4_mask="24"/></link>
  </links>
  <hooks><hook name="runtime.sh" state="4">touch /tmp/x</hook></hooks>
</scenario>
"""


def _read(tmp_path: Path, text: str) -> tuple[str, str]:
    """Returns the topology's text, and all messages of the import."""
    file = tmp_path / "Two.xml"
    file.write_text(text)
    network = read(file)
    written = writing.write(network)
    return written.text, "\n".join([*network.left, *written.changed])


def test_routers_networks_and_both_directions_of_a_link(tmp_path: Path) -> None:
    text, said = _read(tmp_path, SCENARIO)
    plan = make_plan(parse("imported.yaml", text.encode()))
    nodes = {node.name: node for node in plan.nodes}
    assert sorted(nodes) == ["n1", "n2", "n3", "n7"]
    assert nodes["n1"].forward and not nodes["n3"].forward
    assert [s.kind for s in nodes["n1"].software] == ["frr"], "all routers speak OSPF"
    (link,) = plan.links
    assert (link.forward.impairment.delay_ns, link.reverse.impairment.delay_ns) == (25_000_000, 5_000_000)
    assert link.forward.impairment.rate_bps == 1_000_000 and link.forward.impairment.loss == 0.005
    assert link.reverse.impairment.rate_bps == 0 and link.reverse.impairment.limit_packets == 50
    assert {s.name: s.subnet for s in plan.segments}["hub-1"] == "10.0.1.0/24"
    for one in (
        "line 6: card: RJ45, which is outside",
        "line 5: air is a wired network",
        "line 11: n3: the service SSH",
        "line 11: n3: image alpine",
        "line 21: burst of a link",
        "line 36: hook runtime.sh 4: no counterpart",
        "node N1 is n1 here",
        "n1-n2: n2: has an address of 2001::/64 here, too",
        "n8 is on no network of the lab: left out",
    ):
        assert one in said


def test_a_lab_of_which_some_routers_speak_no_ospf_has_the_plans_routes(tmp_path: Path) -> None:
    text, said = _read(tmp_path, SCENARIO.replace('"OSPFv2"', '"OSPFv3"', 1))
    plan = make_plan(parse("imported.yaml", text.encode()))
    assert not any(node.software for node in plan.nodes)
    assert "OSPFv2: n1 does not speak it" in said and "line 9: N1: the service OSPFv3" in said
    assert any("10.0.1.0/24" in r.to for n in plan.nodes if n.name == "n1" for r in n.routes)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"HUB"', '"EMANE"', r"Two.xml:4: EMANE: is a kind of network that cannot be taken over"),
        ('node1="4" node2="2"', 'node1="4" node2="9"', r"Two.xml:28: 4 and 9: does not join two nodes"),
        ('"10.0.1.20"', '"10.0.1.x"', r"Two.xml:31: 10.0.1.x/24: is no address"),
        ('delay="25000"', 'delay="soon"', r"Two.xml:21: delay=soon: is no number from 0 on"),
        ('delay="25000"', 'delay="nan"', r"Two.xml:21: delay=nan: is no number from 0 on"),
        ('loss="0.5"', 'loss="-1"', r"Two.xml:21: loss=-1: is no number from 0 on"),
        ('device id="8"', 'device id="7"', r"Two.xml:15: 7: has an id that another has"),
        ("scenario", "scen", r"Two.xml:2: <scen>: is no scenario"),
        ("</devices>", "", r"Two.xml:\d+: is not XML"),
        ("<scenario", "<!DOCTYPE a [<!ENTITY b 'c'>]>\n<scenario", r"Two.xml:2: declares a document type"),
        ("UTF-8", "no-such", r"Two.xml:\d+: is not XML|cannot be read"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(TopologyError, match=said):
        _read(tmp_path, SCENARIO.replace(old, new))


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"<a>" * 100], ids=["empty", "bytes", "deep"])
def test_any_bytes_are_read_or_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "any.xml"
    file.write_bytes(content)
    with pytest.raises(TopologyError, match=r"any\.xml"):
        read(file)


def _hosts(*names: str) -> dict[str, Machine]:
    return {name: Machine(name) for name in names}


def test_a_network_without_addresses_gets_a_subnet_that_no_other_part_uses() -> None:
    """Shows that networks without addresses skip the subnet that the wire between x and y uses."""
    network = Network("mixed", "a tool", _hosts("a", "b", "c", "d", "x", "y"))
    network.machines["x"].addresses = {"eth0": ["10.200.3.1/24"]}
    network.machines["y"].addresses = {"eth0": ["10.200.3.2/24"]}
    network.lans = {
        "s1": Lan("s1", [("a", "eth0"), ("b", "eth0")]),
        "s2": Lan("s2", [("c", "eth0"), ("d", "eth0")]),
    }
    network.wires = [Wire((("x", "eth0"), ("y", "eth0")))]
    written = writing.write(network)
    assert not written.problems, written.problems
    made = make_plan(parse("mixed.yaml", written.text.encode()))
    assert {s.name: s.subnet for s in made.segments} == {"s1": "10.201.0.0/16", "s2": "10.202.0.0/16"}


def test_more_networks_than_free_subnets_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subnets, "_free", lambda taken: iter(()))
    network = Network("full", "a tool", _hosts("a", "b"))
    network.lans = {"s1": Lan("s1", [("a", "eth0"), ("b", "eth0")])}
    with pytest.raises(TopologyError, match=r"a tool: s1: no subnet from 10\.200\.0\.0 on is free"):
        writing.write(network)
