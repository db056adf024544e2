"""Times vnet-reduce against tshark's field output on one capture of MQTT-like traffic; prints JSON rows.

Disks do not matter: both read a capture that was just written and is still in memory. Each runs on the same
single core; the figures are packets per second of the whole process, start-up included. tshark gets a part of
the capture, because its speed hardly depends on the length and the whole would take minutes.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
from commands import ROOT, tool

Bytes = npt.NDArray[np.uint8]

CLIENTS = 350
ROUNDS = 1100  # rounds of 4 packets a client: 1.54 million packets
SLICE = 150_000  # packets for tshark
TURNS = 3
START_NS = 1_700_000_000_000_000_000
SPACING_NS = 1_300
BROKER = bytes([10, 10, 0, 2])
TIMESTAMPS = b"\x01\x01\x08\x0a" + bytes(8)
TOPIC = b"metering/client/000"
FIELDS = (
    "frame.time_epoch", "frame.len", "frame.cap_len", "vlan.id", "eth.type", "ip.src", "ip.dst", "ip.proto",
    "tcp.srcport", "tcp.dstport", "tcp.flags", "tcp.seq_raw", "tcp.ack_raw", "tcp.window_size_value",
    "tcp.len", "tcp.stream", "tcp.analysis.retransmission", "mqtt.msgtype",
)  # fmt: skip


def publish() -> bytes:
    body = struct.pack("!H", len(TOPIC)) + TOPIC + b"\x00\x07" + b"x" * 717
    return bytes([0x32, len(body) & 0x7F | 0x80, len(body) >> 7]) + body


def frame(client: int, up: bool, flags: int, payload: bytes) -> bytes:
    """Returns one pcap record with its header: Ethernet, IPv4, TCP with timestamps; `numbered` sets times and
    sequence numbers.
    """
    address = bytes([10, 10, 1 + client // 250, client % 250 + 1])
    source, target = (address, BROKER) if up else (BROKER, address)
    ports = (40_000 + client, 1883) if up else (1883, 40_000 + client)
    tcp = struct.pack("!HHIIBBHHH", *ports, 0, 0, 8 << 4, flags, 501, 0, 0) + TIMESTAMPS + payload
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0x4000, 64, 6, 0) + source + target
    data = bytes(5) + b"\x02" + bytes(5) + b"\x01" + b"\x08\x00" + ip + tcp
    return struct.pack("<IIII", 0, 0, len(data), len(data)) + data


def round_of_all() -> tuple[Bytes, list[tuple[int, bool, int]]]:
    """Returns a PUBLISH of every client and the three packets that follow it, and for each frame its offset
    in bytes, whether the client sent it, and its kind.
    """
    data, places = bytearray(), []
    puback = b"\x40\x02\x00\x07"
    kinds = ((True, 0x18, publish()), (False, 0x10, b""), (False, 0x18, puback), (True, 0x10, b""))
    for client in range(CLIENTS):
        for kind, (up, flags, payload) in enumerate(kinds):
            places.append((len(data), up, kind))
            data += frame(client, up, flags, payload)
    return np.frombuffer(bytes(data), np.uint8), places


def put(data: Bytes, at: npt.NDArray[np.int64], value: npt.NDArray[np.int64], order: str) -> None:
    """Writes 32-bit numbers in the given byte order at many offsets."""
    data[at[:, None] + np.arange(4)] = (value % 2**32).astype(order + "u4").view(np.uint8).reshape(-1, 4)


def numbered(template: Bytes, places: list[tuple[int, bool, int]], index: int) -> bytes:
    """Returns round `index`: the template with its times and sequence numbers, and with the clients in random
    order.
    """
    rng = np.random.default_rng(index)
    order = rng.permutation(CLIENTS)
    data = template.reshape(CLIENTS, -1)[order].reshape(-1)
    at = np.array([place for place, _, _ in places])
    up = np.array([up for _, up, _ in places])
    kind = np.array([kind for _, _, kind in places])
    now = START_NS + (index * len(places) + np.arange(len(places))) * SPACING_NS
    now += rng.integers(0, SPACING_NS, len(places))
    put(data, at, now // 1_000_000_000, "<")
    put(data, at + 4, now % 1_000_000_000, "<")
    size = len(publish())
    first = np.repeat(order, 4) * 11_400_714  # initial sequence numbers far apart, as in real traffic
    client_next, broker_next = first + index * size, first * 2 + index * 4
    sent, answered = size * (kind >= 1), 4 * (kind >= 3)
    put(data, at + 54, np.where(up, client_next + sent, broker_next + answered), ">")
    put(data, at + 58, np.where(up, broker_next + answered, client_next + sent), ">")
    return data.tobytes()


def generate(path: Path, rounds: int) -> int:
    template, places = round_of_all()
    with path.open("wb") as sink:
        sink.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 1))
        for index in range(rounds):
            sink.write(numbered(template, places, index))
    return rounds * len(places)


def seconds(argv: list[str]) -> float:
    """Returns the wall-clock seconds of a process on one core, whose output is discarded; the
    least of TURNS.
    """
    core = str(min(os.sched_getaffinity(0)))
    best, quiet = float("inf"), subprocess.DEVNULL
    for _ in range(TURNS):
        begin = time.perf_counter()
        subprocess.run(["taskset", "-c", core, *argv], check=True, stdout=quiet, stderr=quiet)
        best = min(best, time.perf_counter() - begin)
    return best


def reducer() -> str:
    path = Path(os.environ.get("VNET_REDUCE", ROOT / "target" / "release" / "vnet-reduce"))
    if not path.exists():
        raise SystemExit(f"reduce.py: {path} does not exist; `cargo build --release -p vnet-reduce`")
    return str(path)


def main() -> None:
    tshark = [tool("tshark"), "-n", "-T", "fields", *(part for field in FIELDS for part in ("-e", field))]
    with tempfile.TemporaryDirectory() as folder:
        whole, part = Path(folder, "whole.pcap"), Path(folder, "part.pcap")
        packets = generate(whole, ROUNDS)
        sliced = generate(part, SLICE // (CLIENTS * 4))
        ours = packets / seconds([reducer(), str(whole), str(Path(folder, "out.parquet"))])
        theirs = sliced / seconds([*tshark, "-r", str(part)])
    row = {"name": "reduce one capture, one core", "value": round(ours), "unit": "packets/s"}
    peer = {"peer": f"tshark -T fields ({round(theirs)} packets/s)", "ratio": round(ours / theirs, 1)}
    json.dump([row | peer], sys.stdout)
    print()


main()
