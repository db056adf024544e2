"""Computes the figures of captured packets: sizes in bins, goodput, protocol overhead."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl

from reports.metrics.metric import Metric, Of, count, metric
from reports.metrics.sizes import scan, sizes
from reports.metrics.stats import BATCHES, ratio_batches
from reports.roles import Span, phases
from reports.rundir import Run


def packet_metrics(run: Run) -> list[Metric]:
    """Returns the figures of each capture with packets over the hold, or over the whole capture if no hold is
    recorded.

    The ramp is left out, because short runs would otherwise differ from long ones. Intervals come from ten
    equal spans of time.
    """
    found: list[Metric] = []
    for point, path in run.captures.items():
        found += _of_capture(run, Of(capture=point), path)
    return found


def _of_capture(run: Run, of: Of, path: Path) -> list[Metric]:
    span = phases(run).get("hold")
    sums = _sums(path, span)
    total = int(sums["packets"].sum())
    if total == 0:
        return []
    found = [
        count("packets", of, total, "packets", total, "count"),
        count("wire_bytes", of, int(sums["wire"].sum()), "bytes", total, "sum of frame lengths"),
    ]
    of_tcp = (
        ("goodput_packets", "data", "packets"),
        ("goodput_bytes", "payload", "wire"),
        ("retransmitted_packets", "again", "packets"),
    )
    for name, top, bottom in (*(of_tcp if sums["tcp"].sum() else ()), ("arp_packets", "arp", "packets")):
        ratio = ratio_batches(sums[top].to_list(), sums[bottom].to_list())
        found.append(metric(name, of, "%", ratio, 100.0))
    found += _application(of, sums, total)
    for row in sizes(path, span).iter_rows(named=True):
        share = 100.0 * row["share"]
        found.append(count("packet_size", replace(of, bin=row["bin"]), share, "% of packets", total, "share"))
    return found


def _application(of: Of, sums: pl.DataFrame, total: int) -> list[Metric]:
    """Returns the share of application data in wire bytes, without repeated bytes, and its complement, the
    overhead; empty without application data.
    """
    if not sums["useful"].sum():
        return []
    ratio = ratio_batches(sums["useful"].to_list(), sums["wire"].to_list())
    share = metric("application_bytes", of, "%", ratio, 100.0)
    low = None if share.high is None else 100.0 - share.high
    high = None if share.low is None else 100.0 - share.low
    overhead = Metric("overhead", of, 100.0 - share.value, "% of wire bytes", total, low, high, share.method)
    return [share, overhead]


def _sums(path: Path, span: Span | None) -> pl.DataFrame:
    """Returns one row for each of ten equal spans of time from the first packet to the last: packets, their
    bytes (wire, payload of TCP, useful application data) and the numbers of TCP, ARP, repeated and TCP
    payload packets (tcp, arp, again, data). Spans without packets have no row.
    """
    rows = scan(path, span)
    wide = pl.col("wire_bytes", "payload_bytes", "data_bytes").cast(
        pl.Int64
    )  # a sum of u32 would wrap at 4 GB
    tcp = pl.col("protocol") == "tcp"
    again = pl.col("retransmission").fill_null(False)
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
            tcp=tcp.sum(),
            arp=(pl.col("protocol") == "arp").sum(),
            again=again.sum(),
            useful=pl.when(~again).then(pl.col("data_bytes")).otherwise(0).sum(),
        )
        .sort("batch")
        .collect()
    )
