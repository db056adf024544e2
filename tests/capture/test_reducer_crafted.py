"""Compares vnet-reduce with tshark on crafted frames: link types, VLANs, fragments, IPv6, cut frames, MQTT
streams.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path

import pytest
from frames import (
    ACK,
    CONNACK,
    CONNECT,
    FIN,
    PSH,
    RST,
    START_NS,
    SYN,
    Frame,
    arp,
    ethernet,
    ipv4,
    ipv6,
    mqtt,
    publish,
    tcp,
    udp,
    write,
)  # fmt: skip
from oracle import IN_ORDER, assert_agree, need, reduced

MS = 1_000_000


@pytest.fixture(autouse=True)
def tools() -> None:
    need("tshark")


def stream(
    steps: list[tuple[bool, int, bytes]], gap_ns: int = 10 * MS, first: int = 1000, port: int = 1883
) -> list[Frame]:
    """Returns the frames of a connection: the handshake, then (upwards, offset in the direction's stream,
    bytes) in the given order.
    """
    packets = [
        (True, SYN, first - 1, 0, b""),
        (False, SYN | ACK, 4999, first, b""),
        (True, ACK, first, 5000, b""),
    ]
    highest = {True: first, False: 5000}
    for up, offset, data in steps:
        seq = (first if up else 5000) + offset
        packets.append((up, ACK | PSH, seq, highest[not up], data))
        highest[up] = max(highest[up], seq + len(data))
    frames = []
    for number, (up, flags, seq, ack, data) in enumerate(packets):
        ends = ("10.0.0.1", "10.0.0.2") if up else ("10.0.0.2", "10.0.0.1")
        ports = (40000, port) if up else (port, 40000)
        segment = tcp(data, flags, seq, ack, ports)
        frames.append(Frame(ethernet(ipv4(segment, 6, *ends)), START_NS + number * gap_ns))
    return frames


@pytest.mark.parametrize("nano", [True, False])
@pytest.mark.parametrize("order", ["<", ">"])
def test_byte_orders_and_resolutions(tmp_path: Path, order: str, nano: bool) -> None:
    frames = stream([(True, 0, CONNECT), (False, 0, CONNACK)])
    pcap = write(tmp_path / "a.pcap", frames, order, nano)
    ours, counts = assert_agree(pcap, tmp_path / "a.parquet")
    assert counts.nanosecond is nano and ours[0]["t_ns"] == (START_NS if nano else START_NS // 1000 * 1000)
    assert [row["app_types"] for row in ours[3:]] == [["CONNECT"], ["CONNACK"]]


def test_vlan_arp_icmp_options_and_padding(tmp_path: Path) -> None:
    segment = tcp(CONNECT, ACK | PSH)
    frames = [
        ethernet(ipv4(segment), 0x0800, (0x8100, 0x2064)),
        ethernet(ipv4(segment), 0x0800, (0x88A8, 300), (0x8100, 100)),
        ethernet(ipv4(segment), 0x0800, (0x8100, 5), (0x8100, 6)),
        ethernet(arp(), 0x0806),
        ethernet(arp(), 0x0806, (0x8100, 7)),
        ethernet(ipv4(b"\x08\0\0\0" + bytes(60), 1)),
        ethernet(ipv4(tcp(options=b"\x01\x01\x08\x0a" + bytes(8)), options=b"\x94\x04\0\0")),
        ethernet(ipv4(tcp(flags=ACK))) + bytes(6),  # padded to 60 bytes: no payload
        ethernet(ipv4(udp(b"hello"), 17)) + bytes(13),
        ethernet(b"\xaa\xaa\x03" + bytes(40), 43),  # 802.3 with a length
        ethernet(bytes(50), 0x88CC),
        ethernet(ipv4(bytes(30), 47)),
        ethernet(ipv4(tcp(b"x" * 100, ACK | 0x1C0, 77), total=0)),  # segmentation offload leaves the length 0
    ]
    pcap = write(tmp_path / "a.pcap", [Frame(data, START_NS + n * MS) for n, data in enumerate(frames)])
    ours, counts = assert_agree(
        pcap, tmp_path / "a.parquet", without=("app_types",)
    )  # the beginning of these streams is not captured; the next tests compare app_types
    assert [row["vlan"] for row in ours[:3]] == [100, 300, 5] and counts.unknown == 2


def test_ipv6_and_its_extension_headers(tmp_path: Path) -> None:
    plain = tcp(b"data", ACK | PSH)
    hop = bytes([6, 0, 1, 4, 0, 0, 0, 0])
    routed = bytes([60, 2, 4, 0]) + bytes(20) + bytes([6, 0, 1, 4, 0, 0, 0, 0])
    whole = struct.pack("!BBHI", 6, 0, 0, 9)  # a whole packet that has a fragment header ("atomic fragment")
    frames = [
        ethernet(ipv6(plain), 0x86DD),
        ethernet(ipv6(hop + plain, 0), 0x86DD),
        ethernet(ipv6(routed + plain, 43), 0x86DD),
        ethernet(ipv6(whole + tcp(b"data", ACK | PSH, seq=5), 44), 0x86DD),
        ethernet(ipv6(udp(b"x" * 9), 17, "fe80::1", "ff02::fb"), 0x86DD),
        ethernet(ipv6(bytes([135, 0, 0, 0]) + bytes(20), 58, "::", "::1"), 0x86DD),
    ]
    pcap = write(tmp_path / "a.pcap", [Frame(data, START_NS + n * MS) for n, data in enumerate(frames)])
    assert_agree(pcap, tmp_path / "a.parquet", without=("app_types",))


def test_fragments_are_packets_of_their_own(tmp_path: Path) -> None:
    """Shows that each fragment is a packet of its own: only the first has ports and payload bytes, which
    tshark does not give.
    """
    segment = tcp(b"y" * 64, ACK | PSH)
    frames = [
        ethernet(ipv4(segment[:40], fragment=0x2000)),
        ethernet(ipv4(segment[40:], fragment=5)),
        ethernet(ipv4(udp(b"z" * 64)[:40], 17, fragment=0x2000)),
        ethernet(ipv4(udp(b"z" * 64)[40:], 17, fragment=5)),
        ethernet(ipv6(struct.pack("!BBHI", 6, 0, 1, 9) + segment[:40], 44), 0x86DD),
        ethernet(ipv6(struct.pack("!BBHI", 6, 0, 40, 9) + segment[40:], 44), 0x86DD),
    ]
    pcap = write(tmp_path / "a.pcap", [Frame(data, START_NS + n * MS) for n, data in enumerate(frames)])
    ours, _ = assert_agree(pcap, tmp_path / "a.parquet", without=("payload_bytes", "app_types"))
    assert [row["src_port"] for row in ours] == [40000, None, 5000, None, 40000, None]
    assert [row["payload_bytes"] for row in ours] == [20, None, 64, None, 20, None]


@pytest.mark.parametrize(("link", "head"), [
    (113, b"\0\0\0\1\0\6" + bytes(8) + b"\x08\0"),
    (276, b"\x08\0\0\0\0\0\0\2\0\1\0\6" + bytes(8)), (101, b""),
    (228, b""), (0, b"\2\0\0\0"), (108, b"\0\0\0\2"),
])  # fmt: skip
def test_other_links(tmp_path: Path, link: int, head: bytes) -> None:
    frames = [Frame(head + ipv4(tcp(seq=9 + n))) for n in range(3)]
    ours, counts = assert_agree(write(tmp_path / "a.pcap", frames, link=link), tmp_path / "a.parquet")
    assert ours[0]["src"] == "10.0.0.1" and counts.unknown == 0


def test_an_unknown_link_keeps_times_and_lengths(tmp_path: Path) -> None:
    pcap = write(tmp_path / "a.pcap", [Frame(b"abc")], link=147)
    ours, counts = reduced(pcap, tmp_path / "a.parquet")
    assert counts.unknown == 1 and ours[0]["wire_bytes"] == 3 and ours[0]["src"] is None


@pytest.mark.parametrize("size", [13, 20, 36, 40, 47, 49, 50, 54, 60, 96])
def test_frames_cut_by_the_snap_length(tmp_path: Path, size: int) -> None:
    frames = [frame.cut(size) for frame in stream([(True, 0, CONNECT), (True, len(CONNECT), publish(700))])]
    # tshark does not reassemble segments that the snaplen cut; it shows the MQTT headers that are in the
    # captured part.
    assert_agree(write(tmp_path / "a.pcap", frames), tmp_path / "a.parquet", without=("app_types",))


def test_mqtt_in_cut_frames_is_followed_by_its_lengths(tmp_path: Path) -> None:
    body = publish(700, qos=1)
    steps = [(True, 0, CONNECT)] + [(True, len(CONNECT) + n * len(body), body) for n in range(3)]
    frames = [frame.cut(96) for frame in stream(steps)]
    ours, counts = reduced(write(tmp_path / "a.pcap", frames), tmp_path / "a.parquet")
    assert [row["app_types"] for row in ours[3:]] == [["CONNECT"]] + [["PUBLISH"]] * 3
    assert counts.app_unknown == 0 and counts.snapped == 3


def test_a_header_in_the_cut_part_is_unknown_and_then_found_again(tmp_path: Path) -> None:
    two = publish(100) + publish(100)
    steps = [(True, 0, two), (True, len(two), publish(20)), (True, len(two) + len(publish(20)), mqtt(12))]
    frames = [frame.cut(96) for frame in stream(steps)]
    ours, _ = reduced(write(tmp_path / "a.pcap", frames), tmp_path / "a.parquet")
    assert [row["app_types"] for row in ours[3:]] == [["PUBLISH", "UNKNOWN"], ["PUBLISH"], ["PINGREQ"]]


CHAIN = (
    CONNECT + publish(300) + publish(10, qos=2) + mqtt(6, b"\0\1", 2) + publish(1500) + mqtt(12) + mqtt(14)
)


def cuts(*at: int) -> list[tuple[bool, int, bytes]]:
    ends = [0, *at, len(CHAIN)]
    return [(True, low, CHAIN[low:high]) for low, high in pairwise(ends)]


@pytest.mark.parametrize(
    "at", [(), (1,), (2, 3), (14, 15, 16), (100, 200, 318, 319, 340), (1000, 1840, 1850)]
)
def test_mqtt_over_any_segmentation(tmp_path: Path, at: tuple[int, ...]) -> None:
    ours, _ = assert_agree(write(tmp_path / "a.pcap", stream(cuts(*at))), tmp_path / "a.parquet")
    found = [kind for row in ours for kind in row["app_types"] or []]
    assert found == ["CONNECT", "PUBLISH", "PUBLISH", "PUBREL", "PUBLISH", "PINGREQ", "DISCONNECT"]


@pytest.mark.parametrize("gap_ns", [MS // 2, 10 * MS, 300 * MS])
def test_mqtt_out_of_order_and_retransmitted(tmp_path: Path, gap_ns: int) -> None:
    a, b, c, d = cuts(100, 700, 1200)
    for number, steps in enumerate(([a, c, b, d], [a, c, d, b], [a, a, b, b, c, d, a], [a, d, c, b, c])):
        pcap = write(tmp_path / f"{number}.pcap", stream(steps, gap_ns))
        ours, _ = assert_agree(pcap, tmp_path / "a.parquet", *IN_ORDER)
        found = [kind for row in ours for kind in row["app_types"] or []]
        assert found == ["CONNECT", "PUBLISH", "PUBLISH", "PUBREL", "PUBLISH", "PINGREQ", "DISCONNECT"], (
            number
        )


def test_a_gap_that_was_acknowledged_is_only_missing_in_the_capture(tmp_path: Path) -> None:
    long = publish(3000)
    pieces = [(True, at, long[at : at + 1000]) for at in range(0, len(long), 1000)]
    frames = stream(
        [*pieces, (False, 0, mqtt(13)), (True, len(long), publish(5)), (True, len(long) + 12, mqtt(12))]
    )
    del frames[4]  # the second thousand of the PUBLISH
    ours, counts = reduced(write(tmp_path / "a.pcap", frames), tmp_path / "a.parquet")
    assert [row["app_types"] for row in ours if row["dst_port"] == 1883][-2:] == [
        ["PUBLISH", "PUBLISH"],
        ["PINGREQ"],
    ]
    assert counts.app_unknown == 0


def test_a_stream_whose_beginning_is_missing(tmp_path: Path) -> None:
    frames = (
        stream(cuts(400, 700))[4:]
        + stream([(True, len(CHAIN), publish(9)), (True, len(CHAIN) + 16, mqtt(12))])[3:]
    )
    ours, _ = reduced(write(tmp_path / "a.pcap", frames), tmp_path / "a.parquet")
    assert [row["app_types"] for row in ours] == [["UNKNOWN"], ["UNKNOWN"], ["PUBLISH"], ["PINGREQ"]]


def test_ports_used_again_begin_another_stream(tmp_path: Path) -> None:
    first = stream([(True, 0, CONNECT), (False, 0, CONNACK)])
    end = [Frame(ethernet(ipv4(tcp(b"", FIN | ACK, 1000 + len(CONNECT), 5004))), START_NS + 80 * MS)]
    again = [Frame(f.data, f.t_ns + 100 * MS) for f in stream([(True, 0, CONNECT)], first=77_000)]
    reset = [Frame(ethernet(ipv4(tcp(b"bye", RST | ACK, 77_000 + len(CONNECT), 5000))), START_NS + 200 * MS)]
    once_more = [Frame(frame.data, frame.t_ns + 300 * MS) for frame in first]
    pcap = write(tmp_path / "a.pcap", first + end + again + reset + once_more)
    ours, counts = assert_agree(pcap, tmp_path / "a.parquet")
    assert counts.streams == 3 and ours[-1]["stream"] == 2


def test_a_mqtt_port_of_its_own(tmp_path: Path) -> None:
    from capture.pcap import reduce_pcap

    frames = stream([(True, 0, CONNECT)])
    moved = [Frame(f.data.replace(struct.pack("!H", 1883), struct.pack("!H", 2000)), f.t_ns) for f in frames]
    pcap = write(tmp_path / "a.pcap", moved)
    assert reduce_pcap(pcap, tmp_path / "a.parquet").app_messages == 0
    assert reduce_pcap(pcap, tmp_path / "a.parquet", {"mqtt": (1883, 2000)}).app_messages == 1
