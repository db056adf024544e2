"""Plans the tunnels between hosts: one VXLAN for each segment or link between nodes that
spans several hosts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from contract.plan import Host, Tunnel
from contract.plan.family import Family, family

from ...language.uris import kernel_machine
from ..naming import InterfaceNames

# Bytes around each frame (RFC 7348, 5): the frame's own Ethernet header, VXLAN, UDP, and IPv4 or IPv6.
OVERHEAD: Mapping[Family, int] = {"IPv4": 14 + 8 + 8 + 20, "IPv6": 14 + 8 + 8 + 40}
_IDENTIFIERS = 1 << 24


class Tunnels:
    """Makes the tunnels of one lab with free device names. VXLAN identifiers are hashes of the lab's and the
    segment's name, so that labs which share hosts get different ones, and are unique within the lab.
    """

    def __init__(self, lab: str, names: InterfaceNames, port: int) -> None:
        self._lab, self._names, self._port = lab, names, port
        self._taken: set[int] = set()

    def make(self, segment: str, bridge: str, mtu: int, ends: tuple[str, ...]) -> Tunnel:
        """Returns the tunnel of a segment, or of a link between nodes, between the hosts `ends`, with a new
        device name and a new identifier.
        """
        device = self._names.allot(f"vx-{segment}")
        return Tunnel(
            segment, bridge, self._identifier(segment), device, mtu, ends, self._port, len(ends) > 2
        )

    def _identifier(self, segment: str) -> int:
        attempt = 0
        while True:
            digest = hashlib.sha256(f"{self._lab}/{segment}/{attempt}".encode()).digest()
            number = int.from_bytes(digest[:3], "big") % _IDENTIFIERS
            if number and number not in self._taken:
                self._taken.add(number)
                return number
            attempt += 1


def overhead(hosts: Iterable[Host]) -> int:
    """Returns the bytes by which a tunnel between these hosts makes a packet longer: the sum of the frame's
    own Ethernet header and the headers of VXLAN, UDP and IP (IPv6 if `reached_by` returns it).
    """
    return OVERHEAD[reached_by(hosts)]


def reached_by(hosts: Iterable[Host]) -> Family:
    """Returns "IPv6" if any host's address, or else the host of its ssh URL, is an IPv6
    address; else "IPv4".
    """
    places = (host.address or (host.machine and kernel_machine(host.machine).host) for host in hosts)
    return "IPv6" if any(family(place) == "IPv6" for place in places) else "IPv4"
