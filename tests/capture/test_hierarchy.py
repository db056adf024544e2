"""Compares the bytes by layer and the protocol hierarchy with `tshark -z io,phs`."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import polars as pl
import pytest
from frames import ACK, CONNECT, PSH, START_NS, Frame, arp, ethernet, ipv4, ipv6, publish, tcp, udp, write
from messages import (
    CLIENT_HELLO,
    CONFIGURATION,
    GENEVE,
    GRE,
    MPLS,
    PHASORS,
    VXLAN,
    dns,
    event,
    record,
    request,
    samples,
)
from oracle import need

from capture.hierarchy import hierarchy
from capture.pcap import reduce_pcap

# The test does not compare protocols above these.
LEAVES = (
    *("arp", "icmp", "icmpv6", "igmp", "llc", "data", "dns", "mdns", "http", "tls", "mqtt", "amqp"),
    *("vxlan", "geneve", "gre", "mpls", "sv", "goose", "synphasor"),
)
Found = dict[str, tuple[int, int]]


@pytest.fixture(autouse=True)
def tools() -> None:
    need("tshark")


def theirs(pcap: Path) -> Found:
    """Returns tshark's frames and bytes by protocol path, without reassembly, so that each packet counts its
    own bytes.
    """
    options = ("ip.defragment", "ipv6.defragment", "tcp.desegment_tcp_streams")
    off = [part for option in options for part in ("-o", f"{option}:FALSE")]
    # The dissector `tapa` of tshark accepts any payload of zeros, so random payloads must not be zero.
    argv = ["tshark", "-n", "-r", str(pcap), *off, "--disable-protocol", "tapa", "-q", "-z", "io,phs"]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    found: Found = {}
    stack: list[str] = []
    for line in said.splitlines():
        name, *counts = line.split()[:3] or [""]
        if len(counts) == 2 and counts[0].startswith("frames:"):
            stack[(len(line) - len(line.lstrip())) // 2 :] = [name]
            found[":".join(stack)] = tuple(int(count.partition(":")[2]) for count in counts)  # type: ignore[assignment]
    return found


def ours(table: Path) -> Found:
    rows = hierarchy(pl.scan_parquet(table)).iter_rows(named=True)
    return {row["path"]: (row["packets"], row["wire_bytes"]) for row in rows}


def agree(pcap: Path) -> Found:
    """Asserts that every path of vnet-reduce has tshark's counts, and that tshark's further paths are below a
    leaf; returns the paths.
    """
    table = pcap.with_suffix(".parquet")
    reduce_pcap(pcap, table)
    found, expected = ours(table), theirs(pcap)
    assert found == {path: expected.get(path) for path in found}, expected
    for path in expected.keys() - found.keys():
        parents = [parent for parent in found if path.startswith(parent + ":")]
        assert max(parents, key=len).rpartition(":")[2] in LEAVES, (path, expected)
    return found


def of_each_kind(port: int = 40_000) -> list[bytes]:
    """Returns a frame of each protocol; `port` is the clients' port."""

    def stream(data: bytes, server: int) -> bytes:
        return ethernet(ipv4(tcp(data, ACK | PSH, ports=(port, server))))

    return [
        ethernet(arp(), 0x0806) + bytes(18),
        ethernet(arp(), 0x0806, (0x8100, 7)),
        ethernet(ipv4(b"\x08\0\0\0\0\0\0\0" + bytes(48), 1)),
        ethernet(ipv6(bytes([135, 0, 0, 0]) + bytes(20), 58), 0x86DD),
        ethernet(ipv4(b"\x16\0\0\0\xe0\0\0\1", 2)) + bytes(18),
        ethernet(ipv4(tcp())) + bytes(6),
        stream(b"?" * 9, 9999),
        ethernet(ipv4(udp(b"?" * 9), 17), 0x0800, (0x8100, 3), (0x8100, 4)),
        ethernet(ipv6(udp(b"?" * 9), 17), 0x86DD),
        ethernet(ipv4(udp(b"?" * 90, (5000, 9999))[:48], 17, fragment=0x2000)),
        ethernet(ipv4(udp(b"?" * 90)[48:], 17, fragment=6)),
        ethernet(ipv4(udp(dns(), (5000, 53)), 17)),
        ethernet(ipv4(udp(dns(True), (53, 5000)), 17)),
        ethernet(ipv4(udp(dns(), (5353, 5353)), 17)),
        stream(request(), 80),
        stream(record(22, CLIENT_HELLO), 443),
        stream(CONNECT, 1883),
        ethernet(ipv4(udp(VXLAN, (5000, 4789)), 17)),
        ethernet(ipv4(udp(GENEVE, (5000, 6081)), 17)),
        ethernet(ipv4(GRE, 47)),
        ethernet(MPLS, 0x8847),
        ethernet(b"\x42\x42\x03" + bytes(35), 38),
        ethernet(samples(), 0x88BA),
        ethernet(samples(2), 0x88BA, (0x8100, 0x8000)),
        ethernet(event(), 0x88B8, (0x8100, 0x8005)),
        ethernet(samples()[:-9], 0x88BA),  # the length field states more bytes than the frame has
        ethernet(event()[:30], 0x88B8),
        ethernet(ipv4(udp(PHASORS, (5000, 4713)), 17)),
        ethernet(ipv4(udp(CONFIGURATION, (4713, 5000)), 17)),
        stream(PHASORS, 4712),
    ]


