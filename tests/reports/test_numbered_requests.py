"""Tests the figures of DNS, MQTT and HTTP/2 requests in captures against the messages and times that tshark
finds.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path

import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "capture"))
from frames import START_NS, Frame, ethernet, ipv4, udp, write
from oracle import need
from test_reducer_crafted import MS, stream

from capture.pcap import reduce_pcap
from reports.metrics.answers import requests

Steps = list[tuple[bool, bytes]]
CLIENT, SERVER = "10.0.0.1", "10.0.0.2"


@pytest.fixture(autouse=True)
def tools() -> None:
    need("tshark")


def connection(steps: Steps, port: int) -> list[Frame]:
    """Returns the frames of a connection in which each step is one segment, 10 ms apart."""
    at, cut = {True: 0, False: 0}, []
    for up, data in steps:
        cut.append((up, at[up], data))
        at[up] += len(data)
    return stream(cut, port=port)


def found(place: Path, frames: Iterable[Frame], protocol: str) -> tuple[pl.DataFrame, int]:
    pcap = write(place / "some.pcap", frames)
    table, connections = place / "some.parquet", place / "connections.parquet"
    reduce_pcap(pcap, table, {}, connections)
    return requests(pl.scan_parquet(table), pl.read_parquet(connections), protocol)


def tshark(pcap: Path, shown: str, *fields: str) -> list[list[list[str]]]:
    """Returns the values of each field in each packet that matches the filter."""
    options = [word for field in fields for word in ("-e", field)]
    argv = ["tshark", "-n", "-r", str(pcap), "-Y", shown, "-T", "json", *options, "--no-duplicate-keys"]
    said = json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)
    layers = [one["_source"]["layers"] for one in said]
    return [[layer.get(field, []) for field in fields] for layer in layers]


def times_ms(rows: pl.DataFrame) -> list[float | None]:
    return ((rows["answered_ns"] - rows["asked_ns"]) / MS).to_list()


def query(number: int, name: bytes, answer: int | None = None) -> bytes:
    """Returns a DNS query, or with a response code the answer to it."""
    flags = 0x0100 if answer is None else 0x8180 | answer
    question = bytes([len(name)]) + name + b"\0" + struct.pack("!HH", 1, 1)
    return struct.pack("!HHHHHH", number, flags, 1, 0, 0, 0) + question


def datagrams(steps: list[tuple[bool, int, bytes]]) -> list[Frame]:
    """Returns datagrams between a client's port and port 53, 10 ms apart."""
    frames = []
    for number, (up, port, data) in enumerate(steps):
        ports, ends = ((port, 53), (CLIENT, SERVER)) if up else ((53, port), (SERVER, CLIENT))
        packet = ipv4(udp(data, ports=ports), 17, *ends)
        frames.append(Frame(ethernet(packet), START_NS + number * 10 * MS))
    return frames


DNS = [
    (True, 4000, query(7, b"one")),
    (True, 4001, query(7, b"two")),  # the same number, from another port
    (False, 4001, query(7, b"two", 3)),
    (False, 4000, query(7, b"one", 0)),
    (True, 4000, query(9, b"three")),
    (True, 4000, query(9, b"three")),  # retransmitted query
    (False, 4000, query(9, b"three", 2)),
    (False, 4000, query(9, b"three", 2)),  # repeated answer
    (True, 4000, query(10, b"lost")),
    (False, 4000, query(11, b"stray", 0)),
]


def test_times_of_dns_are_those_of_tshark(tmp_path: Path) -> None:
    rows, left_out = found(tmp_path, datagrams(DNS), "dns")
    assert times_ms(rows) == [30, 10, 20, None] and left_out == 0
    assert rows["status"].to_list() == ["RESPONSE", "NXDOMAIN", "SERVFAIL", None]
    assert rows["error"].to_list() == [False, True, True, False]
    theirs = tshark(tmp_path / "some.pcap", "dns.time && !dns.retransmit_response", "dns.id", "dns.time")
    by_tool = sorted(round(1e3 * float(time)) for _, (time,) in theirs)
    assert by_tool == sorted(round(time) for time in times_ms(rows) if time is not None)


