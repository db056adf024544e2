"""Tests the figures of requests in captures: HTTP against tshark's times, Redis and PostgreSQL against
tshark's message counts and known times; connections that cannot be followed are left out.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "capture"))
from frames import Frame, write
from messages import chunked, request, response
from test_reducer_crafted import MS, stream

from capture.pcap import reduce_pcap
from reports.metrics.requests import requests

Steps = list[tuple[bool, bytes]]
HTTP: Steps = [
    (True, request("/a")),
    (False, response(b"x" * 700)),
    (True, request("/b", "POST", b"y" * 300)),
    (False, response(status="100 Continue", fields="")),
    (False, response(status="204 No Content", fields="")),
    (True, request("/c")),
    (False, response(b"?", "404 Not Found")),
    (True, request("/d") + request("/e")),
    (False, chunked(b"z" * 20, b"z" * 500)),
    (False, response()),
    (True, request("/gone")),
]
REDIS: Steps = [
    (True, b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"),
    (False, b"$2\r\nhi\r\n"),
    (True, b"*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nKEYS\r\n$1\r\n*\r\n"),
    (False, b"+PONG\r\n"),
    (False, b"*1\r\n$1\r\nk\r\n"),
    (True, b"*1\r\n$3\r\nBAD\r\n"),
    (False, b"-ERR unknown command\r\n"),
]


def typed(letter: bytes, content: bytes = b"") -> bytes:
    return letter + struct.pack("!I", len(content) + 4) + content


def first(code: int, content: bytes = b"") -> bytes:
    return struct.pack("!II", len(content) + 8, code) + content


READY = typed(b"Z", b"I")
POSTGRESQL: Steps = [
    (True, first(80_877_103)),
    (False, b"N"),
    (True, first(3 << 16, b"user\0me\0\0")),
    (False, typed(b"R", bytes(4)) + READY),
    (True, typed(b"Q", b"select 1\0")),
    (False, typed(b"D", b"\0\1\0\0\0\1x") + typed(b"C", b"SELECT 1\0") + READY),
    (True, typed(b"P", b"\0x\0\0\0") + typed(b"S")),
    (False, typed(b"E", b"SERROR\0\0") + READY),
    (True, typed(b"Q", b"select pg_sleep(9)\0")),
]


def captured(place: Path, steps: Steps, port: int, *, begin: int = 0) -> Path:
    """Writes a capture in which each step is one segment, 10 ms apart, without its first `begin` frames."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    at, cut = {True: 0, False: 0}, []
    for up, data in steps:
        cut.append((up, at[up], data))
        at[up] += len(data)
    frames: list[Frame] = stream(cut, port=port)
    return write(place / "some.pcap", frames[begin:])


def found(pcap: Path, protocol: str) -> tuple[pl.DataFrame, int]:
    table, connections = pcap.with_suffix(".parquet"), pcap.with_name("connections.parquet")
    reduce_pcap(pcap, table, {}, connections)
    return requests(pl.scan_parquet(table), pl.read_parquet(connections), protocol)


def tshark(pcap: Path, shown: str, field: str) -> list[str]:
    argv = ["tshark", "-n", "-r", str(pcap), "-Y", shown, "-T", "fields", "-e", field]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    return [value for line in said.splitlines() for value in line.split(",") if value]


def times_ms(rows: pl.DataFrame) -> list[float | None]:
    return ((rows["answered_ns"] - rows["asked_ns"]) / MS).to_list()


def test_times_of_http_are_those_of_tshark(tmp_path: Path) -> None:
    pcap = captured(tmp_path, HTTP, 80)
    rows, left_out = found(pcap, "http")
    assert rows["kind"].to_list() == ["GET", "POST", "GET", "GET", "GET", "GET"] and left_out == 0
    assert rows["status"].to_list() == ["200", "204", "404", "200", "200", None]
    shown = "http.response && !(http.response.code == 100)"
    theirs = [round(1e3 * float(time)) for time in tshark(pcap, shown, "http.time")]
    # tshark 4.0 gives no time for an answer after an interim response, nor for the second of two requests
    # that are sent together
    assert theirs == [10, 10, 10] and times_ms(rows) == [10, 20, 10, 10, 20, None]


def test_redis_replies_and_errors(tmp_path: Path) -> None:
    pcap = captured(tmp_path, REDIS, 6379)
    rows, left_out = found(pcap, "redis")
    assert times_ms(rows) == [10, 10, 20, 10] and left_out == 0
    assert rows["error"].to_list() == [False, False, False, True]
    assert len(tshark(pcap, "tcp.dstport == 6379", "resp.array.length")) == rows.height


def test_postgresql_queries_end_with_ready(tmp_path: Path) -> None:
    pcap = captured(tmp_path, POSTGRESQL, 5432)
    rows, left_out = found(pcap, "postgresql")
    assert rows["kind"].to_list() == ["QUERY", "SYNC", "QUERY"] and left_out == 0
    assert times_ms(rows) == [10, 10, None] and rows["error"].to_list() == [False, True, False]
    said = tshark(pcap, "pgsql.frontend == 1", "pgsql.type")
    assert sum("query" in one.lower() or "sync" in one.lower() for one in said) == rows.height


@pytest.mark.parametrize(
    ("steps", "port", "protocol"), [(HTTP, 80, "http"), (REDIS, 6379, "redis")], ids=["http", "redis"]
)
def test_a_connection_whose_beginning_is_missing_is_left_out(
    tmp_path: Path, steps: Steps, port: int, protocol: str
) -> None:
    """Shows that requests are left out if the capture begins with an answer, whose request was not
    captured.
    """
    rows, left_out = found(captured(tmp_path, steps, port, begin=4), protocol)
    assert rows.height == 0 and left_out == 1


def test_a_server_that_sends_unasked_is_left_out(tmp_path: Path) -> None:
    pushed = b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n"
    steps = [(True, b"*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n"), (False, b":1\r\n"), (False, pushed)]
    assert found(captured(tmp_path, steps, 6379), "redis")[1] == 1
