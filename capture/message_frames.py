"""Finds the agent's messages in a pcap, and the time of the first frame that carries each of them.

A payload of kind `bytes` begins with a header (images/agent/src/payload/bytes.rs): `vNET`, purpose u8, three
bytes, flow u32, seq u32, scheduled_ns i64, big endian. Datagrams and streams carry it in plain text, except
in TLS. A header that extends over two segments is not found.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from capture.hops import FILE_HEADER, MAGIC, RECORD_HEADER

HEADER = struct.Struct(">4sBxxxIIq")
MESSAGE = b"vNET"
REPLY = 1  # purpose of a reply; a reply has flow and seq of its request
# A wrong clock shows in every frame, so some frames suffice. Skipping a frame takes 0.3 us, searching it 1
# us.
MOST_PASSED, MOST_SEEN = 1_000_000, 50_000
TYPICAL = 100  # bytes of a record with the shortest frame of the agent's messages
SCHEMA = {"flow": pl.UInt32, "seq": pl.Int64, "scheduled_ns": pl.Int64, "seen_ns": pl.Int64}


def first_seen(pcap: Path) -> pl.DataFrame:
    """Returns the time of the first frame with each message, without replies, the earliest first: flow, seq,
    scheduled_ns and seen_ns. Returns no rows if the file is not a pcap.

    Searches only the first million frames; in a file above 5 MB, only every n-th of these.
    """
    size = pcap.stat().st_size
    if size < FILE_HEADER:
        return pl.DataFrame(schema=SCHEMA)
    with pcap.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        rows = list(_messages(data, 1 + size // (TYPICAL * MOST_SEEN)))
    found = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    return found.group_by("flow", "seq", "scheduled_ns").agg(pl.col("seen_ns").min()).sort("seen_ns")


def _messages(data: mmap.mmap, every: int) -> Iterator[tuple[int, int, int, int]]:
    """Yields (flow, seq, scheduled_ns, time in ns) of each message, except replies, whose header is in every
    `every`-th of the first MOST_PASSED frames.
    """
    for number, (t_ns, begin, end) in enumerate(_frames(data)):
        if number >= MOST_PASSED:
            return
        at = data.find(MESSAGE, begin, end) if number % every == 0 else -1
        while 0 <= at <= end - HEADER.size:
            _, purpose, flow, seq, scheduled_ns = HEADER.unpack_from(data, at)
            if purpose != REPLY:
                yield flow, seq, scheduled_ns, t_ns
            at = data.find(MESSAGE, at + HEADER.size, end)


def _frames(data: mmap.mmap) -> Iterator[tuple[int, int, int]]:
    """Yields (time in ns, begin, end) of each whole frame: the positions of its bytes in the file. Yields
    nothing if the file is no pcap.
    """
    known = MAGIC.get(data[:4])
    if known is None:
        return
    order, unit_ns = known
    record, at = struct.Struct(f"{order}IIII"), FILE_HEADER
    while at + RECORD_HEADER <= len(data):
        seconds, part, captured, _ = record.unpack_from(data, at)
        begin = at + RECORD_HEADER
        at = begin + captured
        if at > len(data):
            return
        yield seconds * 10**9 + part * unit_ns, begin, at
