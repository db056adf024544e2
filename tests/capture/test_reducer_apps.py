"""Tests the dissectors of application protocols: message types against tshark's, bytes against those that
were sent.
"""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import polars as pl
import pytest
from frames import Frame, ethernet, ipv4, mqtt, publish, udp, write
from messages import (
    CHANGE_CIPHER,
    CLIENT_HELLO,
    HELLO_DONE,
    SERVER_HELLO,
    chunked,
    dns,
    handshake,
    prefixed,
    record,
    request,
    response,
    vnet,
)
from oracle import need
from test_reducer_crafted import stream

from capture.errors import CaptureError
from capture.pcap import reduce_pcap

FIELDS = ("http.request.method", "http.response.code", "dns.flags.response", "tls.handshake.type",
          "tls.record.content_type")  # fmt: skip
HANDSHAKES = {
    "1": "CLIENT_HELLO",
    "2": "SERVER_HELLO",
    "14": "SERVER_HELLO_DONE",
    "16": "CLIENT_KEY_EXCHANGE",
}
RECORDS = {"20": "CHANGE_CIPHER_SPEC", "21": "ALERT", "23": "APPLICATION_DATA"}
Steps = list[tuple[bool, bytes]]


@pytest.fixture(autouse=True)
def tools() -> None:
    need("tshark")


def tshark(pcap: Path) -> list[set[str]]:
    """Returns the names of the messages that end in each frame; encrypted handshakes are left out."""
    argv = [
        "tshark",
        "-n",
        "-r",
        str(pcap),
        "-o",
        "tcp.reassemble_out_of_order:TRUE",
        "-T",
        "fields",
        "-E",
        "separator=|",
    ]
    argv += [part for field in FIELDS for part in ("-e", field)]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    return [_names(*(column.split(",") for column in line.split("|"))) for line in said.splitlines()]


def _names(
    methods: list[str], codes: list[str], flags: list[str], handshakes: list[str], records: list[str]
) -> set[str]:
    answers = {"0": "QUERY", "1": "RESPONSE", "False": "QUERY", "True": "RESPONSE"}
    found = {*methods, *codes, *(answers.get(flag, "") for flag in flags)}
    found |= {HANDSHAKES.get(kind, "") for kind in handshakes} | {RECORDS.get(kind, "") for kind in records}
    return found - {""}


def ours(pcap: Path, app: str, *ports: int) -> pl.DataFrame:
    table = pcap.with_suffix(".parquet")
    reduce_pcap(pcap, table, {app: ports} if ports else {})
    found = pl.read_parquet(table)
    assert set(found["app"].drop_nulls()) == {app}
    return found


def types(table: pl.DataFrame) -> list[str]:
    return [kind for row in table["app_types"].drop_nulls() for kind in row]


def segments(steps: Steps, rng: random.Random, most: int) -> list[tuple[bool, int, bytes]]:
    """Cuts the bytes of the steps into segments of random size, in the order of the steps."""
    cut, at = [], {True: 0, False: 0}
    for up, data in steps:
        while data:
            size = rng.randrange(1, most)
            cut.append((up, at[up], data[:size]))
            at[up], data = at[up] + len(data[:size]), data[size:]
    return cut


HTTP: Steps = [
    (True, request("/a")),
    (False, response(b"x" * 700)),
    (True, request("/b" + "c" * 300, "POST", b"y" * 300)),
    (False, response(status="204 No Content", fields="")),
    (True, request("/d") + request("/e")),
    (False, chunked(b"z" * 20, b"z" * 500) + response(b"?", "404 Not Found")),
    (True, request("/f", "PUT", b"y", "Expect: 100-continue\r\n")),
    (False, response(status="100 Continue", fields="") + response(status="201 Created")),
]
HTTP_TYPES = ["GET", "200", "POST", "204", "GET", "GET", "200", "404", "PUT", "100", "201"]
TLS: Steps = [
    (True, record(22, CLIENT_HELLO)),
    (False, record(22, SERVER_HELLO) + record(22, HELLO_DONE)),
    (True, record(22, handshake(16, bytes(33))) + CHANGE_CIPHER + record(22, b"e" * 40)),
    (False, CHANGE_CIPHER + record(22, b"e" * 40)),
    (True, record(23, b"d" * 500)),
    (False, record(23, b"d" * 1800) + record(23, b"d" * 9)),
    (True, record(21, b"a" * 30)),
]
FINISHED = ["CHANGE_CIPHER_SPEC", "ENCRYPTED_HANDSHAKE"]
HELLOS = ["CLIENT_HELLO", "SERVER_HELLO", "SERVER_HELLO_DONE", "CLIENT_KEY_EXCHANGE"]
TLS_TYPES = [*HELLOS, *FINISHED, *FINISHED, *["APPLICATION_DATA"] * 3, "ALERT"]
DNS: Steps = [
    (True, len(dns()).to_bytes(2, "big") + dns()),
    (False, len(dns(True)).to_bytes(2, "big") + dns(True)),
] * 3
CASES = {
    "http": (HTTP, 80, HTTP_TYPES, 700 + 300 + 20 + 500 + 1 + 1),
    "tls": (TLS, 443, TLS_TYPES, 500 + 1800 + 9),
    "dns": (DNS, 53, ["QUERY", "RESPONSE"] * 3, 0),
}