def test_a_capture_with_something_of_each(tmp_path: Path) -> None:
    data = of_each_kind()
    frames = [Frame(one, START_NS + n) for n, one in enumerate(data)]
    found = agree(write(tmp_path / "a.pcap", frames))
    tunnels = {path for path in found if path.rpartition(":")[2] in ("vxlan", "geneve", "gre", "mpls")}
    assert tunnels == {"eth:ip:udp:vxlan", "eth:ip:udp:geneve", "eth:ip:gre", "eth:mpls"}
    assert found["eth"] == (len(data), sum(map(len, data)))


@pytest.mark.parametrize("seed", range(4))
def test_random_captures(tmp_path: Path, seed: int) -> None:
    """Shows that both agree on random captures. Each TCP packet has a connection of its own, because tshark
    does not dissect retransmissions.
    """
    rng = random.Random(seed)
    frames = []
    for number in range(600):
        port, size = 61_000 + number, rng.randrange(1400)
        vlans = [(0x8100, rng.randrange(4096)) for _ in range(rng.randrange(3))]
        noise = tcp(b"?" * size, ACK | PSH, rng.randrange(2**32), ports=(port, 9999))
        kinds = [
            *of_each_kind(port),
            ethernet(ipv4(noise), 0x0800, *vlans),
            ethernet(ipv6(noise), 0x86DD, *vlans),
        ]
        frames.append(Frame(rng.choice(kinds) + bytes(rng.choice([0, 0, 4])), START_NS + number * 1000))
    agree(write(tmp_path / "a.pcap", frames))


def layers(tmp_path: Path, *frames: Frame) -> list[list[int]]:
    names = [f"{layer}_bytes" for layer in ("eth", "vlan", "ip", "transport", "app", "data", "pad")]
    reduce_pcap(write(tmp_path / "a.pcap", frames), tmp_path / "a.parquet")
    return [list(row) for row in pl.read_parquet(tmp_path / "a.parquet", columns=names).rows()]


def test_bytes_by_layer(tmp_path: Path) -> None:
    long = tcp(publish(100, b"topic", 1), options=b"\x01\x01\x08\x0a" + bytes(8))
    routed = ipv6(bytes([6, 0, 1, 4, 0, 0, 0, 0]) + tcp(b"abc", ports=(1, 2)), 0)
    cases = {
        ethernet(ipv4(long, options=b"\x94\x04\0\0"), 0x0800, (0x8100, 5)): [14, 4, 24, 32, 11, 100, 0],
        ethernet(ipv4(tcp(), total=40)) + bytes(6): [14, 0, 20, 20, 0, 0, 6],
        ethernet(arp(), 0x0806) + bytes(18): [14, 0, 28, 0, 0, 0, 18],
        ethernet(samples(), 0x88BA, (0x8100, 0x8000)): [14, 4, 0, 0, 38, 64, 0],
        ethernet(samples(2), 0x88BA): [14, 0, 0, 0, 63, 128, 0],
        ethernet(event(), 0x88B8): [14, 0, 0, 0, len(event()) - 8, 8, 0],
        ethernet(ipv4(udp(PHASORS, (5000, 4713)), 17)): [14, 0, 20, 8, 16, 36, 0],
        ethernet(ipv4(udp(CONFIGURATION, (5000, 4713)), 17)): [14, 0, 20, 8, 454, 0, 0],
        ethernet(routed, 0x86DD): [14, 0, 48, 20, 0, 3, 0],
        ethernet(ipv4(bytes(40), 1)): [14, 0, 20, 8, 0, 32, 0],
        ethernet(ipv4(bytes(40), 99)): [14, 0, 20, 0, 0, 40, 0],
        ethernet(ipv4(udp(b"?" * 20)[:20], 17, fragment=0x2000)): [14, 0, 20, 8, 0, 12, 0],
        ethernet(ipv4(bytes(20), 17, fragment=9)): [14, 0, 20, 0, 0, 20, 0],
        ethernet(ipv4(udp(dns(), (5000, 53)), 17)): [14, 0, 20, 8, 29, 0, 0],
        ethernet(bytes(50), 0x88B5): [14, 0, 0, 0, 0, 50, 0],
        ethernet(b"\x42\x42\x03" + bytes(43), 38): [14, 0, 0, 0, 0, 38, 8],
        ethernet(ipv4(udp(VXLAN, (5000, 4789)), 17)): [14, 0, 20, 8, 8, len(VXLAN) - 8, 0],
        ethernet(ipv4(udp(GENEVE, (5000, 6081)), 17)): [14, 0, 20, 8, 12, len(GENEVE) - 12, 0],
        ethernet(ipv4(GRE, 47)): [14, 0, 20, 0, 8, len(GRE) - 8, 0],
        ethernet(MPLS, 0x8847): [14, 0, 0, 0, 8, len(MPLS) - 8, 0],
        b"short": [0, 0, 0, 0, 0, 5, 0],
    }  # fmt: skip
    assert layers(tmp_path, *map(Frame, cases)) == list(cases.values())


def test_a_cut_frame_counts_what_its_headers_say(tmp_path: Path) -> None:
    whole = Frame(ethernet(ipv4(udp(b"?" * 100), 17)))
    found = layers(tmp_path, *(whole.cut(size) for size in (60, 42, 38, 20, 9)))
    assert found[:2] == [[14, 0, 20, 8, 0, 100, 0]] * 2
    assert found[2:] == [[14, 0, 20, 0, 0, 108, 0], [14, 0, 0, 0, 0, 128, 0], [0, 0, 0, 0, 0, 142, 0]]
