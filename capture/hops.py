"""Matches IPv4 frames in the pcaps of two capture points, and computes the delay of each between them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from capture.errors import CaptureError

MAGIC = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
FILE_HEADER, RECORD_HEADER = 24, 16
ETHERNET, IPV4 = 14, b"\x08\x00"
LOOKED_AT = 96  # bytes that identify a frame: addresses, numbers and checksums of IP and the protocol above


def hops(first: Path, second: Path) -> pl.DataFrame:
    """Returns the untagged IPv4 frames of `first`, in its order: t_ns, source address, wire_bytes, and
    delay_ns until `second` captured the frame; null if it did not.

    Frames match if their first 96 bytes are equal: bridges do not change them, and IP packets carry an
    identifier. A frame whose bytes occur twice in `first` is left out. If the bytes of a frame occur
    several times in `second`, for example behind a link that duplicates, the first arrival counts.
    CaptureError if a file is not a pcap.
    """
    one, two = (_table(path) for path in (first, second))
    there = two.group_by("frame").agg(there_ns=pl.col("t_ns").min())
    joined = one.filter(pl.col("frame").is_unique()).join(there, on="frame", how="left").sort("number")
    return joined.select("t_ns", "source", "wire_bytes", delay_ns=pl.col("there_ns") - pl.col("t_ns"))


def _table(path: Path) -> pl.DataFrame:
    schema = {"t_ns": pl.Int64, "wire_bytes": pl.UInt32, "source": pl.String, "frame": pl.Binary}
    return pl.DataFrame(list(_frames(path)), schema=schema, orient="row").with_row_index("number")


def _frames(path: Path) -> Iterator[tuple[int, int, str, bytes]]:
    data = memoryview(path.read_bytes())
    known = MAGIC.get(bytes(data[:4]))
    if known is None or len(data) < FILE_HEADER:
        raise CaptureError(f"{path}: is no pcap file; convert it (editcap -F pcap)")
    order, unit_ns = known
    record, at = struct.Struct(f"{order}IIII"), FILE_HEADER
    while at + RECORD_HEADER <= len(data):
        seconds, part, captured, wire = record.unpack_from(data, at)
        at += RECORD_HEADER
        frame = bytes(data[at : at + min(captured, LOOKED_AT)])
        if at + captured > len(data):
            return  # the file was cut off when the run was interrupted
        at += captured
        if frame[12:14] == IPV4 and len(frame) >= ETHERNET + 20:
            yield seconds * 10**9 + part * unit_ns, wire, ".".join(map(str, frame[26:30])), frame
