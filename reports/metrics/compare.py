"""Metrics of all cells side by side: means over repetitions with 95 % intervals, of t or of Poisson."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple

import polars as pl

from reports.cell import Cell
from reports.metrics.metric import OF, Metric, Of
from reports.metrics.stats import poisson_interval, t_interval

SCHEMA = {
    "scenario": pl.String,
    "series": pl.String,
    "name": pl.String,
    **{field: pl.Int64 if field == "frame_bytes" else pl.String for field in OF},
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "unit": pl.String,
    "n": pl.Int64,
    "repetitions": pl.Int64,
    "method": pl.String,
}
# Units of what is counted, and counts whose size the schedule or the protocol sets: no chance events.
COUNTED = ("messages", "packets", "segments", "events", "answers")
AMOUNTS = (
    "messages_scheduled", "messages_sent", "messages_settled", "messages_expected", "messages_received",
    "packets", "protocol_packets", "efficiency_packets", "measurement_packets", "due_in_outage",
)  # fmt: skip
Key = tuple[str, str, str, Of]


def compare(measured: Iterable[tuple[Cell, list[Metric]]]) -> pl.DataFrame:
    """One row per condition, metric and what it is of; of a study's own metrics see `Study.compared`.

    With one repetition the run's own interval and n; with more, the mean of the runs' values, n the
    repetitions, and over them a Poisson interval of what is counted, else Student's t interval.
    """
    groups: dict[Key, list[Metric]] = {}
    for cell, metrics in measured:
        for m in metrics:
            groups.setdefault((cell.scenario, cell.series, m.name, m.of), []).append(m)
    return pl.DataFrame([row(key, found) for key, found in groups.items()], schema=SCHEMA, orient="row")


def called(name: str, **of: str | int) -> pl.Expr:
    """Whether a row of `compare` is the metric of that name, and of what is said."""
    return pl.all_horizontal(pl.col("name") == name, *(pl.col(field) == value for field, value in of.items()))


def row(key: Key, found: list[Metric]) -> tuple[object, ...]:
    """One row: scenario, series, metric's name and what it is of, of the values of all repetitions."""
    scenario, series, name, of = key
    first = found[0]
    if len(found) == 1:
        value, low, high, n, method = first.value, first.low, first.high, first.n, first.method
    else:
        interval = poisson_interval if is_count(found) else t_interval
        spread = interval([m.value for m in found], "repetition")
        value, low, high, n, method = spread.value, spread.low, spread.high, spread.n, spread.method
    return (scenario, series, name, *astuple(of), value, low, high, first.unit, n, len(found), method)


def is_count(found: list[Metric]) -> bool:
    """Whether the values count chance events: losses, drops, repetitions."""
    counted = found[0].unit in COUNTED and found[0].name not in AMOUNTS
    return counted and all(m.low is None and m.value >= 0 and m.value == int(m.value) for m in found)
