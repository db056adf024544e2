"""Writes the captures of the fake driver: one invented frame for each message, with IP and TCP or UDP
headers.
"""

from __future__ import annotations

import struct
from ipaddress import ip_address
from pathlib import Path

from orchestrator.lab.clock import SECOND
from orchestrator.lab.drivers.fake_traffic import TRANSIT_NS, Sent, Traffic, addresses

HEADERS = 14 + 20 + 20  # Ethernet, IPv4, TCP
TCP, UDP = 6, 17
DISCARD = 9  # RFC 863: the service discards what arrives
FIRST_PORT = 40_000
LONGEST = 65_535 - 20 - 20
HEAD = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1)  # times in nanoseconds; link type Ethernet
NOWHERE = "192.0.2.1"  # an address for documentation (RFC 5737): destination of messages without a receiver


class FakeCapture:
    """Writes a pcap: TCP frames for flows with a lossless guarantee, UDP for the others."""

    listening = True

    def __init__(self, file: Path) -> None:
        self._file = file
        file.write_bytes(HEAD)
        self._packets = 0

    def write(self, traffic: Traffic, sent: list[Sent]) -> None:
        known = addresses(traffic.plan)
        next_seq: dict[int, int] = {}
        with self._file.open("wb") as out:
            out.write(HEAD)
            for message in sent:
                receivers = traffic.receivers(message.flow)
                source = known.get(message.flow.sender, NOWHERE)
                frame = _frame(message, source, known.get((receivers or [""])[0], NOWHERE), next_seq)
                seconds, ns = divmod(traffic.t0_ns + message.at_ns + TRANSIT_NS, SECOND)
                out.write(struct.pack("<IIII", seconds, ns, len(frame), len(frame)) + frame)
        self._packets = len(sent)

    def stop(self) -> dict[str, int]:
        return {
            "packets": self._packets, "received": self._packets, "dropped_kernel": 0, "dropped_interface": 0
        }  # fmt: skip


def _frame(message: Sent, source: str, target: str, next_seq: dict[int, int]) -> bytes:
    """Returns one message as one frame without checksums; cuts the payload at IP's maximum length."""
    payload = bytes(min(message.flow.payload.bytes, LONGEST))
    port = FIRST_PORT + message.number % 20_000
    if any(delivery.guarantee.lossless for delivery in message.flow.deliveries):
        seq = next_seq.get(message.number, 1)
        next_seq[message.number] = seq + len(payload)
        head = struct.pack(">HHIIBBHHH", port, DISCARD, seq % 2**32, 1, 5 << 4, 0x18, 64240, 0, 0)
        protocol = TCP
    else:
        head = struct.pack(">HHHH", port, DISCARD, 8 + len(payload), 0)
        protocol = UDP
    ends = [ip_address(address).packed for address in (source, target)]
    length = len(head) + len(payload)
    if len(ends[0]) == len(ends[1]) == 4:
        kind = b"\x08\0"
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + length, 0, 0x4000, 64, protocol, 0, *ends)
    else:  # an unknown endpoint gets an IPv4 address
        kind = b"\x86\xdd"
        ip = struct.pack(
            ">IHBB16s16s", 6 << 28, length, protocol, 64, *(end.rjust(16, b"\0") for end in ends)
        )
    return b"\2\0" + ends[1][-4:] + b"\2\0" + ends[0][-4:] + kind + ip + head + payload
