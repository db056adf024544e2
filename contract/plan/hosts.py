"""Defines the hosts that carry a lab together, and the tunnels that join its segments between them.

Imports the standard library only: the lab process reads it inside the lab's kernel, where every import
costs time.
"""

from __future__ import annotations

from dataclasses import dataclass

BRIDGE_PORTS = 1023  # ports of one Linux bridge: 1 to BR_MAX_PORTS - 1, net/bridge/br_private.h
VXLAN_PORT = 4789  # RFC 7348, 5


@dataclass(frozen=True, slots=True)
class Host:
    """A machine that carries a part of the lab; None is an unknown value."""

    name: str  # the name in the inventory
    machine: str = ""  # `ssh://[USER@]HOST[:PORT][/KERNEL]`; "" is this machine
    address: str = ""  # address in the underlay for the other hosts; "": the host reports it
    cores: float | None = None
    core_mhz: float | None = None  # clock of one core
    memory_bytes: int | None = None  # memory that labs may take
    bridge_ports: int = BRIDGE_PORTS  # most ports of one bridge


@dataclass(frozen=True, slots=True)
class Tunnel:
    """A VXLAN that joins the bridges of one segment, one on each host, or the ends of a link between two
    nodes; its device sends frames to unknown addresses to every other end (head-end replication).
    """

    segment: str  # or the link's name
    bridge: str  # the bridge of which `device` is a port, by the same name on each host
    vni: int  # VXLAN network identifier, 24 bits
    device: str  # in the core namespace of each host
    mtu: int  # MTU of the frames inside
    ends: tuple[str, ...]  # names of hosts, two or more
    port: int = VXLAN_PORT  # UDP
    learning: bool = False  # whether the device learns the end behind each address; for more than two ends
