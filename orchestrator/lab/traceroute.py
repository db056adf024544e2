"""Sends ICMP echo requests from inside nodes' namespaces; determines the routers on a path and its round-trip
times.

For requests with a short time to live (hop limit), each router on the path reports a dropped packet and so
shows its address.
"""

from __future__ import annotations

import itertools
import select
import socket
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address

from contract.plan.family import family
from orchestrator.lab.clock import MILLISECOND, SECOND
from orchestrator.lab.entering import enter
from orchestrator.lab.errors import LabError

SO_TIMESTAMPNS = 35  # asm-generic/socket.h
ROUNDS = 4  # largest number of sends for a packet that gets no answer
SPACING_S = 0.002  # s between packets; the kernel answers at most 1,000 a second (net.ipv4.icmp_msgs_per_sec)
ECHOES = 5
FIRST_ECHO = 1000  # numbers from here on measure the time; below, the number is the packet's time to live
IDENTITIES = 1 << 16  # number of identifiers of echo requests
FRAME_BYTES = 14 + 20 + 8 + 22  # bytes on the wire by IPv4; IPv6 has 20 more


@dataclass(frozen=True, slots=True)
class _Dialect:
    """The ICMP constants of one address family: RFC 792, RFC 4443."""

    address_family: int
    protocol: int
    echo: int
    reply: int
    exceeded: int
    level: int
    hop_limit: int

    def key(self, packet: bytes) -> tuple[int, int] | None:
        """Returns identity and number of the request that a packet answers; None if the packet is not an
        answer. An IPv4 packet begins with its IP header.
        """
        inner = packet if self is _V6 else packet[(packet[0] & 15) * 4 :]
        if len(inner) >= 8 and inner[0] == self.reply:
            identity, number = struct.unpack("!HH", inner[4:8])
            return identity, number
        # A router's answer contains the header and the first bytes of the dropped packet.
        header = 40 if self is _V6 else (inner[8] & 15) * 4 if len(inner) > 8 else 20
        if len(inner) >= 16 + header and inner[0] == self.exceeded:
            identity, number = struct.unpack("!HH", inner[8 + header + 4 :][:4])
            return identity, number
        return None


_V4 = _Dialect(socket.AF_INET, socket.IPPROTO_ICMP, 8, 0, 11, socket.IPPROTO_IP, socket.IP_TTL)
_V6 = _Dialect(
    socket.AF_INET6, socket.IPPROTO_ICMPV6, 128, 129, 3, socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS
)
# identifiers that this process has used, so that a late answer does not count for a later path
_identities = itertools.count()
Place = tuple[str, _Dialect]  # namespace and family
Sockets = dict[Place, socket.socket]


def _dialect(address: str) -> _Dialect:
    return _V6 if family(address) == "IPv6" else _V4


@dataclass(frozen=True, slots=True)
class Traceroute:
    """A path to measure: from a node's namespace to an address `hops` away.

    patience_ns: longest wait for the last answers. alone_ns: on a slow path, the longest time in which
    nothing else is sent while an echo is unanswered, since other frames would wait behind it; 0 on other
    paths.
    """

    netns: str
    address: str
    hops: int
    patience_ns: int
    alone_ns: int = 0


@dataclass
class TracerouteResult:
    """The address that answered, by time to live, and the round trips (ns) of the whole path.

    identity: the identifier of the path's echo requests.
    """

    hops: dict[int, str] = field(default_factory=dict)
    round_trips_ns: list[int] = field(default_factory=list)
    identity: int = 0


def traceroute(ways: Sequence[Traceroute]) -> list[TracerouteResult]:
    """Measures all paths in parallel: the address at each hop, with up to four attempts, and five round trips
    to the end, each with one attempt. Raises LabError if a namespace cannot be entered. Takes a few times as
    long as the longest round trip.
    """
    found = [TracerouteResult(identity=next(_identities) % IDENTITIES) for _ in ways]
    places = dict.fromkeys((way.netns, _dialect(way.address)) for way in ways)
    sockets = {(netns, dialect): _socket_in(netns, dialect) for netns, dialect in places}
    try:
        probes = [(i, ttl) for i, way in enumerate(ways) for ttl in range(1, way.hops + 1)]
        _send_until_answered(ways, found, sockets, probes)
        echoes = [(i, FIRST_ECHO + n) for n in range(ECHOES) for i in range(len(ways))]
        _once(ways, found, sockets, echoes)
    finally:
        for one in sockets.values():
            one.close()
    return found