@pytest.mark.parametrize("most", [2, 7, 90, 1400])
@pytest.mark.parametrize("app", CASES)
def test_streams_agree_with_tshark(tmp_path: Path, app: str, most: int) -> None:
    steps, port, expected, payload = CASES[app]
    frames = stream(segments(steps, random.Random(most), most), port=port)
    table = ours(write(tmp_path / "a.pcap", frames), app)
    assert types(table) == expected and table["data_bytes"].sum() == payload
    if app == "http" and most == 2:
        return  # tshark misses the end of a chunk that arrives byte by byte
    found = [set(row or ()) - {"ENCRYPTED_HANDSHAKE"} for row in table["app_types"].to_list()]
    assert found == tshark(tmp_path / "a.pcap")


def test_bodies_whose_length_is_not_in_the_head(tmp_path: Path) -> None:
    """Tests responses to HEAD, which have no body, and tunnels (CONNECT), in segments, against fixed values,
    because tshark dissects neither.
    """
    head = [
        (True, request("/", "HEAD")),
        (False, response(fields="Content-Length: 900\r\n") + response(b"x")),
    ]
    endless = [(True, request()), (False, response(b"x" * 50, fields="") + request() * 3)]
    tunnel = [(True, request("a:1", "CONNECT")), (False, response(fields="") + b"\0\1\2" * 20)]
    upgraded = response(status="101 Switching Protocols", fields="") + b"\x81\1a"
    cases: list[tuple[Steps, list[str]]] = [
        (head, ["HEAD", "200", "200"]),
        (endless, ["GET", "200"]),
        (tunnel, ["CONNECT", "200"]),
        ([(True, request()), (False, upgraded)], ["GET", "101"]),
    ]
    for steps, expected in cases:
        frames = stream(segments(steps, random.Random(1), 40), port=8080)
        assert types(ours(write(tmp_path / "a.pcap", frames), "http")) == expected


@pytest.mark.parametrize(
    ("port", "data"),
    [(80, b"SSH-2.0-x\r\n"), (80, b"GETX / HTTP/1.1\r\n"), (443, b"GET / HTTP/1.1\r\n"), (53, bytes(40))],
)
def test_what_is_not_the_ports_protocol_is_unknown(tmp_path: Path, port: int, data: bytes) -> None:
    pcap = write(tmp_path / "a.pcap", stream([(True, 0, data)], port=port))
    counts = reduce_pcap(pcap, tmp_path / "a.parquet")
    assert types(pl.read_parquet(tmp_path / "a.parquet")) == ["UNKNOWN"] and counts.app_unknown == 1
    assert counts.app_messages == 0


def test_a_gap_in_a_body_is_skipped_and_one_in_a_head_is_not(tmp_path: Path) -> None:
    first, last = response(b"x" * 3000), response(b"y")
    steps = [(False, at, first[at : at + 1000]) for at in range(0, len(first), 1000)]
    # The request acknowledges bytes that are not in the capture, so the receiver has them.
    frames = stream([*steps, (True, 0, request()), (False, len(first), last)], port=80)
    table = ours(write(tmp_path / "a.pcap", frames[:4] + frames[5:]), "http")
    assert table["app_types"].to_list()[-2:] == [["GET"], ["200", "200"]]
    counts = reduce_pcap(write(tmp_path / "a.pcap", frames[:3] + frames[4:]), tmp_path / "a.parquet")
    assert counts.app_unknown > 0


