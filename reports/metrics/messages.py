"""Messages: how many were scheduled, sent, acknowledged, received, lost, duplicated, reordered; latency."""

from __future__ import annotations

import numpy as np
import polars as pl

from reports.metrics.metric import Metric, count, metric
from reports.metrics.stats import percentile
from reports.roles import phases
from reports.rundir import Run

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}


def counts(messages: pl.DataFrame) -> dict[str, int]:
    """The accounting of messages; the first three count messages, the others messages x subscribers.

    lost: sent, but never received by a subscriber that should have got it. unsent: scheduled, never sent.
    duplicated: delivered more than once. reordered: arrived after a later one of its publisher and topic.
    """
    one = messages.unique(["publisher", "topic", "seq"])
    sent = pl.col("sent_ns").fill_null(0) > 0
    expected = messages.filter(pl.col("subscriber").is_not_null())
    got = expected.filter(pl.col("received_ns").is_not_null())
    return {
        "scheduled": one.height,
        "sent": one.filter(sent).height,
        "acknowledged": one.filter(pl.col("outcome") == "acked").height,
        "unsent": one.filter(~sent).height,
        "expected": expected.filter(sent).height,
        "received": got.height,
        "lost": expected.filter(sent & pl.col("received_ns").is_null()).height,
        "duplicated": got.filter(pl.col("copies") > 1).height,
        "reordered": got.filter(pl.col("reordered")).height,
    }


def message_metrics(run: Run) -> list[Metric]:
    """The accounting per QoS over the whole run."""
    table = run.table("messages")
    if table is None:
        return []
    found = []
    for qos, rows in _by_qos(table):
        for name, value in counts(rows).items():
            found.append(count(f"messages_{name}", f"QoS {qos}", value, "messages", rows.height, "count"))
    return found


def latency_metrics(run: Run) -> list[Metric]:
    """Percentiles per QoS, from the scheduled time to the first delivery, of messages scheduled in the hold.

    Lost messages have no latency: their number stands beside the percentiles (`messages_lost`).
    """
    table = held_messages(run)
    if table is None:
        return []
    found: list[Metric] = []
    for qos, rows in _by_qos(table.drop_nulls("latency_ns")):
        values = np.sort(rows.get_column("latency_ns").to_numpy().astype(np.float64))
        scope, n = f"QoS {qos}", len(values)
        for name, q in PERCENTILES.items():
            found.append(metric(f"latency_{name}", scope, "ms", percentile(values, q), 1e-6))
        found.append(count("latency_max", scope, float(values[-1]) * 1e-6, "ms", n, "largest"))
    return found


def held_messages(run: Run) -> pl.DataFrame | None:
    """Messages scheduled in the hold; the whole run where no hold is recorded; None where there are none."""
    table, hold = run.table("messages"), phases(run).get("hold")
    if table is None or hold is None:
        return table
    rows = table.filter(pl.col("scheduled_ns").is_between(hold.start_ns, hold.end_ns, closed="left"))
    return None if rows.is_empty() else rows


def _by_qos(table: pl.DataFrame) -> list[tuple[int, pl.DataFrame]]:
    levels = sorted(int(q) for q in table.get_column("qos").unique())
    return [(q, table.filter(pl.col("qos") == q)) for q in levels]
