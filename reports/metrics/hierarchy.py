"""What captured packets are made of: the protocols in them, and the bytes of each layer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from reports.metrics.metric import Metric, Of, count
from reports.metrics.sizes import scan
from reports.roles import Span, phases
from reports.rundir import Run

LAYERS = {
    "eth_bytes": "Ethernet",
    "vlan_bytes": "VLAN",
    "ip_bytes": "network",
    "transport_bytes": "transport",
    "app_bytes": "application's protocol",
    "data_bytes": "data",
    "pad_bytes": "padding",
}
ETHERTYPES = {0x0800: "IPv4", 0x86DD: "IPv6"}  # IEEE 802 numbers; others show as their own protocol
UPPER = ("tcp", "udp", "arp", "icmp", "icmpv6", "igmp", "sctp")


def hierarchy_metrics(run: Run) -> list[Metric]:
    """By capture point, over the hold: packets and bytes of protocols and what they carry; bytes by layer."""
    span = phases(run).get("hold")
    found: list[Metric] = []
    for point, path in run.captures.items():
        found += _of_capture(Of(capture=point), path, span)
    return found


def _of_capture(of: Of, path: Path, span: Span | None) -> list[Metric]:
    kinds = _kinds(path, span)
    packets, wire = int(kinds["packets"].sum()), int(kinds["wire"].sum())
    found: list[Metric] = []
    for chain, rows in sorted(_tree(kinds).items()):
        one = replace(of, protocol=chain)
        share = 100 * rows[1] / wire
        found.append(count("protocol_packets", one, rows[0], "packets", packets, "count"))
        found.append(count("protocol_bytes", one, rows[1], "bytes", packets, "sum of frame lengths"))
        found.append(count("protocol_share", one, share, "% of bytes", packets, "share of frame bytes"))
    for column, name in LAYERS.items():
        if column in kinds.columns and kinds[column].sum():
            share = 100 * int(kinds[column].sum()) / wire
            method = "share of frame bytes"
            found.append(count("layer_share", replace(of, layer=name), share, "% of bytes", packets, method))
    return found


def _kinds(path: Path, span: Span | None) -> pl.DataFrame:
    """One row for each combination of network, transport and application protocol: packets, wire, layers."""
    rows = scan(path, span)
    columns = rows.collect_schema().names()
    keys = [name for name in ("ethertype", "protocol", "app") if name in columns]
    layers = [pl.col(name).cast(pl.Int64).sum() for name in LAYERS if name in columns]
    wire = pl.col("wire_bytes").cast(pl.Int64).sum().alias("wire")
    return rows.group_by(keys).agg(pl.len().alias("packets"), wire, *layers).collect()


def _tree(kinds: pl.DataFrame) -> dict[str, tuple[int, int]]:
    """Packets and bytes of every chain of protocols, "IPv4 > TCP > http", and of each of its beginnings."""
    found: dict[str, tuple[int, int]] = {}
    for row in kinds.iter_rows(named=True):
        chain: list[str] = []
        for name in _chain(row):
            chain.append(name)
            packets, wire = found.get(key := " > ".join(chain), (0, 0))
            found[key] = (packets + row["packets"], wire + row["wire"])
    return found


def _chain(row: dict[str, int | str | None]) -> list[str]:
    kind, protocol, app = row.get("ethertype"), row.get("protocol"), row.get("app")
    above = str(protocol).upper() if protocol in UPPER else str(protocol or "")
    if kind in ETHERTYPES:
        names = [ETHERTYPES[kind], above]
    else:
        names = [above or (f"ethertype 0x{kind:04x}" if isinstance(kind, int) else "802.3")]
    return [name for name in (*names, str(app or "")) if name]
