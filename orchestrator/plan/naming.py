"""Computes the names, IP addresses and MAC addresses of a lab's parts; the same file always gives the same
values.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from contract.plan.family import family

IFNAMSIZ = 15  # longest interface name: that of linux/if.h minus the final zero
# Names that the kernel itself uses in /proc/sys/net/ipv4/conf, and the loopback interface.
_RESERVED = frozenset({"lo", "all", "default"})


def core_netns(lab: str) -> str:
    return f"vnet-{lab}"


def node_netns(lab: str, node: str) -> str:
    return f"vnet-{lab}.{node}"


def node_cgroup(lab: str, node: str) -> str:
    return f"vnet/{lab}/{node}"


@dataclass
class InterfaceNames:
    """Allots unique interface names in one namespace; never allots `lo`, `all` and `default`."""

    taken: set[str] = field(default_factory=lambda: set(_RESERVED))

    def allot(self, wish: str) -> str:
        """Returns the name `wish` and marks it as used; if it is used already or longer than 15 characters,
        the name is its first 8 characters and a hash.
        """
        name, attempt = wish, 0
        while len(name) > IFNAMSIZ or name in self.taken:
            digest = hashlib.sha256(f"{wish}/{attempt}".encode()).hexdigest()[:6]
            name, attempt = f"{wish[: IFNAMSIZ - 7]}-{digest}", attempt + 1
        self.taken.add(name)
        return name


class AddressPool:
    """Allots the host addresses of a subnet in ascending order; never allots the fixed ones."""

    def __init__(self, subnet: str, fixed: Iterable[str]) -> None:
        self.network = ipaddress.ip_network(subnet)
        self.family = family(subnet)
        self._fixed = set(fixed)
        self._free = self._walk()

    def _walk(self) -> Iterator[str]:
        return (str(host) for host in self.network.hosts() if str(host) not in self._fixed)

    def next(self) -> str:
        """Returns the next free address; raises StopIteration if the subnet is full, which the checks exclude
        for a topology.
        """
        return next(self._free)


def node_mac(address: str) -> str:
    """Returns the MAC address of a node's interface: the bytes 02:00, then the four bytes of its IPv4
    address. For an IPv6 address, `_low` computes the four bytes.
    """
    return _mac(0x02, _low(address))


def port_mac(address: str) -> str:
    """Returns the MAC address of the core namespace's end of a node's veth pair: the bytes 06:00, then the
    same four bytes as in `node_mac`.
    """
    return _mac(0x06, _low(address))


def _low(address: str) -> int:
    """Returns 32 bits for an address: the IPv4 address, or the low 32 bits of an IPv6 address XOR a hash of
    its high 96 bits. They are unique among IPv6 addresses with equal high bits, and in most cases among
    others.
    """
    number = ipaddress.ip_address(address)
    if number.version == 4:
        return int(number)
    high = hashlib.sha256((int(number) >> 32).to_bytes(12, "big")).digest()[:4]
    return int(number) & 0xFFFFFFFF ^ int.from_bytes(high, "big")


def bridge_mac(index: int) -> str:
    return _mac(0x0A, index)


def link_macs(index: int) -> tuple[str, str]:
    """Returns the MAC addresses of the two ends of a link between segments."""
    return _mac(0x0E, 2 * index), _mac(0x0E, 2 * index + 1)


def station_mac(medium: int, end: int) -> str:
    """Returns the MAC address of a station that the link proof uses on a segment's half-duplex medium."""
    return _mac(0x2A, 4 * medium + end)


def of_own(mac: str, first: int) -> str:
    """Returns the MAC address with its first byte replaced by `first`; devices between the interface and the
    wire get such addresses.
    """
    return f"{first:02x}{mac[2:]}"


def bridge_vm_macs(index: int) -> tuple[str, str]:
    """Returns the MAC addresses of the two interfaces of the bridge VM that carries a link."""
    return _mac(0x12, 2 * index), _mac(0x12, 2 * index + 1)


def _mac(first: int, low: int) -> str:
    return ":".join(f"{byte:02x}" for byte in (first, 0, *low.to_bytes(4, "big")))
