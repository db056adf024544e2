"""Computes the packets and bytes of each protocol, and the bytes of each layer, in captures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from capture.hierarchy import hierarchy
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


def hierarchy_metrics(run: Run) -> list[Metric]:
    """Returns the packets, bytes and share of bytes of each protocol path, and the share of each layer in the
    frame bytes, for each capture over the hold; without a hold, over the whole capture.
    """
    span = phases(run).get("hold")
    found: list[Metric] = []
    for point, path in run.captures.items():
        of = Of(capture=point)
        found += _protocols(of, path, span) + _layers(of, path, span)
    return found


def _protocols(of: Of, path: Path, span: Span | None) -> list[Metric]:
    rows = hierarchy(scan(path, span))
    wire = rows.filter(~pl.col("path").str.contains(":", literal=True)).get_column("wire_bytes").sum()
    found: list[Metric] = []
    for row in rows.iter_rows(named=True):
        one, n = replace(of, protocol=row["path"]), row["packets"]
        share, method = 100 * row["wire_bytes"] / wire, "sum of frame lengths"
        found.append(count("protocol_packets", one, n, "packets", n, "count"))
        found.append(count("protocol_bytes", one, row["wire_bytes"], "bytes", n, method))
        found.append(count("protocol_share", one, share, "% of bytes", n, method))
    return found


def _layers(of: Of, path: Path, span: Span | None) -> list[Metric]:
    sums = scan(path, span).select(
        pl.len().alias("packets"), *[pl.col(name).cast(pl.Int64).sum() for name in ("wire_bytes", *LAYERS)]
    )
    row = sums.collect().row(0, named=True)
    return [
        count("layer_share", replace(of, layer=name), 100 * row[column] / row["wire_bytes"], "% of bytes",
              row["packets"], "share of frame bytes")
        for column, name in LAYERS.items()
        if row[column]
    ]  # fmt: skip
