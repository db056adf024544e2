"""Counts the packets and bytes of a capture by protocol path (the protocol hierarchy)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

# The name of the link header by its length in bytes, since the table keeps only the length.
LINKS = {0: "raw", 4: "null", 14: "eth", 16: "sll", 20: "sll"}
TAG_BYTES = 4
IP, IPV6 = 0x0800, 0x86DD
SCHEMA = {"path": pl.String, "packets": pl.Int64, "wire_bytes": pl.Int64, "data_bytes": pl.Int64}


def hierarchy(packets: pl.LazyFrame) -> pl.DataFrame:
    """Returns one row for each protocol path and each prefix of one (`eth`, `eth:ip`, `eth:ip:tcp`), parents
    first. Columns: path; packets, wire_bytes and data_bytes (application payload) of the packets whose
    path begins with this one. Names are those of Wireshark, if it has one.

    `packets` are rows of a packets table. `data` is TCP or UDP payload that no dissector knows, or the
    content of an IP packet without ports, such as a later fragment. Memory does not grow with the table.
    """
    keys = (
        pl.col("eth_bytes").alias("link"),
        (pl.col("vlan_bytes") // TAG_BYTES).alias("tags"),
        pl.col("ethertype"),
        pl.col("protocol"),
        pl.col("src").str.contains(":", literal=True).alias("six"),
        pl.col("src_port").is_not_null().alias("ports"),
        pl.col("app"),
        (pl.col("data_bytes") > 0).alias("data"),
    )
    sums = {"packets": pl.len()} | {
        name: pl.col(name).cast(pl.Int64).sum() for name in ("wire_bytes", "data_bytes")
    }
    groups = packets.group_by(keys).agg(**sums).collect(engine="streaming")
    rows = [
        (path, group["packets"], group["wire_bytes"], group["data_bytes"])
        for group in groups.iter_rows(named=True)
        for path in _beginnings(list(_names(group)))
    ]
    table = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    return table.group_by("path").agg(pl.all().sum()).sort(pl.col("path").str.split(":"))


def _beginnings(names: list[str]) -> Iterator[str]:
    return (":".join(names[: end + 1]) for end in range(len(names)))


def _names(group: dict[str, Any]) -> Iterator[str]:
    protocol, app = group["protocol"], group["app"]
    if group["link"] or protocol:
        yield LINKS.get(group["link"], "link")
    yield from ["vlan"] * group["tags"]
    if protocol is None:
        yield from _beyond_link(group)
    elif protocol == "arp":
        yield "arp"
    else:
        yield "ipv6" if group["six"] else "ip"
        ported = protocol in ("tcp", "udp")
        if ported and not group["ports"]:
            yield "data"
            return
        if ported or app is None:  # a tunnel's name is clearer than its protocol's number
            yield protocol
        if app is not None or (ported and group["data"]):
            yield app or "data"


def _beyond_link(group: dict[str, Any]) -> Iterator[str]:
    """Yields the name that follows the link layer for a frame without a decoded network header: the
    application, IP, the EtherType in hexadecimal, `llc`, or `data` without a link header.
    """
    kind = group["ethertype"]
    if group["app"] is not None:
        yield group["app"]
    elif kind in (IP, IPV6):
        yield "ip" if kind == IP else "ipv6"
    elif kind is not None:
        yield f"0x{kind:04x}"
    else:
        yield "llc" if group["link"] else "data"