def _send_until_answered(
    ways: Sequence[Traceroute],
    found: list[TracerouteResult],
    sockets: Sockets,
    probes: list[tuple[int, int]],
) -> None:
    """Sends the probes that have no answer yet, up to four times."""
    for _ in range(ROUNDS):
        probes = [(i, ttl) for i, ttl in probes if ttl not in found[i].hops]
        if not probes:
            return
        _once(ways, found, sockets, probes)


def _once(
    ways: Sequence[Traceroute],
    found: list[TracerouteResult],
    sockets: Sockets,
    probes: list[tuple[int, int]],
) -> None:
    """Sends each probe once and receives answers until all have arrived, or the longest `patience_ns` has
    passed since the last one was sent. A probe without a route counts as unanswered.
    """
    sent: dict[tuple[int, int], int] = {}
    waiting = set(probes)
    for i, number in probes:
        way = ways[i]
        dialect = _dialect(way.address)
        sock = sockets[way.netns, dialect]
        sock.setsockopt(dialect.level, dialect.hop_limit, number if number < FIRST_ECHO else 64)
        sent[i, number] = time.time_ns()
        try:
            sock.sendto(_echo(dialect, found[i].identity, number), (way.address, 0))
        except OSError:
            waiting.discard((i, number))  # without a route, sending fails; the missing answer shows that
        _take(ways, sockets, SPACING_S, sent, waiting, found)
        alone = time.monotonic_ns() + way.alone_ns
        while (i, number) in waiting and time.monotonic_ns() < alone:
            _take(ways, sockets, (alone - time.monotonic_ns()) / SECOND, sent, waiting, found)
    deadline = time.monotonic_ns() + max((ways[i].patience_ns for i, _ in probes), default=0)
    while waiting and time.monotonic_ns() < deadline:
        _take(ways, sockets, 10 * MILLISECOND / SECOND, sent, waiting, found)


def _take(
    ways: Sequence[Traceroute], sockets: Sockets, timeout_s: float, sent: dict[tuple[int, int], int],
    waiting: set[tuple[int, int]], found: list[TracerouteResult],
) -> None:  # fmt: skip
    """Receives the answers that arrive within `timeout_s`, at most one per socket, and records hops and round
    trips. Ignores answers to other requests, and answers to measuring echoes that are not from the path's
    end.
    """
    of = {result.identity: i for i, result in enumerate(found)}
    by_socket = {sock: dialect for (_, dialect), sock in sockets.items()}
    ready, _, _ = select.select(list(by_socket), [], [], timeout_s)
    for sock in ready:
        data, ancillary, _, sender = sock.recvmsg(2048, 256)
        key = by_socket[sock].key(data)
        if key is None or key[0] not in of:
            continue
        i, number = of[key[0]], key[1]
        if (i, number) not in sent:
            continue
        if number >= FIRST_ECHO and ip_address(sender[0]) != ip_address(ways[i].address):
            continue
        waiting.discard((i, number))
        if number < FIRST_ECHO:
            found[i].hops[number] = sender[0]
        else:
            found[i].round_trips_ns.append(_stamp(ancillary) - sent[i, number])


def _socket_in(netns: str, dialect: _Dialect) -> socket.socket:
    """Opens a raw ICMP socket in a namespace by another thread, since the calling thread must stay in its own
    namespace. Raises LabError if that fails.
    """
    made: list[socket.socket | OSError] = []

    def make() -> None:
        try:
            made.append(_made_in(netns, dialect))
        except OSError as error:
            made.append(error)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if isinstance(made[0], OSError):
        raise LabError(f"paths from {netns}: {made[0].strerror}")
    return made[0]


def _made_in(netns: str, dialect: _Dialect) -> socket.socket:
    enter(netns)
    sock = socket.socket(dialect.address_family, socket.SOCK_RAW, dialect.protocol)
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    return sock


def _echo(dialect: _Dialect, identity: int, number: int) -> bytes:
    """Returns an echo request; for IPv6 the kernel replaces the checksum, which also covers the addresses."""
    body = struct.pack("!BBHHH", dialect.echo, 0, 0, identity, number) + bytes(22)
    return body[:2] + struct.pack("!H", _checksum(body)) + body[4:]


def _checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _stamp(ancillary: list[tuple[int, int, bytes]]) -> int:
    """Returns the kernel's receive timestamp in Unix ns; the present time if there is none."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
            seconds, ns = struct.unpack("qq", data[:16])
            stamp: int = seconds * SECOND + ns
            return stamp
    return time.time_ns()
