"""Computes the throughput at capture points: frame bits, payload bits, and retransmitted payload bits."""

from __future__ import annotations

import math
from pathlib import Path

import polars as pl

from reports.metrics.metric import Metric, Of, metric
from reports.metrics.sizes import scan
from reports.metrics.stats import batch_means
from reports.roles import SECOND, Span, phases
from reports.rundir import Run

MOST_BINS = 300  # most bins of a plot; longer captures get bins wider than a second
NAMES = {"on the wire": "wire_rate", "payload": "payload_rate", "retransmissions": "repeated_rate"}


def throughput_metrics(run: Run) -> list[Metric]:
    """Returns the mean rate of each kind over the hold for each capture point; empty if no hold
    is recorded.
    """
    hold = phases(run).get("hold")
    found: list[Metric] = []
    for point, path in run.captures.items() if hold else ():
        rows = throughput(path, hold)
        for kind, name in NAMES.items():
            values = rows.filter(pl.col("kind") == kind).get_column("mbps").to_list()
            if values:
                found.append(metric(name, Of(capture=point), "Mbit/s", batch_means(values)))
    return found


def throughput(path: Path, span: Span | None = None) -> pl.DataFrame:
    """Returns the columns t_ns (middle of a bin of a second or more), kind (on the wire, payload,
    retransmissions), mbps.

    The bins cover the span, or the time from the first packet to the last; empty if that is shorter than a
    second. An incomplete last bin is left out; bins without packets are zero, and a kind that is zero
    throughout is left out.
    """
    rows = scan(path, span)
    if span is None:
        first, last = rows.select(first=pl.col("t_ns").min(), last=pl.col("t_ns").max()).collect().row(0)
    else:
        first, last = span.start_ns, span.end_ns
    if first is None or last - first < SECOND:
        return pl.DataFrame(schema={"t_ns": pl.Int64, "kind": pl.String, "mbps": pl.Float64})
    width = SECOND * max(1, math.ceil((last - first) / SECOND / MOST_BINS))
    whole = (last - first) // width
    payload = pl.when(pl.col("protocol").is_in(["tcp", "udp"])).then(pl.col("payload_bytes")).cast(pl.Int64)
    again = pl.col("retransmission").fill_null(False)
    binned = (
        rows.with_columns(bin=(pl.col("t_ns") - first) // width)
        .group_by("bin")
        .agg(
            pl.col("wire_bytes").cast(pl.Int64).sum().alias("on the wire"),
            payload.sum().alias("payload"),
            pl.when(again).then(payload).otherwise(0).sum().alias("retransmissions"),
        )
        .collect()
    )
    every = pl.DataFrame({"bin": range(whole)}, schema={"bin": pl.Int64}).join(binned, on="bin", how="left")
    return (
        every.fill_null(0)
        .unpivot(index="bin", variable_name="kind", value_name="bytes")
        .filter(pl.col("bytes").sum().over("kind") > 0)
        .select(
            t_ns=pl.col("bin") * width + first + width // 2,
            kind="kind",
            mbps=pl.col("bytes") * (8e3 / width),  # 1 byte/ns is 8,000 Mbit/s
        )
        .sort("kind", "t_ns")
    )