@pytest.mark.parametrize("most", [5, 40, 200])
def test_the_agents_messages_over_tcp(tmp_path: Path, most: int) -> None:
    kinds = [0, 1, 2, 3, 4, 2]
    data = b"".join(prefixed(vnet(kind, 28 + 37 * number, number)) for number, kind in enumerate(kinds))
    pcap = write(tmp_path / "a.pcap", stream(segments([(True, data)], random.Random(most), most), port=9001))
    table = ours(pcap, "vnet", 9001)
    assert types(table) == ["REQUEST", "REPLY", "PUSH", "STREAM", "OTHER", "PUSH"]
    assert table["app_bytes"].sum() == 6 * 32 and table["data_bytes"].sum() == 37 * 15


def test_the_agents_messages_over_udp_are_known_by_their_magic(tmp_path: Path) -> None:
    datagrams = [vnet(0, 100), vnet(3, 28), vnet(9, 60), b"vNET", b"xNET" + bytes(60), publish(9)]
    frames = [Frame(ethernet(ipv4(udp(data, (7000, 9001)), 17))) for data in datagrams]
    table = ours(write(tmp_path / "a.pcap", [*frames, frames[0].cut(60)]), "vnet")
    assert table["app"].to_list() == ["vnet", "vnet", None, None, None, None, "vnet"]
    assert table["app_types"].to_list()[:3] == [["REQUEST"], ["STREAM"], None]
    assert table["app_bytes"].to_list() == [28, 28, 0, 0, 0, 0, 28]
    assert table["data_bytes"].to_list()[0] == table["data_bytes"].to_list()[-1] == 72


def test_ports_that_are_given_replace_the_usual_ones(tmp_path: Path) -> None:
    pcap = write(tmp_path / "a.pcap", stream([(True, 0, request())], port=80))
    assert reduce_pcap(pcap, tmp_path / "a.parquet", {"http": (8000,)}).app_messages == 0
    assert reduce_pcap(pcap, tmp_path / "a.parquet", {"http": (8000, 80)}).app_messages == 1
    assert reduce_pcap(pcap, tmp_path / "a.parquet", {"tls": (80,)}).app_unknown == 1
    with pytest.raises(
        CaptureError, match="--app nfs: no dissector of that name has ports; there are mqtt, "
    ):
        reduce_pcap(pcap, tmp_path / "a.parquet", {"nfs": (2049,)})
    with pytest.raises(CaptureError, match="gre"):
        reduce_pcap(pcap, tmp_path / "a.parquet", {"gre": (47,)})


def version_5(topic: bytes, properties: bytes, payload: bytes) -> bytes:
    return mqtt(
        3,
        len(topic).to_bytes(2, "big") + topic + b"\0\1" + bytes([len(properties)]) + properties + payload,
        2,
    )


@pytest.mark.parametrize("most", [2, 9, 1400])
def test_payload_of_mqtt_is_what_was_published(tmp_path: Path, most: int) -> None:
    """Shows that the payload has the published bytes in both directions, for MQTT 3.1.1 and 5 (whose PUBLISH
    has properties).
    """
    for level, made in ((4, publish(200, b"a/b", 1)), (5, version_5(b"a/b", b"\x02\0\0\0\x09", b"x" * 200))):
        hello = mqtt(1, b"\0\4MQTT" + bytes([level]) + b"\2\0\x3c" + b"\0" * (level == 5) + b"\0\1c")
        steps: Steps = [
            (True, hello + made),
            (False, mqtt(2, b"\0\0" + b"\0" * (level == 5)) + made + made),
            (True, mqtt(12)),
        ]
        pcap = write(tmp_path / "a.pcap", stream(segments(steps, random.Random(most), most)))
        table = ours(pcap, "mqtt")
        assert table["data_bytes"].sum() == 3 * 200 and types(table).count("PUBLISH") == 3


def test_bytes_sent_again_or_early_count_as_payload(tmp_path: Path) -> None:
    """Shows that only new bytes in order count for a message; retransmitted and early bytes do not
    (docs/contracts.md).
    """
    hello, made = mqtt(1, b"\0\4MQTT\4\2\0\x3c\0\1c"), publish(100)
    steps = [
        (True, 0, hello),
        (True, 0, hello),
        (True, len(hello) + 10, made[10:]),
        (True, len(hello), made[:10]),
    ]
    table = ours(write(tmp_path / "a.pcap", stream(steps)), "mqtt")
    assert table["app_bytes"].to_list()[3:] == [len(hello), 0, 0, 7]
    assert types(table) == ["CONNECT", "PUBLISH"]
