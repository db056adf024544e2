"""Tests that a changed value in a lab of Kathará, a scenario of CORE, a project of GNS3 or a graph in GraphML
changes the import's result or its messages.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kathara_lab import write as write_lab

from orchestrator.exchange import core, gns3, kathara, mininet, writing
from orchestrator.exchange.daemons import DAEMONS
from orchestrator.exchange.network import Network
from orchestrator.topology import TopologyError
from orchestrator.topology.graphml import topology_text

CORE = """\
<scenario name="two">
  <networks>
    <network id="4" name="hub" type="HUB" model="x"/>
    <network id="6" name="card" type="RJ45"/>
  </networks>
  <devices>
    <device id="1" name="n1" type="router" canvas="1"><services><service name="IPForward"/></services></device>
    <device id="2" name="n2" type="router"><services><service name="OSPFv2"/><service name="SSH"/></services></device>
    <device id="3" name="n3" type="PC" class="docker" image="alpine"/>
  </devices>
  <links>
    <link node1="1" node2="2">
      <iface1 id="0" name="eth0" mac="00:00:00:aa:00:01" ip4="10.0.0.1" ip4_mask="24" ip6="2001::1" ip6_mask="64"/>
      <iface2 id="0" name="eth0" ip4="10.0.0.2" ip4_mask="24"/>
      <options delay="25000" bandwidth="1000000" loss="0.5" dup="2" jitter="3" burst="9" mer="8" mburst="7" buffer="50"/>
    </link>
    <link node1="4" node2="2">
      <iface2 id="1" name="eth1" ip4="10.0.1.1" ip4_mask="24"/><options delay="7000" unidirectional="1" key="1"/>
    </link>
    <link node1="4" node2="3"><iface2 id="0" name="eth0" ip4="10.0.1.20" ip4_mask="24"/></link>
    <link node1="6" node2="3"/>
  </links>
  <hooks><hook name="runtime.sh" state="4">touch /tmp/x</hook></hooks>
  <mobility_configurations>
    <mobility_configuration node="4" model="ns2script"><configuration name="file" value="walk.scen"/></mobility_configuration>
  </mobility_configurations>
  <emane_configurations><emane_configuration node="4" model="rfpipe"/></emane_configurations>
  <session_options><configuration name="controlnet" value=""/></session_options>
</scenario>
"""
GNS3 = json.dumps(
    {
        "name": "office", "revision": 9, "topology": {
            "nodes": [
                {"name": "pc1", "node_id": "pc1", "node_type": "vpcs", "properties": {
                    "startup_script": "ip 10.5.0.7/24 10.5.0.1\nping 10.5.0.9"}},
                {"name": "pc2", "node_id": "pc2", "node_type": "vpcs", "properties": {
                    "startup_script": "ip 10.5.0.8 255.255.255.0"}},
                {"name": "box", "node_id": "box", "node_type": "docker", "properties": {
                    "image": "alpine:3", "start_command": "sh -c 'ip addr add 10.5.0.9/24 dev eth0'",
                    "environment": "A=51", "cpus": 0.5, "memory": 64, "extra_hosts": "www:10.5.0.7",
                    "extra_volumes": ["/data"], "mac_address": "02:00:00:00:00:09", "adapters": 2}},
                {"name": "sw", "node_id": "sw", "node_type": "ethernet_switch", "properties": {"ports_mapping": [
                    {"port_number": number, "type": "access", "vlan": 4} for number in range(3)]}},
                {"name": "out", "node_id": "out", "node_type": "cloud", "properties": {}},
            ],
            "links": [
                {"nodes": [{"node_id": "pc1", "adapter_number": 0, "port_number": 0},
                           {"node_id": "sw", "adapter_number": 0, "port_number": 0}],
                 "filters": {"delay": [20, 2], "packet_loss": [5], "corrupt": [3], "bpf": ["icmp"], "frequency_drop": [9]}},
                {"nodes": [{"node_id": "pc2", "adapter_number": 0, "port_number": 0},
                           {"node_id": "sw", "adapter_number": 0, "port_number": 1}], "suspend": False},
                {"nodes": [{"node_id": "box", "adapter_number": 0, "port_number": 0},
                           {"node_id": "sw", "adapter_number": 0, "port_number": 2}]},
            ],
        },
    }
)  # fmt: skip
GRAPHML = """\
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="label" for="node" id="d0"/><key attr.name="Latitude" for="node" id="d1"/>
  <key attr.name="Longitude" for="node" id="d2"/><key attr.name="LinkSpeedRaw" for="edge" id="d3"/>
  <graph>
    <node id="0"><data key="d0">Rome</data><data key="d1">41.9</data><data key="d2">12.5</data></node>
    <node id="1"><data key="d0">Bonn</data><data key="d1">50.7</data><data key="d2">7.1</data></node>
    <node id="2"><data key="d0">Oslo</data></node>
    <edge source="0" target="1"><data key="d3">1000000</data></edge>
    <edge source="1" target="2"/>
  </graph>
