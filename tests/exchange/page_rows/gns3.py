"""Holds the cases of the section on GNS3's projects."""

# ruff: noqa: E501
from __future__ import annotations

import json

from orchestrator.exchange import gns3

from . import Tool, both, imported, network, refused, said, silent


def end(node: str, adapter: int = 0, port: int = 0) -> dict[str, object]:
    return {"node_id": node, "adapter_number": adapter, "port_number": port}


PROJECT = json.dumps({
    "name": "office", "revision": 9, "topology": {
        "nodes": [
            {"name": "pc1", "node_id": "pc1", "node_type": "vpcs", "properties": {}},
            {"name": "pc2", "node_id": "pc2", "node_type": "vpcs", "properties": {"startup_script": "ip 10.5.0.8/24"}},
            {"name": "box", "node_id": "box", "node_type": "docker", "properties": {"image": "", "memory": 0, "cpus": 0, "start_command": ""}},
            {"name": "rt", "node_id": "rt", "node_type": "docker", "properties": {"image": "frrouting/frr:9"}},
            {"name": "sw", "node_id": "sw", "node_type": "ethernet_switch", "properties": {"ports_mapping": [
                {"port_number": number, "type": "access", "vlan": 4} for number in range(5)]}},
        ],
        "links": [
            {"nodes": [end("pc1"), end("sw")], "filters": {"delay": [20, 2]}},
            {"nodes": [end("pc2"), end("sw", 0, 1)], "suspend": False},
            {"nodes": [end("box"), end("sw", 0, 2)]},
            {"nodes": [end("rt"), end("sw", 0, 3)]},
            {"nodes": [end("box", 1), end("rt", 1)]},
        ],
        "drawings": [],
    },
}, indent=1)  # fmt: skip
INTERFACES = "auto eth0\niface eth0 inet static\n address 10.5.0.9\n netmask 255.255.255.0\n"
FRR = "interface eth0\n ip address 10.5.0.1/24\nrouter ospf\n network 10.5.0.0/24 area 0\n"
PC, BOX, ROUTER = (
    "project-files/vpcs/pc1/startup.vpc",
    "project-files/docker/box/etc/network/interfaces",
    "project-files/docker/rt/etc/frr/frr.conf",
)
FILES = {"x.gns3": PROJECT, PC: "ip 10.5.0.7/24 10.5.0.1\n#pc\n", BOX: INTERFACES, ROUTER: FRR}
CARDS = '"image": ""'
FILTERS = PROJECT[PROJECT.index('"delay": [') : PROJECT.index("]", PROJECT.index('"delay": [')) + 1]


def kind(word: str) -> tuple[str, str]:
    return '"node_type": "vpcs",\n     "properties": {}', f'"node_type": "{word}",\n     "properties": {{}}'


PC1 = PROJECT[
    PROJECT.index('"node_type": "vpcs"') : PROJECT.index("{}", PROJECT.index('"node_type": "vpcs"')) + 2
]
PORT = PROJECT[PROJECT.index('"port_number": 4') : PROJECT.index("}", PROJECT.index('"port_number": 4'))]
MORE = '"drawings": []'
ROWS = {
    "`vpcs` with its `startup.vpc`": [
        network("10.5.0.7/24", "10.5.0.6/24", file=PC), network("24 10.5.0.1", "24 10.5.0.9", file=PC), network("#pc", "ip 10.5.0.17/24", "ip 10.5.0.18/24", PC),
        said("#pc", "ping 10.5.0.1", file=PC), network("ip 10.5.0.8/24", "ip 10.5.0.8/25"),
        network(PC1, PC1.replace("vpcs", "docker")),
    ],
    "`docker`, with the interfaces": [
        network("10.5.0.9", "10.5.0.5", file=BOX), network("auto eth0", "auto eth1", file=BOX), network("area 0", "area 1", file=ROUTER),
        network('"start_command": ""', '"start_command": "sh -c \'ip addr add 10.8.0.1/24 dev eth1\'"'),
        network("netmask 255.255.255.0", "netmask 255.255.255.128", file=BOX),
        said("frrouting/frr:9", "frrouting/frr:9\", \"environment\": \"etc/network/interfaces"),
        said("iface eth0 inet static", "iface eth1 inet dhcp\niface eth0 inet static", file=BOX), network("frrouting/frr:9", "alpine"),
    ],
    "`ethernet_switch`, `ethernet_hub`": [
        both(PORT, PORT.replace('"vlan": 4', '"vlan": 5')), silent('"ethernet_switch"', '"ethernet_hub"'),
    ],
    "`cpus`, `memory`": [network('"cpus": 0', '"cpus": 0.5'), network('"memory": 0', '"memory": 65'), said('"memory": 0', '"memory": "much"')],
    "link's packet filters `delay`": [
        network(FILTERS, '"delay": [21, 2]'), network(FILTERS, '"delay": [20, 3]'), network(FILTERS, '"packet_loss": [5]', '"packet_loss": [6]'),
        network(FILTERS, '"corrupt": [5]', '"corrupt": [6]'),
    ],
    "`environment`, `extra_hosts`": [
        *(said(CARDS, f'{CARDS}, "{key}": {value}') for key, value in (
            ("environment", '"A=1"'), ("extra_hosts", '"www:10.5.0.7"'), ("extra_volumes", '["/data"]'), ("mac_address", '"02:00:00:00:00:09"'),
            ("custom_adapters", '[{"x": 1}]'))),
        said('"revision": 9', '"revision": 9, "variables": [{"name": "A", "value": "1"}]'), said('"suspend": false', '"suspend": false, "x": 1'),
        said('"node_id": "pc1",', '"node_id": "pc1", "zz": 1,'), said(FILTERS, f'{FILTERS}, "bpf": ["icmp"]'), said(FILTERS, f'{FILTERS}, "frequency_drop": [9]'), silent(MORE, '"drawings": [{"svg": "x"}]'),
        network('"suspend": false', '"suspend": true'), network(PC1, PC1.replace("vpcs", "cloud")), network(PC1, PC1.replace("vpcs", "nat")),
    ],
    "`dynamips`, `iou`": [
        *(refused(PC1, PC1.replace("vpcs", word)) for word in ("dynamips", "iou", "qemu", "virtualbox", "vmware", "traceng", "frame_relay_switch")),
        refused('"type": "access"', '"type": "dot1q"'), refused('"revision": 9', '"revision": 4'),
    ],
}  # fmt: skip
TOOL = Tool("GNS3's projects", FILES, "x.gns3", imported(gns3.read), ROWS)
