"""Computes the share of packets in each size bin that complete an MQTT PUBLISH, which the paper reports."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from reports.metrics.metric import Metric, Of, count
from reports.metrics.sizes import bin_name, scan
from reports.roles import Span, phases
from reports.rundir import Run


def publish_metrics(run: Run) -> list[Metric]:
    """Returns for each capture point and size bin the share of the hold's packets (% of the bin, without
    retransmissions) that complete a PUBLISH; over the whole capture if no hold is recorded.
    """
    return [
        count(
            "publish_packets",
            Of(capture=point, bin=row["bin"]),
            100.0 * row["share"],
            "% of the bin",
            row["packets"],
            "completes a PUBLISH",
        )
        for point, path in run.captures.items()
        for row in publishes(path, phases(run).get("hold")).iter_rows(named=True)
    ]


def publishes(path: Path, span: Span | None) -> pl.DataFrame:
    """Returns for each size bin with packets in the span: bin, packets (without retransmissions), share of
    them (0 to 1) that complete a PUBLISH.
    """
    first = scan(path, span).filter(~pl.col("retransmission").fill_null(False))
    carries = (pl.col("app") == "mqtt") & pl.col("app_types").list.contains("PUBLISH")
    return (
        first.group_by(bin=bin_name("wire_bytes"))
        .agg(packets=pl.len(), share=carries.fill_null(False).mean())
        .sort("bin")
        .collect()
    )
