"""Computes the least round trip of each traffic class, which the metrics of every run do not have."""

from __future__ import annotations

import polars as pl

from reports.metrics.messages import held_messages
from reports.metrics.metric import Metric, Of, count
from reports.papers.industrial_ethernet.tables import LOADS, TAGGING
from reports.rundir import Run

LEAST = "priority_least"
CLASSES = frozenset(f"{tagging}-{load}" for tagging in TAGGING for load in LOADS)


def least_metrics(run: Run) -> list[Metric]:
    """Returns for each traffic class of tables 1 to 3 the least round trip of the hold in ms; empty for
    runs without such a class. A class without an answer is left out.
    """
    held = held_messages(run)
    if held is None:
        return []
    rows = (
        held.filter(pl.col("class").is_in(CLASSES) & pl.col("round_trip_ns").is_not_null())
        .group_by("class")
        .agg(least=pl.col("round_trip_ns").min(), n=pl.len())
        .sort("class")
    )
    return [
        count(LEAST, Of(traffic_class=name), least / 1e6, "ms", n, "least")
        for name, least, n in rows.iter_rows()
    ]
