"""Writes a containerlab topology: two routers with OSPF and two hosts."""

from __future__ import annotations

from pathlib import Path

TOPOLOGY = """\
name: two-routers
mgmt: {network: none}
topology:
  defaults: {kind: linux}
  groups:
    routers: {image: "quay.io/frrouting/frr:9.1"}
  nodes:
    R1:
      group: routers
      binds: ["one/frr.conf:/etc/frr/frr.conf", "one/daemons:/etc/frr/daemons"]
    R2: {group: routers, binds: ["two:/etc/frr"]}
    PC1:
      image: alpine
      exec: ["ip addr add 192.168.11.2/24 dev eth1", "ip route add default via 192.168.11.1", touch /tmp/x]
    PC2:
      exec: ["sh -c 'ip addr add 192.168.12.20/24 dev eth1 && ip route add 192.168.0.0/16 via 192.168.12.1'",
             "ip route add 10.10.10.0/24 via 192.168.12.1"]
  links:
    - endpoints: ["R1:eth1", "R2:eth1"]
    - endpoints: ["PC1:eth1", "R1:eth2"]
    - {type: veth, endpoints: [{node: R2, interface: eth2}, {node: PC2, interface: eth1}], mtu: 1400}
"""
ROUTER = """\
frr defaults traditional
hostname {name}
!
interface eth1
 ip address {wire}
 ip ospf network point-to-point
!
interface eth2
 ip address {lan}.1/24
!
interface lo
 ip address 10.10.10.{number}/32
!
router ospf
 passive-interface eth2
 network 10.0.12.0/31 area 0
 network {lan}.0/24 area 0
 network 10.10.10.{number}/32 area 0
!
line vty
"""


def write(directory: Path) -> Path:
    """Writes the topology file, with the routers' configurations beside it, and returns its path."""
    for number, (folder, wire) in enumerate((("one", "10.0.12.1/31"), ("two", "10.0.12.0/31")), 1):
        (directory / folder).mkdir()
        text = ROUTER.format(name=f"R{number}", number=number, wire=wire, lan=f"192.168.1{number}")
        (directory / folder / "frr.conf").write_text(text)
    file = directory / "two.clab.yml"
    file.write_text(TOPOLOGY)
    return file
