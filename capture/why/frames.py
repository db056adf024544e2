"""Reads the frames of one capture point: the messages that they carry, their positions in TCP streams, and
ARP.

Messages are found by the header of the payloads `bytes` and `metering-xml` (images/agent/src/payload/). A
header that extends over two TCP segments, or that TLS encrypts, is not found.
"""

from __future__ import annotations

import mmap
import re
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from capture.errors import CaptureError
from capture.hops import FILE_HEADER, MAGIC, RECORD_HEADER
from capture.message_frames import HEADER, MESSAGE, REPLY
from capture.why.streams import Stream

ETHERNET = 14
VLAN, ARP, IPV4, IPV6 = b"\x81\x00", b"\x08\x06", b"\x08\x00", b"\x86\xdd"
TCP, UDP = 6, 17
FRAGMENT = 0x1FFF  # the bits of an IPv4 fragment's offset
SYN = 2
METERING = re.compile(rb'<mRID>(\d+) *</mRID>\n<Reading seq="(\d+)"')
METERING_BEGINS = b'<?xml version="1.0" encoding="UTF-8"?>\n<MirrorMeterReading'
WORDS, PORTS = struct.Struct(">I"), struct.Struct(">HH")


class Quad(NamedTuple):
    """The addresses and ports of one direction of a connection, or of datagrams."""

    source: str
    to: str
    source_port: int
    to_port: int


class Ident(NamedTuple):
    """A message or its reply: number of the flow, number in the flow."""

    flow: int
    seq: int
    reply: bool


class Sight(NamedTuple):
    """A recorded frame. `mark` is the same at every capture point that records this packet."""

    t_ns: int
    wire_bytes: int
    mark: tuple[int, int, int]  # identifier of IP, position in the stream, bytes of payload


@dataclass(frozen=True, slots=True)
class Carried:
    """A frame or stream in which a point recorded a message. begin: the position in the stream."""

    quad: Quad
    begin: int | None  # position in the TCP stream; None for a datagram
    sight: Sight  # the frame with the header


class Lookup(NamedTuple):
    """An ARP frame: its sender, the address of the request or reply, and its time."""

    t_ns: int
    answer: bool
    sender: str
    target: str


@dataclass(slots=True)
class Frames:
    """The frames of one capture point."""

    carried: dict[Ident, list[Carried]] = field(default_factory=dict)
    streams: dict[Quad, Stream] = field(default_factory=dict)
    lookups: list[Lookup] = field(default_factory=list)
    # time (ns), source address and bytes of IP packets
    passed: list[tuple[int, str, int]] = field(default_factory=list)


def read(pcap: Path) -> Frames:
    """Returns the contents of a pcap file of Ethernet frames; raises CaptureError if it is no pcap."""
    found = Frames()
    if pcap.stat().st_size < FILE_HEADER:
        raise CaptureError(f"{pcap}: is shorter than a pcap's header; the capture did not start")
    with pcap.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for t_ns, wire, begin, end in _records(data, pcap):
            _add(found, data, t_ns, wire, begin, end)
    found.passed.sort()
    return found


def _records(data: mmap.mmap, pcap: Path) -> Iterator[tuple[int, int, int, int]]:
    """Yields for each whole frame its time, its length on the wire, and its begin and end in the file."""
    known = MAGIC.get(data[:4])
    if known is None:
        raise CaptureError(f"{pcap}: is no pcap file; convert it (editcap -F pcap)")
    order, unit_ns = known
    record, at = struct.Struct(f"{order}IIII"), FILE_HEADER
    while at + RECORD_HEADER <= len(data):
        seconds, part, captured, wire = record.unpack_from(data, at)
        begin = at + RECORD_HEADER
        at = begin + captured
        if at > len(data):
            return
        yield seconds * 10**9 + part * unit_ns, wire, begin, at


def _add(found: Frames, data: mmap.mmap, t_ns: int, wire: int, begin: int, end: int) -> None:
    kind, at = data[begin + 12 : begin + 14], begin + ETHERNET
    if kind == VLAN:
        kind, at = data[begin + 16 : begin + 18], at + 4
    if kind == ARP and end - at >= 28:
        answer = data[at + 7] == 2
        sender, target = _v4(data, at + 14), _v4(data, at + 24)
        found.lookups.append(Lookup(t_ns, answer, sender, target))
    elif kind == IPV4 and end - at >= 20:
        inside = at + 4 * (data[at] & 15)
        number, offset = struct.unpack_from(">HH", data, at + 4)
        length = int.from_bytes(data[at + 2 : at + 4], "big") - (inside - at)
        source = _v4(data, at + 12)
        found.passed.append((t_ns, source, wire))
        if not offset & FRAGMENT:
            ends = source, _v4(data, at + 16)
            _transport(found, data, (t_ns, wire), ends, data[at + 9], number, (inside, end, length))
    elif kind == IPV6 and end - at >= 40:
        source, to = (socket.inet_ntop(socket.AF_INET6, data[x : x + 16]) for x in (at + 8, at + 24))
        found.passed.append((t_ns, source, wire))
        length = int.from_bytes(data[at + 4 : at + 6], "big")
        _transport(found, data, (t_ns, wire), (source, to), data[at + 6], 0, (at + 40, end, length))


def _v4(data: mmap.mmap, at: int) -> str:
    return socket.inet_ntoa(data[at : at + 4])


def _transport(
    found: Frames, data: mmap.mmap, seen: tuple[int, int], ends: tuple[str, str], protocol: int, number: int,
    inside: tuple[int, int, int],
) -> None:  # fmt: skip
    """Adds a segment or datagram whose header begins at offset inside[0]; inside[2] is its length according
    to the IP header.
    """
    at, end, length = inside
    if protocol == UDP and end - at >= 8:
        quad, mark = Quad(*ends, *PORTS.unpack_from(data, at)), (number, 0, length - 8)
        for ident, _ in _messages(data, at + 8, end):
            one = Carried(quad, None, Sight(*seen, mark))
            found.carried.setdefault(ident, []).append(one)
    elif protocol == TCP and end - at >= 20:
        quad, head = Quad(*ends, *PORTS.unpack_from(data, at)), 4 * (data[at + 12] >> 4)
        stream = found.streams.get(quad) or found.streams.setdefault(quad, Stream())
        begin = stream.unwrapped(WORDS.unpack_from(data, at + 4)[0])
        if data[at + 13] & SYN:
            stream.opened(begin + 1)
        elif length > head:
            sight = Sight(*seen, (number, begin, length - head))
            stream.add(sight.t_ns, begin, length - head, sight)
            for ident, place in _messages(data, at + head, end):
                one = Carried(quad, begin + place - at - head, sight)
                found.carried.setdefault(ident, []).append(one)


def _messages(data: mmap.mmap, begin: int, end: int) -> Iterator[tuple[Ident, int]]:
    """Yields each message whose header lies between two positions, and the position of its payload."""
    at = data.find(MESSAGE, begin, end)
    while 0 <= at <= end - HEADER.size:
        _, purpose, flow, seq, _ = HEADER.unpack_from(data, at)
        yield Ident(flow, seq, purpose == REPLY), at
        at = data.find(MESSAGE, at + HEADER.size, end)
    at = data.find(METERING_BEGINS, begin, end)
    while at >= 0:
        if found := METERING.search(data, at, min(end, at + 300)):
            yield Ident(int(found[1]), int(found[2]), False), at
        at = data.find(METERING_BEGINS, at + 1, end)
