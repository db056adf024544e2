"""Defines segments, interfaces, routes, links and captures of a plan.

Imports the standard library only: the lab process reads it inside the lab's kernel, where every import
costs time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from ipaddress import ip_network
from typing import Literal

from ..codec import RARE
from .queues import Discipline

# Lower end of a distribution, in jitters below the delay (for those with a table, the least entry of
# iproute2's). netem sends a packet at once if it would leave before its arrival.
REACH = {"uniform": 1.0, "normal": 4.0, "pareto": 1.0, "paretonormal": 1.503}

WAYS = ("forward", "reverse")  # directions of a link


@dataclass(frozen=True, slots=True)
class Slot:
    """Slots in which netem sends packets: together, and then none for a while (0 packets or bytes: no
    bound).

    Times between slots are drawn evenly from min to max; or from one of the plan's tables, as mean_ns and
    multiples of jitter_ns, and then min and max are its least and most.
    """

    min_ns: int
    max_ns: int
    packets: int = 0
    bytes: int = 0
    table: str | None = None
    mean_ns: int = 0
    jitter_ns: int = 0


@dataclass(frozen=True, slots=True)
class Impairment:
    """The impairment of one direction of a link; all zero means a plain wire."""

    delay_ns: int = 0
    jitter_ns: int = 0
    distribution: str = "uniform"  # normal, pareto, paretonormal, or the name of one of the plan's tables
    delay_correlation: float = 0.0
    loss: float = 0.0  # share of lost packets (0 to 1), independent or correlated
    loss_correlation: float = 0.0
    gemodel: tuple[float, float, float, float] | None = None  # p, r, 1-h, 1-k as netem names them
    duplicate: float = 0.0
    duplicate_correlation: float = 0.0
    corrupt: float = 0.0
    corrupt_correlation: float = 0.0
    reorder: float = 0.0
    reorder_correlation: float = 0.0
    rate_bps: int = 0  # 0: unlimited
    limit_packets: int = 0  # 0 only where the whole impairment is absent; else always sized
    frame_bytes: int = 1518  # the longest frame of the wire
    queue: Discipline | None = None  # queue of packets that wait for the rate; None: first in, first out
    slot: Slot | None = None
    netem_stays: bool = False  # for a trace: netem stays without an impairment and keeps packets in order
    backpressure: bool = False  # packets that wait for the rate still count for their socket

    @property
    def present(self) -> bool:
        """True if the impairment needs a qdisc: a field other than limit_packets and frame_bytes is not the
        default.
        """
        return self != Impairment(limit_packets=self.limit_packets, frame_bytes=self.frame_bytes)

    @property
    def tables(self) -> set[str]:
        """The name of the delay distribution (also "uniform" and other built-in ones), and of the slots'
        table if there is one.
        """
        return {self.distribution} | ({self.slot.table} if self.slot and self.slot.table else set())


@dataclass(frozen=True, slots=True)
class Segment:
    """One broadcast domain of Ethernet: a bridge in the lab's core namespace."""

    name: str
    bridge: str  # interface name of the bridge, at most 15 characters
    subnet: str  # "10.10.0.0/16"
    mtu: int
    ipv6: bool = False
    stp: bool = False  # spanning tree, so that links of segments may form loops
    second_subnet: str = field(default="", metadata=RARE)  # subnet of the other family, in dual stack

    @property
    def subnets(self) -> tuple[str, ...]:
        """The segment's subnet, and in dual stack that of the other family after it."""
        return (self.subnet, self.second_subnet) if self.second_subnet else (self.subnet,)


@dataclass(frozen=True, slots=True)
class Interface:
    """One NIC of a node: `name` inside the node, `port` its other end on the segment's bridge.

    For a link between two nodes, the NIC is one end of the link: `segment` is the link's name, and `port` is
    "", because the other end is inside the other node. If the link goes through the core, its ends have
    ports.
    """

    name: str  # eth0, eth1 ...; eth0.5 is a tagged interface (VLAN 5) on eth0
    port: str  # unique in the core namespace, at most 15 characters
    segment: str
    address: str  # "10.10.0.7"
    prefix: int
    mac: str
    mtu: int
    bridge: str | None = None  # bridge of the port, if not the segment's own
    nic: str | None = None  # a NIC of the machine, by its name in the file: no veth or tap is made
    cable: str | None = (
        None  # the NIC that is cabled to `nic`, as requested: `port` is then its name, else ""
    )
    pci: str | None = None  # address of `nic`'s function, filled in by the lab process when it has the lease
    second: str = field(default="", metadata=RARE)  # address of the other family, in dual stack
    second_prefix: int = field(default=0, metadata=RARE)

    @property
    def faces(self) -> tuple[Interface, ...]:
        """The interface once for each of its addresses, with that one as its only `address`."""
        if not self.second:
            return (self,)
        first = replace(self, second="", second_prefix=0)
        return first, replace(first, address=self.second, prefix=self.second_prefix)

    @property
    def addresses(self) -> tuple[str, ...]:
        """The addresses of the interface: none, one, or one of each family."""
        return tuple(one for one in (self.address, self.second) if one)

    @property
    def subnet(self) -> str:
        """The subnet of `address`; "" for an interface without an address."""
        return _subnet(self.address, self.prefix) if self.address else ""

    @property
    def device(self) -> str:
        """The name of the Ethernet interface: `name` without the VLAN, eth0 for eth0.5."""
        return self.name.partition(".")[0]

    @property
    def vlan(self) -> int | None:
        """The number of the VLAN whose tag its frames carry (IEEE 802.1Q); None for an untagged interface."""
        number = self.name.partition(".")[2]
        return int(number) if number else None


