"""Tests constructs of the manuals of CORE, GNS3, Docker Compose, Mahimahi and GraphML, and forms of files
that give machines their addresses.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.exchange import compose, core, gns3, mahimahi
from orchestrator.exchange.commands import interfaces_file, virtual_pc
from orchestrator.exchange.network import Machine, Network
from orchestrator.topology import TopologyError
from orchestrator.topology.graphml import left_out, topology_text


@pytest.mark.parametrize(
    ("kind", "services", "forward"),
    [
        ("router", "", True), ("mdr", "", True), ("PC", "", False), ("host", "", False),
        ("prouter", "", False), ("router", "<services/>", True),
        ("router", '<services><service name="DefaultRoute"/></services>', False),
    ],
)  # fmt: skip
def test_a_device_of_core_without_services_has_those_of_its_type(
    kind: str, services: str, forward: bool, tmp_path: Path
) -> None:
    (tmp_path / "x.xml").write_text(
        f'<scenario><devices>\n<device id="1" name="a" type="{kind}">{services}</device>\n'
        '<device id="2" name="b"/></devices><links><link node1="1" node2="2"/></links></scenario>'
    )
    network = core.read(tmp_path / "x.xml")
    assert network.machines["a"].forward is forward
    given = {"PC", "host", "router", "mdr"} if "DefaultRoute" not in services else set()
    assert any("those of its type" in one for one in network.changed) == (kind in given)


def test_options_of_a_wireless_network_of_core_and_servers_are_named(tmp_path: Path) -> None:
    (tmp_path / "x.xml").write_text(
        '<scenario><networks><network id="3" name="air" type="WIRELESS" server="far">\n<wireless>\n'
        '<configuration name="bandwidth" value="54000000"/></wireless></network></networks><devices>\n'
        '<device id="1" name="a" server="near" compose="c.yml"/></devices>'
        '<links><link node1="1" node2="3"><iface1 id="0"/></link></links></scenario>'
    )
    said = core.read(tmp_path / "x.xml").left
    assert "line 3: air: bandwidth = 54000000: no counterpart" in said
    assert sum(word in one for one in said for word in ("server far", "server near", "compose c.yml")) == 3


@pytest.mark.parametrize(
    ("text", "addresses", "routes"),
    [
        ("ip 10.0.0.1/24 10.0.0.9", ["10.0.0.1/24"], ["10.0.0.9"]),
        ("ip 10.0.0.1 10.0.0.9 26", ["10.0.0.1/26"], ["10.0.0.9"]),
        ("ip 10.0.0.1 /26 10.0.0.9", ["10.0.0.1/26"], ["10.0.0.9"]),
        ("ip 10.0.0.1/26 10.0.0.9 set", ["10.0.0.1/26"], ["10.0.0.9"]),
        ("ip 10.0.0.1", ["10.0.0.1/24"], []),
        ("ip 10.0.0.1/24 10.0.0.9\nip 10.0.0.2/24", ["10.0.0.2/24"], []),
        ("ip 2001::1", ["2001::1/64"], []),
        ("ip 10.0.0.1/24\nip 2001::1/64", ["10.0.0.1/24", "2001::1/64"], []),
    ],
)
def test_lines_of_a_virtual_pc(text: str, addresses: list[str], routes: list[str]) -> None:
    machine = Machine("pc")
    assert not list(virtual_pc(machine, text))
    assert machine.addresses == {"eth0": addresses} and [one.via for one in machine.routes] == routes


STANZA = "iface eth0 inet static\n address 10.0.0.1/24\n mtu 1300\n"


def test_an_interface_that_nothing_starts_is_named() -> None:
    machine = Machine("a")
    assert list(interfaces_file(machine, STANZA)) == ["iface eth0 inet static: nothing starts it"]
    assert not machine.addresses


@pytest.mark.parametrize(
    ("text", "only"),
    [(f"auto lo eth0\n{STANZA}", ()), (f"allow-hotplug eth0\n{STANZA}", ()), (STANZA, ("eth0",)),
     (f"auto eth0\n{STANZA}".replace("static\n", "static \\\n\n"), ())],
)  # fmt: skip
def test_an_interface_that_is_started_has_its_address(text: str, only: tuple[str, ...]) -> None:
    machine = Machine("a")
    assert not list(interfaces_file(machine, text, only))
    assert machine.addresses == {"eth0": ["10.0.0.1/24"]} and machine.mtus == {"eth0": 1300}


def shells(tmp_path: Path, text: str) -> Network:
    (tmp_path / "x.sh").write_text(text + "\n")
    return mahimahi.read(tmp_path / "x.sh")


@pytest.mark.parametrize(
    "text",
    [
        "mm-link up down --uplink-queue=droptail --uplink-queue-args=packets=9",
        "mm-link --uplink-queue droptail --uplink-queue-args packets=9 up down",
        "mm-link up --uplink-queue-a packets=9 down",
        "mm-link -u log up down --uplink-queue-args packets=9 -dlog curl x",
        "mm-link up down curl --uplink-queue-args packets=9 x",
    ],
)
def test_options_of_mm_link_as_getopt_reads_them(text: str, tmp_path: Path) -> None:
    network = shells(tmp_path, text)
    side = network.wires[0].impairments["forward"]
    assert side["limit"] == 9 and side["trace"]["file"] == str(tmp_path / "up")
    assert network.wires[0].impairments["reverse"]["trace"]["file"] == str(tmp_path / "down")
    assert any("queue of the downlink has no end" in one for one in network.changed)


@pytest.mark.parametrize("text", ["mm-link a b curl -k x", "mm-link a b --uplink x", "mm-link a b --log"])
def test_an_option_that_mm_link_has_not_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=r"x.sh:1: .*is no option of mm-link"):
        shells(tmp_path, text)


def test_options_after_two_dashes_are_the_programs(tmp_path: Path) -> None:
    assert any("curl -k --once" in one for one in shells(tmp_path, "mm-link up down -- curl -k --once").left)


def test_intermittent_shells_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match="mm-intermittent cannot be taken over"):
        shells(tmp_path, "mm-intermittent uplink 1 2 mm-delay 5")


def test_forms_of_compose_that_do_not_change_the_network_are_named(tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").write_text(
        "services:\n  a: {env_file: [{path: gone.env, required: false}]}\n"
        "networks: {default: {ipam: {driver: other, options: {a: b}, config: [{subnet: 10.3.0.0/24}]}}}\n"
    )
    network = compose.read(tmp_path / "compose.yaml")
    said = "\n".join(network.left)
    assert "ipam.driver" in said and "ipam.options" in said


def test_adapters_of_a_container_of_gns3_are_named(tmp_path: Path) -> None:
    node = {"name": "a", "node_id": "1", "node_type": "docker", "properties": {"custom_adapters": [{"x": 1}]}}
    other = {"name": "b", "node_id": "2", "node_type": "vpcs", "properties": {}}
    ends = [{"node_id": one, "adapter_number": 0, "port_number": 0} for one in "12"]
    project = {"revision": 9, "topology": {"nodes": [node, other], "links": [{"nodes": ends}]}}
    (tmp_path / "x.gns3").write_text(json.dumps(project))
    assert any("custom_adapters" in one for one in gns3.read(tmp_path / "x.gns3").left)


GRAPH = """\
<g:graphml xmlns:g="http://graphml.graphdrawing.org/xmlns">
<g:key attr.name="LinkSpeedRaw" for="edge" id="r"><g:default>5000000</g:default></g:key>
<g:graph edgedefault="undirected"><g:node id="a"/><g:node id="b"/><g:node id="c"/>
<g:edge source="a" target="b" directed="true"/>
<g:edge source="b" target="c" sourceport="p"><g:data key="r">7000000</g:data></g:edge>
</g:graph></g:graphml>
"""


def test_defaults_prefixes_and_directions_of_graphml() -> None:
    text = topology_text("x", GRAPH.encode(), "x")
    assert "rate: 5000000 bit/s" in text and "rate: 7000000 bit/s" in text
    assert left_out("x", GRAPH.encode()) == [
        "the direction of 1 edges: each is a link both ways", "the ports of 1 edges",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('<g:node id="c"/>', '<g:node id="c"/><g:node id="c"/>', r"x:3: has a second node of the id"),
        ('<g:node id="c"/>', '<g:node id="c"><g:graph/></g:node>', r"x:3: has a graph more"),
        ("<g:graphml", "<!DOCTYPE a><g:graphml", r"x:1: declares a document type"),
        ('<g:node id="c"/>', "<g:node>" * 70 + "</g:node>" * 70, r"more than 64 nested"),
        ('<g:node id="c"/>', "".join(f'<g:node id="n{n}"/>' for n in range(5000)), r"more than 4000"),
    ],
)
def test_graphs_that_are_refused(old: str, new: str, said: str) -> None:
    with pytest.raises(TopologyError, match=said):
        topology_text("x", GRAPH.replace(old, new).encode(), "x")
