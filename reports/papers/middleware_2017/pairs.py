"""What a run of one middleware and one serialiser gives: throughput and latency of each pattern."""

from __future__ import annotations

import polars as pl

from reports.metrics.metric import Metric, Of, count
from reports.rundir import Run
from reports.series import parameters
from reports.study import Study

# Classes of topologies/papers/middleware.yaml -> as the paper calls them; NAME-greedy: the same, greedy.
PATTERNS = {"request": "Request-Reply", "push": "Push-Pull", "publish": "Publish-Subscribe"}
GREEDY = "-greedy"
THROUGHPUT, LATENCY = "pair_throughput", "pair_latency"
MS = 1e-6


def pair_metrics(run: Run) -> list[Metric]:
    """Of each pattern: messages received in a second, and the mean time to the receiver.

    They are counted from the first one on for as long as was sent, as the paper did; requests by
    half of their round trip.
    """
    messages = run.table("messages")
    if messages is None or not {"use", "serialiser"} <= parameters(run).keys():
        return []
    found = []
    for pattern in PATTERNS:
        of = Of(traffic_class=pattern)
        there = "round_trip_ns" if pattern == "request" else "latency_ns"
        calm = messages.filter(pl.col("class") == pattern).get_column(there).drop_nulls()
        if calm.len():
            mean = float(calm.mean()) * MS * (0.5 if pattern == "request" else 1.0)  # type: ignore[arg-type]  # of numbers
            found.append(count(LATENCY, of, mean, "ms", calm.len(), "mean of the calm messages"))
        found += _throughput(run, messages, pattern, of)
    return found


def _throughput(run: Run, messages: pl.DataFrame, pattern: str, of: Of) -> list[Metric]:
    flow = next((one for one in run.plan["flows"] if one["traffic_class"] == pattern + GREEDY), None)
    if flow is None:
        return []
    at = "replied_ns" if pattern == "request" else "received_ns"
    arrived = messages.filter(pl.col("class") == pattern + GREEDY).get_column(at).drop_nulls()
    if arrived.is_empty():
        return [count(THROUGHPUT, of, 0.0, "messages/s", 0, "nothing arrived")]
    length_ns = int(flow["stop_ns"]) - int(flow["start_ns"])
    counted = int((arrived - arrived.min() < length_ns).sum())
    how = f"received in {length_ns / 1e9:g} s from the first on"
    return [count(THROUGHPUT, of, counted / length_ns * 1e9, "messages/s", counted, how)]


def pairs(study: Study) -> pl.DataFrame:
    """use, serialiser, pattern, name (throughput or latency), value: means over repetitions."""
    rows = [
        (str(said["use"]), str(said["serialiser"]), str(m.of.traffic_class), m.name, m.value)
        for cell in study.cells
        for said in (parameters(cell.run) | cell.levels,)
        for m in pair_metrics(cell.run)
    ]
    schema = ["use", "serialiser", "pattern", "name"]
    frame = pl.DataFrame(rows, schema={**dict.fromkeys(schema, pl.String), "value": pl.Float64}, orient="row")
    return frame.group_by(schema, maintain_order=True).agg(pl.col("value").mean())