@cache
def _subnet(address: str, prefix: int) -> str:
    return str(ip_network(f"{address}/{prefix}", strict=False))


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A permanent neighbour entry: another node of the subnet with its hardware address."""

    address: str
    mac: str
    device: str  # interface of the node that has the entry


@dataclass(frozen=True, slots=True)
class Route:
    """Subnets that a node reaches through one neighbour; through several, each flow takes one of them."""

    to: tuple[str, ...]  # "10.10.0.0/16"; "0.0.0.0/0" is the default route
    via: tuple[str, ...]  # addresses of neighbours, in a subnet of the node's own


@dataclass(frozen=True, slots=True)
class Vrf:
    """A routing table of its own of a router, and the interfaces between which it forwards (VRF)."""

    name: str  # of its device
    table: int
    interfaces: tuple[str, ...]  # names inside the node
    routes: tuple[Route, ...] = ()  # beside those of the interfaces' own subnets


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction of a link: the device whose root qdisc carries the impairment, and the device from which
    its packets come out.

    If the qdisc is inside a bridge VM, a proof sends a frame into `enter` and receives it from `leave`, taps
    of the core namespace; else both are None.
    """

    impairment: Impairment
    netns: str  # namespace of `device`
    device: str
    far_netns: str
    far_device: str  # packets sent out of `device` appear here
    enter: str | None = None
    leave: str | None = None
    shared: str | None = None  # half duplex: the device, of both directions, that carries the impairment
    trace: str | None = None  # name among the plan's traces; changes the impairment while the lab runs
    host: str = ""  # host with `device`
    far_host: str = ""  # host with `far_device`

    @property
    def carrier(self) -> str:
        """The device whose root qdisc carries the impairment: `shared` in half duplex, else `device`."""
        return self.shared or self.device


@dataclass(frozen=True, slots=True)
class Carried:
    """A further pair of segments that a link joins by frames with a VLAN tag, and their ports on it."""

    vlan: int
    a: str
    b: str
    device_a: str  # tagged interface on the link's end, at most 15 characters
    device_b: str


@dataclass(frozen=True, slots=True)
class Link:
    """Joins two segments (a veth pair between bridges), a node and a segment (the node's own veth pair), or
    two nodes (a veth pair from one to the other, a subnet of its own); or is the one medium of a segment's
    members, under the segment's name.

    forward is a -> b as the file names them; for a node's access link a is the node. For a medium, forward
    and reverse are the directions between two stations that only the proof uses.
    """

    name: str
    a: str
    b: str
    kind: Literal["segments", "access", "nodes", "medium"]
    forward: Direction
    reverse: Direction
    nics: tuple[str, str] | None = None  # a's and b's NIC if the wire is a cable between them, as requested
    subnet: str | None = None  # subnet of a link between two nodes
    cost: int = 1  # cost of the hop, for routes by cost and for routing daemons
    second_subnet: str = field(default="", metadata=RARE)  # of a link between two nodes, in dual stack
    trunk: tuple[Carried, ...] = field(default=(), metadata=RARE)  # of a link between segments

    @property
    def joins(self) -> tuple[tuple[str, str], ...]:
        """The pairs of segments that the link joins; none if it joins no segments."""
        if self.kind != "segments":
            return ()
        return ((self.a, self.b), *((one.a, one.b) for one in self.trunk))

    def way(self, name: str) -> Direction:
        """Returns the link's direction `forward` for the name "forward", and `reverse` for any other."""
        return self.forward if name == "forward" else self.reverse

    @property
    def half_duplex(self) -> bool:
        """True if both directions share one transmitter."""
        return self.forward.shared is not None

    @property
    def over_hosts(self) -> bool:
        """True if the link's ends are on two hosts, with a tunnel between them."""
        return self.forward.host != self.forward.far_host

    @property
    def through_core(self) -> bool:
        """True for a link between two nodes whose wire lies in the core namespace, between a bridge for each
        end.
        """
        return self.kind == "nodes" and self.forward.far_netns == self.reverse.far_netns


@dataclass(frozen=True, slots=True)
class Capture:
    name: str
    at: str  # the place in the file's words: "segment lan", "link wan", "node broker"
    netns: str
    device: str
    snaplen: int
    filter: str
    keep: bool  # keep the pcap after reduction
    host: str = ""  # one of the plan's hosts
    limit_bytes: int = field(default=0, metadata=RARE)  # size of the file at which the capture ends; 0: none
    to: str = field(default="", metadata=RARE)  # ssh://HOST/DIRECTORY in place of the run directory
    compress: str = field(default="", metadata=RARE)  # "zstd", or "" for a plain file
