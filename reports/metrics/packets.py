"""Captured packets: sizes in the paper's bins, goodput, protocol overhead."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from reports.metrics.metric import Metric, count, metric
from reports.metrics.sizes import publishes, scan, sizes
from reports.metrics.stats import BATCHES, ratio_batches
from reports.roles import Span, payload_bytes, phases
from reports.rundir import Run


def packet_metrics(run: Run) -> list[Metric]:
    """Every capture point's figures over the hold; over the whole capture where no hold is recorded.

    The hold, since a short run's ramp would weigh more than the paper's 15 minutes let it. `packets` and
    `wire_bytes` count that same span. Intervals from ten equal spans of time.
    """
    found: list[Metric] = []
    for point, path in run.captures.items():
        found += _of_capture(run, point, path)
    return found


def _of_capture(run: Run, point: str, path: Path) -> list[Metric]:
    span = phases(run).get("hold")
    sums = _sums(path, span)
    total = int(sums["packets"].sum())
    if total == 0:
        return []
    found = [
        count("packets", point, total, "packets", total, "count"),
        count("wire_bytes", point, int(sums["wire"].sum()), "bytes", total, "sum of frame lengths"),
    ]
    for name, top, bottom in (
        ("goodput_packets", "data", "packets"),
        ("goodput_bytes", "payload", "wire"),
        ("arp_packets", "arp", "packets"),
        ("retransmitted_packets", "again", "packets"),
    ):
        ratio = ratio_batches(sums[top].to_list(), sums[bottom].to_list())
        found.append(metric(name, point, "%", ratio, 100.0))
    found += _application(run, point, sums, total)
    for row in sizes(path, span).iter_rows(named=True):
        share = 100.0 * row["share"]
        found.append(count("packet_size", f"{point} {row['bin']}", share, "% of packets", total, "share"))
    for row in publishes(path, span).iter_rows(named=True):
        scope, share = f"{point} {row['bin']}", 100.0 * row["share"]
        found.append(
            count("publish_packets", scope, share, "% of the bin", row["packets"], "completes a PUBLISH")
        )
    return found


def _application(run: Run, point: str, sums: pl.DataFrame, total: int) -> list[Metric]:
    """Share of wire bytes that is the application's payload, and the rest: the protocol overhead."""
    size = payload_bytes(run)
    if size is None or not sums["publish"].sum():
        return []
    useful = [n * size for n in sums["publish"].to_list()]
    ratio = ratio_batches(useful, sums["wire"].to_list())
    share = metric("application_bytes", point, "%", ratio, 100.0)
    low = None if share.high is None else 100.0 - share.high
    high = None if share.low is None else 100.0 - share.low
    overhead = Metric(
        "overhead", point, 100.0 - share.value, "% of wire bytes", total, low, high, share.method
    )
    return [share, overhead]


def _sums(path: Path, span: Span | None) -> pl.DataFrame:
    """Sums over ten equal spans of time: packets, wire, data, payload, arp, again, publish."""
    rows = scan(path, span)
    columns = rows.collect_schema().names()
    wide = pl.col("wire_bytes", "payload_bytes").cast(pl.Int64)  # a sum of u32 would wrap at 4 GB
    tcp = pl.col("protocol") == "tcp"
    first, last = pl.col("t_ns").min(), pl.col("t_ns").max()
    batch = ((pl.col("t_ns") - first) * BATCHES // (last - first + 1)).alias("batch")
    return (
        rows.with_columns(batch, wide)
        .group_by("batch")
        .agg(
            packets=pl.len(),
            wire=pl.col("wire_bytes").sum(),
            data=(tcp & (pl.col("payload_bytes") > 0)).sum(),
            payload=pl.when(tcp).then(pl.col("payload_bytes")).otherwise(0).sum(),
            arp=(pl.col("protocol") == "arp").sum(),
            again=pl.col("retransmission").fill_null(False).sum(),
            publish=_publishes(columns),
        )
        .sort("batch")
        .collect()
    )


def _publishes(columns: list[str]) -> pl.Expr:
    if "app_types" not in columns:
        return pl.lit(0)
    return pl.col("app_types").list.count_matches("PUBLISH").fill_null(0).sum()
