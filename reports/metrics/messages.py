"""Computes counts of messages by fate, latency and round trip, for each class and guarantee."""

from __future__ import annotations

import numpy as np
import polars as pl

from reports.metrics.metric import Metric, Of, count, metric
from reports.metrics.stats import batch_means, percentile
from reports.roles import phases
from reports.rundir import Run

PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}


def counts(messages: pl.DataFrame) -> dict[str, int]:
    """Returns the numbers of messages by fate: scheduled, sent, settled and unsent count messages, all others
    messages x receivers.

    received: arrived, or answered. expected: sent to a receiver that should get it, or received anyway (a
    sender that cannot reach one of several receivers reports the message as unsent). lost: expected, not
    received. unsent: scheduled, but not sent to all. duplicated: delivered more than once. reordered: arrived
    after a later message of its flow. late: lost, or arrived (for a request: replied to) after its deadline;
    only if a flow has a deadline. unanswered: expected requests without a reply; only if there are requests.
    """
    one = messages.unique(["flow", "seq"])
    sent = pl.col("sent_ns").fill_null(0) > 0
    here = pl.col("received_ns").is_not_null() | pl.col("replied_ns").is_not_null()
    expected = messages.filter(pl.col("receiver").is_not_null() & (sent | here))
    got = expected.filter(here)
    found = {
        "scheduled": one.height,
        "sent": one.filter(sent).height,
        "settled": one.filter(pl.col("outcome") == "settled").height,
        "unsent": one.filter(~sent).height,
        "expected": expected.height,
        "received": got.height,
        "lost": expected.height - got.height,
        "duplicated": got.filter(pl.col("copies") > 1).height,
        "reordered": got.filter("reordered").height,
    }
    if messages.get_column("late").drop_nulls().len():
        found["late"] = messages.filter("late").height
    requests = expected.filter(pl.col("pattern") == "request")
    if not requests.is_empty():
        found["unanswered"] = requests.filter(pl.col("replied_ns").is_null()).height
    return found


def message_metrics(run: Run) -> list[Metric]:
    """Returns the counts over the whole run, for each class and guarantee; empty without messages."""
    table = run.table("messages")
    if table is None:
        return []
    return [
        count(f"messages_{name}", of, value, "messages", rows.height, "count")
        for of, rows in by_guarantee(table)
        for name, value in counts(rows).items()
    ]


def latency_metrics(run: Run) -> list[Metric]:
    """Returns the mean, deviation, percentiles and maximum of latency (to the first delivery) and round trip
    (to the reply) of the hold's messages, for each class and guarantee.

    Lost messages have no latency; `messages_lost` counts them.
    """
    table = held_messages(run)
    if table is None:
        return []
    found: list[Metric] = []
    for of, rows in by_guarantee(table):
        for name in ("latency", "round_trip"):
            known = rows.get_column(f"{name}_ns").drop_nulls()
            if known.len():
                found += _spread(name, of, known.to_numpy().astype(np.float64))
    return found


def _spread(name: str, of: Of, values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[Metric]:
    """Returns the mean, standard deviation (none of a single value), percentiles and maximum in ms, of values
    in ns that are in the order of sending.
    """
    ordered, n = np.sort(values), len(values)
    deviations = [float(np.std(values, ddof=1)) * 1e-6] if n > 1 else []
    return [
        metric(f"{name}_mean", of, "ms", batch_means(values.tolist()), 1e-6),
        *(count(f"{name}_deviation", of, one, "ms", n, "standard deviation") for one in deviations),
        *(metric(f"{name}_{p}", of, "ms", percentile(ordered, q), 1e-6) for p, q in PERCENTILES.items()),
        count(f"{name}_max", of, float(ordered[-1]) * 1e-6, "ms", n, "largest"),
    ]


def held_messages(run: Run) -> pl.DataFrame | None:
    """Returns the messages that were scheduled in the hold, or in the whole run if no hold is recorded; None
    if there are none.
    """
    table, hold = run.table("messages"), phases(run).get("hold")
    if table is None or hold is None:
        return table
    rows = table.filter(pl.col("scheduled_ns").is_between(hold.start_ns, hold.end_ns, closed="left"))
    return None if rows.is_empty() else rows


def by_guarantee(messages: pl.DataFrame) -> list[tuple[Of, pl.DataFrame]]:
    """Returns the rows of each class and guarantee, in order.

    A message without expected receivers has no guarantee of its own. It counts with its class if all messages
    of the class have the same one.
    """
    only = pl.when(pl.col("guarantee").drop_nulls().n_unique() == 1).then(
        pl.col("guarantee").drop_nulls().first()
    )
    rows = messages.with_columns(guarantee=pl.coalesce("guarantee", only.over("class")))
    groups = rows.partition_by("class", "guarantee", as_dict=True, include_key=True)
    named = [(Of(traffic_class=c, guarantee=p), part) for (c, p), part in groups.items()]
    return sorted(named, key=lambda one: (one[0].traffic_class or "", one[0].guarantee or ""))