</graphml>
"""
# ruff: noqa: E501
# For each construct: what stands in the file, and another value.
CORE_CHANGES = [
    ('type="HUB"', 'type="WIRELESS_LAN"'), ('name="hub"', 'name="switch"'), ('type="RJ45"', 'type="SWITCH"'),
    ('name="IPForward"', 'name="DHCP"'), ('name="OSPFv2"', 'name="BGP"'), ('name="SSH"', 'name="FTP"'),
    ('image="alpine"', 'image="debian"'), ('name="n1"', 'name="n9"'),
    ('ip4="10.0.0.1"', 'ip4="10.0.0.3"'), ('ip4_mask="24" ip6', 'ip4_mask="25" ip6'), ("2001::1", "2001::2"),
    ('"25000"', '"26000"'), ('"1000000"', '"2000000"'), ('loss="0.5"', 'loss="0.6"'), ('dup="2"', 'dup="3"'),
    ('jitter="3"', 'jitter="4"'), ('burst="9"', 'burst="0"'), ('mer="8"', 'mer="0"'),
    ('mburst="7"', 'mburst="0"'), ('buffer="50"', 'buffer="51"'), ('"7000"', '"7001"'),
    ('unidirectional="1"', 'unidirectional="0"'), ('node1="4" node2="3"', 'node1="1" node2="3"'),
    ('"10.0.1.20"', '"10.0.1.21"'), ("runtime.sh", "boot.sh"), ("walk.scen", "run.scen"), ("ns2script", "other"),
    ("rfpipe", "ieee80211abg"), ('mac="00:00:00:aa:00:01"', 'mac="00:00:00:aa:00:02"'),
    ('name="controlnet" value=""', 'name="controlnet" value="172.16.0.0/24"'),
]  # fmt: skip
GNS3_CHANGES = [
    ("10.5.0.7/24", "10.5.0.6/24"), ("24 10.5.0.1", "24 10.5.0.3"), ("ping 10.5.0.9", "ping 10.5.0.1"),
    ("255.255.255.0", "255.255.255.128"), ("alpine:3", "alpine:4"), ("add 10.5.0.9", "add 10.5.0.5"),
    ("A=51", ""), ('"cpus": 0.5', '"cpus": 0.25'), ('"memory": 64', '"memory": 65'),
    ('"cpus": 0.5', '"cpus": "half"'), ('"memory": 64', '"memory": true'),
    ("www:10.5.0.7", "ftp:10.5.0.7"), ("/data", "/more"), ("02:00:00:00:00:09", "02:00:00:00:00:0a"),
    ('"port_number": 2, "type": "access", "vlan": 4', '"port_number": 2, "type": "access", "vlan": 5'), ("[20, 2]", "[21, 2]"), ("[20, 2]", "[20, 3]"), ('"packet_loss": [5]', '"packet_loss": [6]'),
    ('"corrupt": [3]', '"corrupt": [4]'), ("icmp", "udp"), ('"frequency_drop": [9]', '"frequency_drop": [8]'),
    ('"suspend": false', '"suspend": true'), ('"cloud"', '"nat"'), ('"name": "office"', '"name": "home"'),
]  # fmt: skip
GRAPHML_CHANGES = [
    ("Rome", "Pisa"), ("41.9", "40.9"), ("12.5", "13.5"), ("1000000", "2000000"),
    ('source="1" target="2"', 'source="0" target="2"'),
]  # fmt: skip
# The file in the lab, a text in the file, and another value.
KATHARA_CHANGES = [
    ("lab.conf", 'r1[0]="A"', 'r1[0]="D"'), ("lab.conf", "kathara/quagga", "kathara/frr"),
    ("lab.conf", "02:00:00:00:00:22", "02:00:00:00:00:23"), ("lab.conf", "tcp_syncookies=1", "tcp_syncookies=0"),
    ("lab.conf", "bridged]=true", "bridged]=false"), ("lab.conf", 'pc3[0]="C"', 'pc3[0]="B"'),
    ("r1.startup", "10.0.0.1/30", "10.0.0.1/29"), ("r1.startup", "start quagga", "stop quagga"),
    ("r2.startup", "10.99.0.2", "10.99.0.3"), ("PC1.startup", "10.1.0.2", "10.1.0.3"),
    ("PC1.startup", "via 10.1.0.1", "via 10.1.0.4"), ("PC1.startup", "20ms", "21ms"), ("PC1.startup", "1ms", "2ms"),
    ("PC1.startup", "0.5%", "0.6%"), ("PC1.startup", "apache2", "bind9"), ("pc2.startup", "10.2.0.77", "10.2.0.76"),
    ("pc3.startup", "-net 10.1.0.0", "-net 10.7.0.0"), ("r1/etc/quagga/ospfd.conf", "10.0.0.0/8", "10.0.0.0/9"),
    ("r1/etc/quagga/ospfd.conf", "connected", "static"), ("r1/etc/quagga/zebra.conf", "hostname zebra", "hostname z"),
]  # fmt: skip


def _told(read: Callable[[], Network]) -> str:
    """Returns everything that the user gets: the topology and the lists of messages, or the error."""
    try:
        network = read()
        written = writing.write(network, "out.yaml")
    except TopologyError as error:
        return f"refused: {error}"
    return "\n".join([written.text, *network.left, *written.changed, *map(str, written.problems)])


def _checked(text: str, tell: Callable[[str], str], changes: list[tuple[str, str]]) -> None:
    before = tell(text)
    assert not before.startswith("refused"), before
    assert all(old in text for old, _ in changes)
    silent = [change for change in changes if tell(text.replace(*change)) == before]
    assert not silent, silent


def test_changes_of_a_scenario_of_core(tmp_path: Path) -> None:
    file = tmp_path / "x.xml"

    def tell(text: str) -> str:
        file.write_text(text)
        return _told(lambda: core.read(file))

    _checked(CORE, tell, CORE_CHANGES)


def test_changes_of_a_project_of_gns3(tmp_path: Path) -> None:
    file = tmp_path / "x.gns3"

    def tell(text: str) -> str:
        file.write_text(text)
        return _told(lambda: gns3.read(file))

    _checked(GNS3, tell, GNS3_CHANGES)


def test_changes_of_a_graph() -> None:
    _checked(GRAPHML, lambda text: topology_text("x.graphml", text.encode(), "x"), GRAPHML_CHANGES)


@pytest.mark.parametrize(("name", "old", "new"), KATHARA_CHANGES)
def test_changes_of_a_lab_of_kathara(name: str, old: str, new: str, tmp_path: Path) -> None:
    lab = write_lab(tmp_path)
    before = _told(lambda: kathara.read(lab))
    assert not before.startswith("refused"), before
    text = (lab / name).read_text()
    assert old in text
    (lab / name).write_text(text.replace(old, new))
    assert _told(lambda: kathara.read(lab)) != before


LINK = """\
from mininet.net import Mininet
from mininet.link import TCLink
net = Mininet(link=TCLink)
h1, h2 = net.addHost('h1'), net.addHost('h2')
link = net.addLink(h1, h2, bw=10, delay='5ms')
"""


@pytest.mark.parametrize(
    ("line", "forward"),
    [
        ("h1.cmd('tc qdisc del dev h1-eth0 root')", {}),
        ("h1.cmd('tc qdisc replace dev h1-eth0 root netem loss 3%')", {"loss": "3 %"}),
        ("h1.cmd('tc qdisc add dev h1-eth0 root netem loss 3%')", {"rate": "10 Mbit/s", "delay": "5 ms"}),
        ("h1.cmd('tc qdisc change dev h1-eth0 root netem loss 3%')", {"rate": "10 Mbit/s", "delay": "5 ms"}),
        ("link.intf1.config(bw=1)", {"rate": "1 Mbit/s"}),
        ("link.intf1.config(jitter='1ms')", {"rate": "10 Mbit/s", "delay": "5 ms"}),
        ("h1.cmd('tc qdisc del dev h1-eth0 root'); link.intf1.config(loss=2)", {"loss": "2 %"}),
        ("link.intf1.config(loss=2); h1.cmd('tc qdisc del dev h1-eth0 root')", {}),
        ("link.delete(); net.addLink(h1, h2, delay='7ms')", {"delay": "7 ms"}),
    ],
)
def test_the_last_command_on_a_shaped_link_of_mininet_counts(
    line: str, forward: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "x.py").write_text(f"{LINK}{line}\n")
    (wire,) = mininet.read(tmp_path / "x.py").wires
    given = wire.impairments
    assert given.get("forward", given.get("both", {})) == forward


@pytest.mark.parametrize(
    ("command", "starts"),
    [
        ("systemctl start frr", True), ("systemctl restart frr.service", True), ("systemctl enable --now frr", True),
        ("service quagga start", True), ("systemctl stop frr", False), ("systemctl disable frr", False),
        ("systemctl status zebra", False), ("service frr stop", False), ("systemctl enable frr", False),
    ],
)  # fmt: skip
def test_what_starts_a_routing_daemon(command: str, starts: bool) -> None:
    assert DAEMONS.starts(command) is starts
