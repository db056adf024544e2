"""Compares the reducer's AMQP 0-9-1 with tshark's dissector: names of frames, content, hierarchy.

tshark 4.0 has no name for a client's greeting of 0-9-1; it learns the version from a whole Connection.Start.
"""

from __future__ import annotations

import random
import struct
import subprocess
from pathlib import Path

import polars as pl
import pytest
from frames import ACK, PSH, START_NS, Frame, ethernet, ipv4, tcp, write
from oracle import need
from test_hierarchy import agree
from test_reducer_apps import Steps, segments
from test_reducer_crafted import stream

from capture.pcap import reduce_pcap

PORT = 5672
FIELDS = ("amqp.type", "amqp.method.class", "amqp.method.method")
OTHERS = {"2": "Content-Header", "3": "Content-Body", "8": "Heartbeat"}
METHODS = {
    (10, 10): "Connection.Start", (10, 11): "Connection.Start-Ok", (10, 51): "Connection.Close-Ok",
    (20, 10): "Channel.Open", (40, 11): "Exchange.Declare-Ok", (50, 10): "Queue.Declare",
    (60, 40): "Basic.Publish", (60, 60): "Basic.Deliver", (60, 80): "Basic.Ack",
    (85, 11): "Confirm.Select-Ok",
}  # fmt: skip


@pytest.fixture(autouse=True)
def tools() -> None:
    need("tshark")


def frame(kind: int, payload: bytes = b"", channel: int = 1) -> bytes:
    return struct.pack("!BHI", kind, channel, len(payload)) + payload + b"\xce"


def method(number: tuple[int, int], arguments: bytes = b"") -> bytes:
    return frame(1, struct.pack("!HH", *number) + arguments)


def message(number: tuple[int, int], arguments: bytes, *pieces: bytes) -> bytes:
    """Returns a message with its content in one body frame for each of `pieces`."""
    header = frame(2, struct.pack("!HHQHB", 60, 0, sum(map(len, pieces)), 1 << 12, 2))
    return method(number, arguments) + header + b"".join(frame(3, piece) for piece in pieces)


START = b"\0\x09" + b"\0\0\0\0" + b"\0\0\0\5PLAIN" + b"\0\0\0\5en_US"
PUBLISH = b"\0\0\1e\1k\0"
DELIVER = b"\1t" + bytes(7) + b"\1\0\1e\1k"
GREETING = b"AMQP\0\0\x09\1"
CONVERSATION: Steps = [
    (False, method((10, 10), START)),
    (True, method((10, 11), bytes(4) + b"\5PLAIN" + bytes(4) + b"\5en_US") + method((20, 10), b"\0")),
    (False, method((40, 11)) + method((85, 11))),
    (True, method((50, 10), b"\0\0\1q\0" + bytes(4))),
    (True, message((60, 40), PUBLISH, b"x" * 500) + message((60, 40), PUBLISH)),
    (False, method((60, 80), bytes(7) + b"\1\0") + frame(8, b"", 0)),
    (False, message((60, 60), DELIVER, b"\xce" * 900, b"AMQP" * 300, b"y")),
    (True, method((60, 80), bytes(7) + b"\1\0") + frame(8, b"", 0) + method((10, 51))),
]
CONTENT = 500 + 900 + 1200 + 1


def theirs(pcap: Path) -> list[list[str]]:
    """Returns the names that tshark gives to the frames that end in each packet."""
    argv = ["tshark", "-n", "-r", str(pcap), "-T", "fields", "-E", "separator=|"]
    argv += [part for field in FIELDS for part in ("-e", field)]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    return [_names(*line.split("|")) for line in said.splitlines()]


def _names(kinds: str, classes: str, methods: str) -> list[str]:
    pairs = zip(classes.split(","), methods.split(","), strict=True)
    named = (METHODS[int(one), int(other)] for one, other in pairs if one)
    return [next(named) if kind == "1" else OTHERS[kind] for kind in kinds.split(",") if kind]


@pytest.mark.parametrize("most", [2, 7, 90, 1400])
def test_every_frame_is_named_where_it_ends(tmp_path: Path, most: int) -> None:
    steps = [(True, 0, GREETING), (False, 0, CONVERSATION[0][1])]
    before = {True: len(GREETING), False: len(CONVERSATION[0][1])}
    cut = segments(CONVERSATION[1:], random.Random(most), most)
    steps += [(up, before[up] + at, data) for up, at, data in cut]
    pcap = write(tmp_path / "a.pcap", stream(steps, port=PORT))
    reduce_pcap(pcap, tmp_path / "a.parquet")
    table = pl.read_parquet(tmp_path / "a.parquet")
    ours = [list(row or ()) for row in table["app_types"].to_list()]
    assert [row for row in ours if "Protocol-Header" in row] == [["Protocol-Header"]]
    assert [[name for name in row if name != "Protocol-Header"] for row in ours] == theirs(pcap)
    sent = sum(len(data) for _, _, data in steps)
    assert table["data_bytes"].sum() == CONTENT and table["app_bytes"].sum() == sent - CONTENT


def test_the_hierarchy_is_tsharks(tmp_path: Path) -> None:
    """Shows that the hierarchy agrees; each packet has a connection of its own, because tshark does not
    dissect retransmissions.
    """
    data = [data for _, data in CONVERSATION for _ in range(3)]
    packets = [
        Frame(ethernet(ipv4(tcp(one, ACK | PSH, ports=(40_000 + n, PORT)))), START_NS + n)
        for n, one in enumerate(data)
    ]
    found = agree(write(tmp_path / "a.pcap", packets))
    assert found["eth:ip:tcp:amqp"] == (len(data), sum(len(one) + 54 for one in data))


@pytest.mark.parametrize(
    "data", [b"HTTP/1.1 400 Bad Request\r\n", bytes(40), b"\1\0\0\0\0\0\4\0\x0a\0\xff\xce"]
)
def test_what_is_not_amqp_is_unknown(tmp_path: Path, data: bytes) -> None:
    counts = reduce_pcap(
        write(tmp_path / "a.pcap", stream([(True, 0, data)], port=PORT)), tmp_path / "a.parquet"
    )
    assert counts.app_unknown == 1 and counts.app_messages == 0


def test_a_stream_is_taken_up_in_its_middle(tmp_path: Path) -> None:
    """Shows that a stream without TCP handshake is dissected if its first captured byte is the start of an
    AMQP frame.
    """
    data = method((60, 80), bytes(9)) + message((60, 60), DELIVER, b"x" * 300)
    reduce_pcap(write(tmp_path / "a.pcap", stream([(False, 0, data)], port=PORT)[3:]), tmp_path / "a.parquet")
    (types,) = pl.read_parquet(tmp_path / "a.parquet")["app_types"].to_list()
    assert types == ["Basic.Ack", "Basic.Deliver", "Content-Header", "Content-Body"]
