"""Tests that GNS3 projects become valid topologies, and that what cannot be converted is reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from contract.plan import Plan
from orchestrator.exchange import writing
from orchestrator.exchange.gns3 import read
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

STARTUP = {
    "pc1": "set pcname PC1\nip 10.5.0.7/24 10.5.0.1\nsave\n",
    "pc2": "ip 10.5.0.8 255.255.255.0 gw 10.5.0.1\nip dhcp\n",
}
INTERFACES = """\
auto eth0
iface eth0 inet static
    address 10.5.0.1
    netmask 255.255.255.0
    up ip route add 10.9.0.0/24 via 10.5.0.7
# auto eth1
iface eth1 inet dhcp
"""


def _node(ident: str, kind: str, **properties: Any) -> dict[str, Any]:
    return {"name": ident.upper(), "node_id": ident, "node_type": kind, "properties": properties}


def _link(first: str, second: str, **more: Any) -> dict[str, Any]:
    """Returns a link between two ends of the form NODE/ADAPTER/PORT."""
    ends = [
        dict(zip(("node_id", "adapter_number", "port_number"), end.split("/"), strict=True))
        for end in (first, second)
    ]
    return {"nodes": [{k: v if k == "node_id" else int(v) for k, v in end.items()} for end in ends], **more}


def _ports(*vlans: int, kind: str = "access") -> list[dict[str, Any]]:
    return [{"name": f"e{n}", "port_number": n, "type": kind, "vlan": vlan} for n, vlan in enumerate(vlans)]


def _project(**changes: Any) -> dict[str, Any]:
    nodes = [
        _node("pc1", "vpcs"),
        _node("pc2", "vpcs"),
        _node("box", "docker", image="alpine:3"),
        _node("sw", "ethernet_switch", ports_mapping=_ports(1, 1, 1, 1)),
        _node("net", "nat"),
    ]
    links = [
        _link("pc1/0/0", "sw/0/0", filters={"delay": [20, 2], "packet_loss": [5], "bpf": ["icmp"]}),
        _link("pc2/0/0", "sw/0/1"),
        _link("box/0/0", "sw/0/2"),
        _link("sw/0/3", "net/0/0"),
    ]
    topology = {"nodes": nodes, "links": links, "drawings": []}
    return {"name": "Office", "revision": 9, "type": "topology", "topology": topology} | changes


def _write(directory: Path, project: dict[str, Any]) -> Path:
    files = directory / "project-files"
    for ident, text in STARTUP.items():
        (files / "vpcs" / ident).mkdir(parents=True)
        (files / "vpcs" / ident / "startup.vpc").write_text(text)
    (files / "docker/box/etc/network").mkdir(parents=True)
    (files / "docker/box/etc/network/interfaces").write_text(INTERFACES)
    file = directory / "office.gns3"
    file.write_text(json.dumps(project, indent=4))
    return file


def _planned(file: Path, stand_ins: bool = False) -> tuple[Plan, str]:
    network = read(file, stand_ins)
    written = writing.write(network)
    said = "\n".join([*network.left, *written.changed])
    return make_plan(parse("imported.yaml", written.text.encode())), said


def test_virtual_pcs_a_container_and_a_switch(tmp_path: Path) -> None:
    plan, said = _planned(_write(tmp_path, _project()))
    assert plan.lab == "office"
    nodes = {node.name: node for node in plan.nodes}
    assert {name: node.interfaces[0].address for name, node in nodes.items()} == {
        "pc1": "10.5.0.7", "pc2": "10.5.0.8", "box": "10.5.0.1",
    }  # fmt: skip
    assert [(r.to, r.via) for r in nodes["pc2"].routes] == [(("0.0.0.0/0",), ("10.5.0.1",))]
    (link,) = plan.links
    assert link.forward.impairment == link.reverse.impairment
    assert (link.forward.impairment.delay_ns, link.forward.impairment.loss) == (20_000_000, 0.05)
    for one in (
        "PC2: `ip dhcp` is not done",
        "BOX: image alpine:3: a node has",
        "BOX: `iface eth1 inet dhcp` of its interfaces is not done",
        "NET: nat, which is outside of the lab",
        "a link to outside of the lab",
        "the packet filter bpf",
        "node PC1 is pc1 here",
    ):
        assert one in said


def test_vlans_of_a_switch_are_segments(tmp_path: Path) -> None:
    project = _project()
    project["topology"]["nodes"][3]["properties"]["ports_mapping"] = _ports(10, 10, 20, 20)
    project["topology"]["nodes"][4] = _node("pc3", "vpcs")
    project["topology"]["links"][3] = _link("sw/0/3", "pc3/0/0")
    file = _write(tmp_path, project)
    interfaces = tmp_path / "project-files/docker/box/etc/network/interfaces"
    interfaces.write_text("iface eth0 inet static\naddress 10.6.0.1/24\n")
    plan, said = _planned(file)
    assert {node.name: node.interfaces[0].segment for node in plan.nodes} == {
        "pc1": "sw", "pc2": "sw", "box": "sw-2", "pc3": "sw-2",
    }  # fmt: skip
    assert "VLAN 20 of SW is the segment sw-2 here" in said


def test_a_plain_router_stands_for_a_vendors_system_where_that_is_asked_for(tmp_path: Path) -> None:
    project = _project()
    project["topology"]["nodes"][2] = _node("box", "dynamips")
    file = _write(tmp_path, project)
    with pytest.raises(
        TopologyError, match=r"office.gns3:\d+: .*node_type: dynamips: BOX cannot be taken over"
    ):
        read(file)
    plan, said = _planned(file, stand_ins=True)
    assert [node.name for node in plan.nodes if node.forward] == ["box"]
    assert "BOX: its system (dynamips): a plain router stands for it" in said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"revision": 4}, r"office.gns3:\d+: revision: 4: is no revision that is known"),
        ({"revision": 99}, "revision: 99"),
        ({"topology": {}}, "has no machines"),
        ({"topology": [1]}, "has no machines"),
        ({"topology": {"nodes": [_node("s", "ethernet_hub", ports_mapping=[{"vlan": "x"}])]}}, "x: is no"),
        ({"topology": {"nodes": [_node("../x", "vpcs")]}}, r"node_id: ../x: is no id"),
        ({"topology": {"nodes": [_node("pc1", "vpcs")], "links": [_link("pc1/0/0", "no/0/0")]}}, "two nodes"),
        (
            {"topology": {"nodes": [_node("s", "ethernet_switch", ports_mapping=_ports(1, kind="dot1q"))]}},
            "a port of several VLANs",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_its_line(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(TopologyError, match=said):
        read(_write(tmp_path, _project(**change)))


def test_two_links_to_one_switch_are_refused(tmp_path: Path) -> None:
    project = _project()
    project["topology"]["links"][3] = _link("box/1/0", "sw/0/3")
    with pytest.raises(TopologyError, match=r"box \(sw\): has two interfaces on one network"):
        _planned(_write(tmp_path, project))