def test_dns_over_tcp(tmp_path: Path) -> None:
    long = [struct.pack("!H", len(one)) + one for one in (query(1, b"a"), query(2, b"b"))]
    back = [struct.pack("!H", len(one)) + one for one in (query(2, b"b", 0), query(1, b"a", 5))]
    steps = [(True, long[0] + long[1]), (False, back[0]), (False, back[1])]
    rows, _ = found(tmp_path, connection(steps, 53), "dns")
    assert times_ms(rows) == [20, 10] and rows["status"].to_list() == ["REFUSED", "RESPONSE"]


def packet(kind: int, body: bytes = b"", flags: int = 0) -> bytes:
    return bytes([kind << 4 | flags, len(body)]) + body


def publishes(number: int, qos: int) -> bytes:
    identifier = struct.pack("!H", number) if qos else b""
    return packet(3, b"\0\1t" + identifier + b"xx", qos << 1)


def numbered(kind: int, number: int, rest: bytes = b"", flags: int = 0) -> bytes:
    return packet(kind, struct.pack("!H", number) + rest, flags)


MQTT: Steps = [
    (True, packet(1, b"\0\4MQTT\4\2\0\x3c\0\1c")),
    (False, packet(2, b"\0\0")),
    (True, numbered(8, 1, b"\0\1a\1", 2) + publishes(2, 1)),
    (False, numbered(4, 2)),
    (False, numbered(9, 1, b"\x80")),  # the broker rejects the subscription
    (True, publishes(0, 0) + publishes(3, 2)),
    (False, publishes(3, 1) + numbered(5, 3)),  # the broker's own message, with the same number
    (True, numbered(4, 3) + numbered(6, 3, flags=2)),
    (False, numbered(7, 3)),
    (True, publishes(2, 1)),  # the number is used again
    (False, numbered(4, 2)),
    (True, packet(12) + publishes(4, 1)),
    (False, packet(13)),
]


def test_mqtt_acknowledgements(tmp_path: Path) -> None:
    rows, left_out = found(tmp_path, connection(MQTT, 1883), "mqtt")
    assert left_out == 0
    assert list(zip(rows["kind"], times_ms(rows), rows["error"], strict=True)) == [
        ("CONNECT", 10, False),
        ("SUBSCRIBE", 20, True),
        ("PUBLISH", 10, False),
        ("PUBLISH", 30, False),
        ("PUBLISH", 10, False),
        ("PINGREQ", 10, False),
        ("PUBLISH", None, False),
    ]


def test_the_times_of_mqtt_are_those_between_the_packets_of_tshark(tmp_path: Path) -> None:
    """Compares the times with those from tshark's output, paired independently: each acknowledgement is
    paired with the latest earlier packet of its number.
    """
    rows, _ = found(tmp_path, connection(MQTT, 1883), "mqtt")
    shown = tshark(
        tmp_path / "some.pcap", "mqtt", "frame.time_epoch", "tcp.dstport", "mqtt.msgtype", "mqtt.msgid"
    )
    open_since: dict[tuple[str, str], float] = {}
    times = []
    for (time,), (port,), kinds, numbers in shown:
        left = list(numbers)
        for kind in kinds:
            own = left.pop(0) if kind not in ("1", "2", "12", "13") and left else ""
            if port == "1883" and kind in ("1", "3", "8", "12"):
                open_since["3" if kind == "3" else kind, own] = float(time)
            elif port != "1883" and kind in ("2", "4", "7", "9", "13"):
                asked = {"2": "1", "4": "3", "7": "3", "9": "8", "13": "12"}[kind]
                times.append(round(1e3 * (float(time) - open_since.pop((asked, own)))))
    assert sorted(times) == sorted(round(one) for one in times_ms(rows) if one is not None)


def frame(kind: int, flags: int, number: int, content: bytes) -> bytes:
    return len(content).to_bytes(3, "big") + bytes([kind, flags]) + number.to_bytes(4, "big") + content


