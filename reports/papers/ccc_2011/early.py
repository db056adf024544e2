"""Computes drops and latency of queues that are short, long, and long with random early detection (section
6.4.3).
"""

from __future__ import annotations

import polars as pl

from reports.metrics.metric import Metric, Of, count
from reports.papers.ccc_2011.intervals import text_of, within
from reports.papers.paper import Table
from reports.rundir import Run
from reports.study import Study

QUEUES = {
    "short-flow": "20 packets",
    "long-flow": "200 packets",
    "red-flow": "200 packets, random early detection",
}
DROPPED, LATENCY = "ccc_queue_dropped", "ccc_queue_latency"
SETTLED_S = 5.0  # s; the mean queue length has settled after this time


def early_metrics(run: Run) -> list[Metric]:
    """Returns for each queue the dropped share in % and the mean latency in ms of its packets from SETTLED_S
    on; empty for runs without all of QUEUES.
    """
    rows = within(run)
    if rows is None or not set(QUEUES) <= set(rows["class"].unique()):
        return []
    found = []
    for flow in QUEUES:
        part = rows.filter((pl.col("class") == flow) & (pl.col("at") >= SETTLED_S))
        arrived = part["latency_ns"].drop_nulls()
        of, n = Of(traffic_class=flow), part.height
        if n:
            dropped = 100 * part["received_ns"].null_count() / n
            found.append(count(DROPPED, of, dropped, "%", n, "of the packets sent"))
        if arrived.len():
            mean = float(arrived.mean() or 0) / 1e6  # type: ignore[arg-type]  # of numbers
            found.append(count(LATENCY, of, mean, "ms", arrived.len(), "mean"))
    return found


def tables(study: Study) -> tuple[Table, ...]:
    """Returns the table of the queues, the means of all repetitions with their intervals; nothing for a study
    without such runs.
    """
    found: dict[tuple[str, str], list[float]] = {}
    for cell in study.cells:
        for one in early_metrics(cell.run):
            found.setdefault((str(one.of.traffic_class), one.name), []).append(one.value)
    if not found:
        return ()
    rows = tuple(
        (title, text_of(found.get((flow, DROPPED))), text_of(found.get((flow, LATENCY))))
        for flow, title in QUEUES.items()
    )
    caption = (
        "Beyond the paper's evaluation: the trade-off of section 6.4.3. One flow at random, of a class that "
        "carries 100 packets a second."
    )
    return (Table("", caption, ("queue", "dropped, %", "mean latency, ms"), rows),)
