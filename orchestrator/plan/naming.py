"""Names, addresses and hardware addresses of a lab's parts; the same file always gives the same ones."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

IFNAMSIZ = 15  # longest interface name, linux/if.h less the final zero
# Names that the kernel keeps for itself in /proc/sys/net/ipv4/conf, and the loopback interface.
_RESERVED = frozenset({"lo", "all", "default"})


def core_netns(lab: str) -> str:
    return f"vnet-{lab}"


def node_netns(lab: str, node: str) -> str:
    return f"vnet-{lab}.{node}"


def node_cgroup(lab: str, node: str) -> str:
    return f"vnet/{lab}/{node}"


@dataclass
class InterfaceNames:
    """Hands out interface names of one namespace: the wished one where it fits and is free."""

    taken: set[str] = field(default_factory=lambda: set(_RESERVED))

    def allot(self, wish: str) -> str:
        """`wish`, or as much of its beginning as fits and a hash that makes it unique."""
        name, attempt = wish, 0
        while len(name) > IFNAMSIZ or name in self.taken:
            digest = hashlib.sha256(f"{wish}/{attempt}".encode()).hexdigest()[:6]
            name, attempt = f"{wish[: IFNAMSIZ - 7]}-{digest}", attempt + 1
        self.taken.add(name)
        return name


class AddressPool:
    """The free host addresses of a subnet, lowest first, fixed ones left out."""

    def __init__(self, subnet: str, fixed: Iterable[str]) -> None:
        self.network = ipaddress.ip_network(subnet)
        self._fixed = set(fixed)
        self._free = self._walk()

    def _walk(self) -> Iterator[str]:
        return (str(host) for host in self.network.hosts() if str(host) not in self._fixed)

    def next(self) -> str:
        """The next free address; StopIteration where the subnet is full (check has counted them)."""
        return next(self._free)


def node_mac(address: str) -> str:
    """Locally administered, and of IPv4 legible: 02:00 and the address in hexadecimal."""
    return _mac(0x02, _low(address))


def port_mac(address: str) -> str:
    """The hardware address of the other end of the node's veth pair."""
    return _mac(0x06, _low(address))


def _low(address: str) -> int:
    """32 bits that tell an address from all others of its subnet, and of IPv6 most likely of all subnets: the
    lowest, changed by what the others are.
    """
    number = ipaddress.ip_address(address)
    if number.version == 4:
        return int(number)
    high = hashlib.sha256((int(number) >> 32).to_bytes(12, "big")).digest()[:4]
    return int(number) & 0xFFFFFFFF ^ int.from_bytes(high, "big")


def bridge_mac(index: int) -> str:
    return _mac(0x0A, index)


def link_macs(index: int) -> tuple[str, str]:
    """The hardware addresses of the two ends of a link between segments."""
    return _mac(0x0E, 2 * index), _mac(0x0E, 2 * index + 1)


def station_mac(medium: int, end: int) -> str:
    """The hardware address of a station that proves a segment's medium."""
    return _mac(0x2A, 4 * medium + end)


def of_own(mac: str, first: int) -> str:
    """A hardware address made from an interface's own: for the parts of the wire behind it."""
    return f"{first:02x}{mac[2:]}"


def bridge_vm_macs(index: int) -> tuple[str, str]:
    """The hardware addresses of the two interfaces of the bridge VM that carries a link."""
    return _mac(0x12, 2 * index), _mac(0x12, 2 * index + 1)


def _mac(first: int, low: int) -> str:
    return ":".join(f"{byte:02x}" for byte in (first, 0, *low.to_bytes(4, "big")))