def text(value: bytes) -> bytes:
    return bytes([len(value)]) + value


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
PATH = b"\x86\x44" + text(b"/p.S/M") + b"\x41" + text(b"server")  # scheme, path and authority
POST, GET = b"\x83" + PATH, b"\x82" + PATH
OK, TRAILER = b"\x88", b"\x40" + text(b"grpc-status")
END_STREAM, END_HEADERS, BOTH = 1, 4, 5
HTTP2: Steps = [
    (True, PREFACE + frame(4, 0, 0, b"") + frame(1, END_HEADERS, 1, POST)),
    (False, frame(4, 0, 0, b"") + frame(4, 1, 0, b"")),
    (True, frame(0, END_STREAM, 1, b"\0\0\0\0\2hi") + frame(1, BOTH, 3, GET)),
    (False, frame(1, END_HEADERS, 3, OK) + frame(0, END_STREAM, 3, b"x" * 300)),
    (False, frame(1, END_HEADERS, 1, OK) + frame(0, 0, 1, b"\0\0\0\0\2ho")),
    (False, frame(1, BOTH, 1, TRAILER + text(b"5"))),
    (True, frame(1, BOTH, 5, GET) + frame(1, BOTH, 7, GET) + frame(1, BOTH, 9, GET)),
    (False, frame(1, END_HEADERS, 9, b"\x08" + text(b"103")) + frame(1, BOTH, 9, b"\x8d")),
    (False, frame(3, 0, 5, struct.pack("!I", 8)) + frame(7, 0, 0, bytes(8))),
]


@pytest.mark.parametrize("port", [50051, 80])
def test_calls_of_grpc_and_requests_of_http2(tmp_path: Path, port: int) -> None:
    rows, left_out = found(tmp_path, connection(HTTP2, port), "http2")
    assert left_out == 0
    seen = zip(rows["kind"], rows["status"], times_ms(rows), rows["error"], strict=True)
    assert sorted(seen, key=str) == sorted(
        [
            ("GET", "200", 10, False),
            ("POST", "GRPC_5", 30, True),
            ("GET", "404", 10, False),
            ("GET", "RST_STREAM", 20, True),
            ("GET", None, None, False),
        ],
        key=str,
    )
    ended = rows.filter(pl.col("status") != "RST_STREAM")
    ours = [round(time, 3) for time in times_ms(ended) if time is not None]
    assert sorted(ours) == sorted(tshark_ends(tmp_path / "some.pcap", port))


def tshark_ends(pcap: Path, port: int) -> list[float]:
    """Returns the times in ms from the end of each stream's request to the end of its response, as tshark
    dissects them.
    """
    argv = ["tshark", "-n", "-r", str(pcap), "-d", f"tcp.port=={port},http2", "-Y", "http2", "-T", "pdml"]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    ends: dict[tuple[str, bool], float] = {}
    for one in ET.fromstring(said).iter("packet"):
        (time,) = (f.get("show") for f in one.iter("field") if f.get("name") == "frame.time_epoch")
        (to,) = (f.get("show") for f in one.iter("field") if f.get("name") == "tcp.dstport")
        for part in one.iter("field"):
            if part.get("name") != "http2.stream":
                continue
            inside = {f.get("name"): f.get("show") for f in part.iter("field")}
            if inside.get("http2.flags.end_stream") in ("1", "True"):
                ends[str(inside["http2.streamid"]), to == str(port)] = float(str(time))
    numbers = {number for number, _ in ends}
    both = [n for n in numbers if (n, True) in ends and (n, False) in ends]
    return [round(1e3 * (ends[n, False] - ends[n, True]), 3) for n in both]


def test_a_connection_that_cannot_be_followed_is_left_out(tmp_path: Path) -> None:
    frames = connection(HTTP2, 50051)
    rows, left_out = found(tmp_path, frames[:5] + frames[6:], "http2")  # a frame is missing
    assert (rows.height, left_out) == (0, 1)
    later, left_out = found(tmp_path, connection(MQTT, 1883)[4:], "mqtt")
    assert (later.height, left_out) == (0, 1)
