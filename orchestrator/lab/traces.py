"""Packets from node to node, from inside their namespaces: which routers pass them on, and in what time.

ICMP echo requests; of those with a short time to live each router on the way tells that it threw one away.
"""

from __future__ import annotations

import select
import socket
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from orchestrator.lab.clock import MILLISECOND, SECOND
from orchestrator.lab.entering import enter
from orchestrator.lab.errors import LabError

SO_TIMESTAMPNS = 35  # asm-generic/socket.h
ECHO_REPLY, UNREACHABLE, ECHO, TIME_EXCEEDED = 0, 3, 8, 11
ROUNDS = 4  # a lost packet is sent again
SPACING_S = 0.002  # the kernel answers at most 1,000 such packets a second (net.ipv4.icmp_msgs_per_sec)
ECHOES = 5
FIRST_ECHO = 1000  # numbers of those that measure the time; below, the number is the time to live
FRAME_BYTES = 14 + 20 + 8 + 22


@dataclass(frozen=True, slots=True)
class Asked:
    """A way to try: from the namespace of a node to an address that many hops away."""

    netns: str
    address: str
    hops: int
    patience_ns: int


@dataclass
class Found:
    """What came back: by time to live who answered, and round trips of whole ways."""

    hops: dict[int, str] = field(default_factory=dict)
    round_trips_ns: list[int] = field(default_factory=list)


def trace(ways: Sequence[Asked]) -> list[Found]:
    """Try all ways side by side; takes some times the longest round trip."""
    found = [Found() for _ in ways]
    sockets = {netns: _socket_in(netns) for netns in dict.fromkeys(way.netns for way in ways)}
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
    ways: Sequence[Asked],
    found: list[Found],
    sockets: dict[str, socket.socket],
    probes: list[tuple[int, int]],
) -> None:
    for _ in range(ROUNDS):
        probes = [(i, ttl) for i, ttl in probes if ttl not in found[i].hops]
        if not probes:
            return
        _once(ways, found, sockets, probes)


def _once(
    ways: Sequence[Asked],
    found: list[Found],
    sockets: dict[str, socket.socket],
    probes: list[tuple[int, int]],
) -> None:
    """Send each probe once and take in what comes until all have, or patience ends."""
    sent: dict[tuple[int, int], int] = {}
    waiting = set(probes)
    for i, number in probes:
        way = ways[i]
        sock = sockets[way.netns]
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, number if number < FIRST_ECHO else 64)
        sent[i, number] = time.time_ns()
        try:
            sock.sendto(_echo(i, number), (way.address, 0))
        except OSError:
            waiting.discard((i, number))  # no route: said by the answer that is missing
        _take(sockets, SPACING_S, sent, waiting, found)
    deadline = time.monotonic_ns() + max((ways[i].patience_ns for i, _ in probes), default=0)
    while waiting and time.monotonic_ns() < deadline:
        _take(sockets, 10 * MILLISECOND / SECOND, sent, waiting, found)


def _take(
    sockets: dict[str, socket.socket], timeout_s: float, sent: dict[tuple[int, int], int],
    waiting: set[tuple[int, int]], found: list[Found],
) -> None:  # fmt: skip
    ready, _, _ = select.select(list(sockets.values()), [], [], timeout_s)
    for sock in ready:
        data, ancillary, _, (sender, _) = sock.recvmsg(2048, 256)
        key = _key(data)
        if key is None or key not in sent:
            continue
        waiting.discard(key)
        i, number = key
        if number < FIRST_ECHO:
            found[i].hops[number] = sender
        else:
            found[i].round_trips_ns.append(_stamp(ancillary) - sent[key])


def _socket_in(netns: str) -> socket.socket:
    """A socket that belongs to a namespace; this thread stays where it is."""
    made: list[socket.socket | OSError] = []

    def make() -> None:
        try:
            made.append(_made_in(netns))
        except OSError as error:
            made.append(error)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    if isinstance(made[0], OSError):
        raise LabError(f"paths from {netns}: {made[0].strerror}")
    return made[0]


def _made_in(netns: str) -> socket.socket:
    enter(netns)
    sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    return sock


def _echo(identity: int, number: int) -> bytes:
    body = struct.pack("!BBHHH", ECHO, 0, 0, identity, number) + bytes(22)
    return body[:2] + struct.pack("!H", _checksum(body)) + body[4:]


def _checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _key(packet: bytes) -> tuple[int, int] | None:
    """Identity and number of the request that a packet answers."""
    inner = packet[(packet[0] & 15) * 4 :]
    if len(inner) >= 8 and inner[0] == ECHO_REPLY:
        identity, number = struct.unpack("!HH", inner[4:8])
        return identity, number
    if len(inner) >= 36 and inner[0] == TIME_EXCEEDED:
        original = inner[8 + (inner[8] & 15) * 4 :]
        identity, number = struct.unpack("!HH", original[4:8])
        return identity, number
    return None


def _stamp(ancillary: list[tuple[int, int, bytes]]) -> int:
    """When the kernel received it, Unix ns."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
            seconds, ns = struct.unpack("qq", data[:16])
            stamp: int = seconds * SECOND + ns
            return stamp
    return time.time_ns()
