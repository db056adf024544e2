"""Computes the missed deadlines and the drops of each flow's packets in the time intervals of the paper."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from reports.cell import Cell
from reports.metrics.metric import Metric, Of, count
from reports.metrics.stats import t_interval
from reports.numbers import plain, plus_minus
from reports.papers.published import reference
from reports.roles import phases
from reports.rundir import Run
from reports.series import parameters

ROOM = Path(__file__).parent
# Classes of topologies/papers/ccc-2011*.yaml that have a deadline.
FLOWS = ("a-hrt", "a-lrt", "b-hrt", "b-lrt")
MISSED, DROPPED, SENT = "ccc_missed", "ccc_dropped", "ccc_sent"
# The interval after the broker's answer, and after the packets that waited before it; the paper prints no
# figures for it.
AFTER = (103.0, 118.0)
SECOND_NS = 1_000_000_000


def intervals() -> list[tuple[float, float]]:
    """Returns the intervals of the paper, in seconds from the load's start."""
    return [(float(a), float(b)) for a, b in reference(ROOM)["intervals_s"]]


def label(interval: tuple[float, float]) -> str:
    """Returns the name of an interval in claims, such as "30 to 40 s"."""
    return f"{interval[0]:g} to {interval[1]:g} s"


def printed(kind: str, scheme: str, flow: str) -> list[float]:
    """Returns the paper's values of one flow. kind: deadline_missed_percent or overflow_dropped_percent;
    scheme: with or without.
    """
    rows: dict[str, Any] = reference(ROOM)[kind][scheme]
    return [float(value) for value in rows[flow.replace("-", "_")]]


def sent(run: Run) -> pl.DataFrame | None:
    """Returns the messages of `within` if the run has the paper's flows, else None."""
    rows = within(run)
    return rows if rows is not None and set(FLOWS) <= set(rows["class"].unique()) else None


def works(cell: Cell) -> bool:
    """Returns whether the gateways of a run cooperate."""
    return bool((parameters(cell.run) | cell.levels).get("cooperate"))


def within(run: Run) -> pl.DataFrame | None:
    """Returns the messages with a receiver, and `at`, their scheduled time in s from the load's start; None
    without messages or hold.
    """
    messages, hold = run.table("messages"), phases(run).get("hold")
    if messages is None or hold is None:
        return None
    at = (pl.col("scheduled_ns") - hold.start_ns) / SECOND_NS
    return messages.filter(pl.col("receiver").is_not_null()).with_columns(at=at)


def deadlines_ns(run: Run) -> dict[str, int]:
    """Returns the deadline in ns of each traffic class that has one."""
    flows = run.plan.flows
    return {f.traffic_class: f.deadline_ns for f in flows if f.deadline_ns}


def interval_metrics(run: Run) -> list[Metric]:
    """Returns for each flow and interval of the paper, and for AFTER: packets sent per second, and the
    percentages that arrived late (if the flow has a deadline) and never.

    Intervals without packets are left out; empty for runs without the paper's flows.
    """
    rows = sent(run)
    return [] if rows is None else list(_of_flows(rows, deadlines_ns(run)))


def _of_flows(rows: pl.DataFrame, deadlines: dict[str, int]) -> Iterator[Metric]:
    for flow in sorted(rows["class"].unique()):
        for interval in (*intervals(), AFTER):
            of = Of(traffic_class=flow, event=label(interval))
            part = rows.filter((pl.col("class") == flow) & pl.col("at").is_between(*interval, closed="left"))
            n = part.height
            if not n:
                continue
            yield count(SENT, of, n / (interval[1] - interval[0]), "packets/s", n, "sent in the interval")
            if flow in deadlines:
                late = int((part["latency_ns"] > deadlines[flow]).sum())
                yield count(MISSED, of, 100 * late / n, "%", n, "of the packets sent in the interval")
            never = part["received_ns"].null_count()
            yield count(DROPPED, of, 100 * never / n, "%", n, "of the packets sent in the interval")


def text_of(values: list[float] | None) -> str:
    """Returns the mean of the repetitions with its interval as text; a single value with two decimals and no
    interval; "" without values.
    """
    if not values:
        return ""
    if len(values) == 1:
        return plain(round(values[0], 2))
    estimate = t_interval(values, "repetitions")
    return plus_minus(estimate.value, estimate.low, estimate.high)
