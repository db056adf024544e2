"""Builds frames and pcap files byte by byte, for captures that no program here would make."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
START_NS = 1_700_000_000_123_456_789


@dataclass(frozen=True)
class Frame:
    """A frame as captured; `wire` is its length on the wire if the capture cut it."""

    data: bytes
    t_ns: int = START_NS
    wire: int | None = None

    def cut(self, size: int) -> Frame:
        return Frame(self.data[:size], self.t_ns, len(self.data))


def write(path: Path, frames: Iterable[Frame], order: str = "<", nano: bool = True, link: int = 1) -> Path:
    """Writes a pcap file in the given byte order (a character of the module `struct`) with times in
    ns or µs.
    """
    magic, unit = (0xA1B23C4D, 1) if nano else (0xA1B2C3D4, 1000)
    with path.open("wb") as sink:
        sink.write(struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262_144, link))
        for frame in frames:
            seconds, rest = divmod(frame.t_ns, 10**9)
            size = len(frame.data)
            wire = size if frame.wire is None else frame.wire
            sink.write(struct.pack(order + "IIII", seconds, rest // unit, size, wire) + frame.data)
    return path


def ethernet(payload: bytes, kind: int = 0x0800, *tags: tuple[int, int]) -> bytes:
    """Returns an Ethernet frame; `tags` are (ethertype of the tag, VLAN), outermost first."""
    head = b"\x02\0\0\0\0\x02\x02\0\0\0\0\x01"
    for tag, vlan in tags:
        head += struct.pack("!HH", tag, vlan)
    return head + struct.pack("!H", kind) + payload


def ipv4(
    payload: bytes,
    protocol: int = 6,
    src: str = "10.0.0.1",
    dst: str = "10.0.0.2",
    *,
    options: bytes = b"",
    fragment: int = 0,
    total: int | None = None,
) -> bytes:
    size = 20 + len(options)
    length = size + len(payload) if total is None else total
    head = struct.pack("!BBHHHBBH", 0x40 | size // 4, 0, length, 7, fragment, 64, protocol, 0)
    return head + socket.inet_aton(src) + socket.inet_aton(dst) + options + payload


def ipv6(payload: bytes, protocol: int = 6, src: str = "2001:db8::1", dst: str = "2001:db8::2") -> bytes:
    head = struct.pack("!IHBB", 0x60000000, len(payload), protocol, 64)
    return head + socket.inet_pton(socket.AF_INET6, src) + socket.inet_pton(socket.AF_INET6, dst) + payload


def tcp(
    payload: bytes = b"",
    flags: int = ACK,
    seq: int = 1,
    ack: int = 1,
    ports: tuple[int, int] = (40000, 1883),
    window: int = 501,
    options: bytes = b"",
) -> bytes:
    size = 20 + len(options)
    return (
        struct.pack("!HHIIHHHH", *ports, seq, ack, size // 4 << 12 | flags, window, 0, 0) + options + payload
    )


def udp(payload: bytes, ports: tuple[int, int] = (5000, 9999)) -> bytes:
    return struct.pack("!HHHH", *ports, 8 + len(payload), 0) + payload


def arp(src: str = "10.0.0.1", dst: str = "10.0.0.2") -> bytes:
    head = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1)
    return head + b"\x02\0\0\0\0\x01" + socket.inet_aton(src) + bytes(6) + socket.inet_aton(dst)


def mqtt(kind: int, body: bytes = b"", flags: int = 0) -> bytes:
    """Returns an MQTT control packet."""
    head, size = bytes([kind << 4 | flags]), len(body)
    while True:
        size, low = size >> 7, size & 0x7F
        head += bytes([low | (0x80 if size else 0)])
        if not size:
            return head + body


def publish(size: int, topic: bytes = b"a/b", qos: int = 0) -> bytes:
    packet_id = b"\0\1" if qos else b""
    return mqtt(3, struct.pack("!H", len(topic)) + topic + packet_id + b"x" * size, qos << 1)


CONNECT = mqtt(1, b"\0\4MQTT\4\2\0\x3c\0\1c")
CONNACK = mqtt(2, b"\0\0")
