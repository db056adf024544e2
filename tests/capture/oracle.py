"""Reads a capture with tshark and with vnet-reduce into the same columns and compares them frame by frame."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from capture.errors import CaptureError
from capture.pcap import Counts, reduce_pcap, reducer

FIELDS = (
    "frame.time_epoch",
    "frame.len",
    "frame.cap_len",
    "vlan.id",
    "ieee8021ad.id",
    "ip.src",
    "ipv6.src",
    "arp.src.proto_ipv4",
    "ip.dst",
    "ipv6.dst",
    "arp.dst.proto_ipv4",
    "tcp.srcport",
    "udp.srcport",
    "tcp.dstport",
    "udp.dstport",
    "tcp.flags",
    "tcp.seq_raw",
    "tcp.ack_raw",
    "tcp.window_size_value",
    "tcp.len",
    "udp.length",
    "tcp.stream",
    "tcp.analysis.retransmission",
    "tcp.analysis.fast_retransmission",
    "tcp.analysis.spurious_retransmission",
    "tcp.analysis.out_of_order",
    "tcp.analysis.keep_alive",
    "mqtt.msgtype",
)
NAMES = (
    "UNKNOWN",
    "CONNECT",
    "CONNACK",
    "PUBLISH",
    "PUBACK",
    "PUBREC",
    "PUBREL",
    "PUBCOMP",
    "SUBSCRIBE",
    "SUBACK",
    "UNSUBSCRIBE",
    "UNSUBACK",
    "PINGREQ",
    "PINGRESP",
    "DISCONNECT",
    "AUTH",
)
# Neither program reassembles IP fragments: a row of the table is a packet of the wire.
OPTIONS = ("-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE")
IN_ORDER = ("-o", "tcp.reassemble_out_of_order:TRUE")
SIZES = ("wire_bytes", "captured_bytes", "payload_bytes")
Row = dict[str, Any]


def need(*programs: str) -> None:
    """Skips the test if one of these programs is not installed, or vnet-reduce is not built."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    try:
        reducer()
    except CaptureError as error:
        pytest.skip(str(error))


def tshark(pcap: Path, *options: str) -> list[Row]:
    """Returns the fields that tshark finds in each frame."""
    argv = ["tshark", "-n", "-r", str(pcap), *OPTIONS, *options, "-T", "fields", "-E", "separator=|"]
    argv += [part for field in FIELDS for part in ("-e", field)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or "cut short" in done.stderr, done.stderr
    return [_row(dict(zip(FIELDS, line.split("|"), strict=True))) for line in done.stdout.splitlines()]


def _row(found: dict[str, str]) -> Row:
    def first(*names: str) -> str | None:
        return next((found[name].split(",")[0] for name in names if found[name]), None)

    def number(*names: str) -> int | None:
        text = first(*names)
        return None if text is None else int(text, 0)

    seconds, _, fraction = found["frame.time_epoch"].partition(".")
    udp = number("udp.length")
    return {
        "t_ns": int(seconds) * 10**9 + int(fraction.ljust(9, "0")),
        "wire_bytes": number("frame.len"),
        "captured_bytes": number("frame.cap_len"),
        "vlan": number("ieee8021ad.id", "vlan.id"),
        "src": first("ip.src", "ipv6.src", "arp.src.proto_ipv4"),
        "dst": first("ip.dst", "ipv6.dst", "arp.dst.proto_ipv4"),
        "src_port": number("tcp.srcport", "udp.srcport"),
        "dst_port": number("tcp.dstport", "udp.dstport"),
        "tcp_flags": number("tcp.flags"),
        "seq": number("tcp.seq_raw"),
        "ack": number("tcp.ack_raw"),
        "window": number("tcp.window_size_value"),
        "payload_bytes": number("tcp.len") if udp is None else udp - 8,
        "stream": number("tcp.stream"),
        "retransmission": bool(found["tcp.analysis.retransmission"]),
        "analysis": _analysis(found),
        "app_types": [NAMES[int(kind)] for kind in found["mqtt.msgtype"].split(",") if kind] or None,
    }


def _analysis(found: dict[str, str]) -> str | None:
    for name in (
        "spurious_retransmission",
        "fast_retransmission",
        "retransmission",
        "out_of_order",
        "keep_alive",
    ):
        if found[f"tcp.analysis.{name}"]:
            return name.replace("_", "-")
    return None


def reduced(pcap: Path, table: Path) -> tuple[list[Row], Counts]:
    """Returns the fields that vnet-reduce finds in each frame, and its counts."""
    counts = reduce_pcap(pcap, table)
    frame = pl.read_parquet(table)
    assert frame.height == counts.packets
    layers = [column for column in frame.columns if column.endswith("_bytes") and column not in SIZES]
    assert frame.select(pl.sum_horizontal(layers) == pl.col("wire_bytes")).to_series().all()
    return frame.drop("ethertype", "protocol", "app", "app_ids", *layers).to_dicts(), counts


def assert_agree(
    pcap: Path, table: Path, *options: str, without: tuple[str, ...] = ()
) -> tuple[list[Row], Counts]:
    """Asserts that vnet-reduce and tshark agree in every column of every frame except those in `without`;
    returns vnet-reduce's rows and counts.
    """
    ours, counts = reduced(pcap, table)
    theirs = tshark(pcap, *options)
    assert len(ours) == len(theirs)
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=True), 1):
        different = {k: (mine[k], other[k]) for k in mine if mine[k] != other[k] and k not in without}
        assert not different, (
            f"frame {number} (ours, tshark's): {different!s:.1500}; in full: {other!s:.1500}"
        )
    return ours, counts
