"""Combines the metrics of all cells by condition: means over repetitions with 95 % intervals (t
or Poisson).
"""

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
# Units of counts, and counts that the schedule or the protocol fixes, which are not chance events.
COUNTED = ("messages", "packets", "segments", "events", "answers", "requests")
AMOUNTS = (
    "messages_scheduled", "messages_sent", "messages_settled", "messages_expected", "messages_received",
    "packets", "protocol_packets", "efficiency_packets", "measurement_packets", "due_in_outage",
    "program_requests", "program_status_2xx", "program_sent", "program_received",
    "app_requests", "app_status_2xx",
)  # fmt: skip
Key = tuple[str, str, str, Of]


def compare(measured: Iterable[tuple[Cell, list[Metric]]]) -> pl.DataFrame:
    """Returns one row for each condition, metric and subject; `Study.compared` holds the result for a study's
    own metrics.

    One repetition keeps the run's own interval and n. More give the mean of the runs' values, the number of
    repetitions as n, and a Poisson interval for counts, else Student's t interval.
    """
    groups: dict[Key, list[Metric]] = {}
    for cell, metrics in measured:
        for m in metrics:
            groups.setdefault((cell.scenario, cell.series, m.name, m.of), []).append(m)
    return pl.DataFrame([row(key, found) for key, found in groups.items()], schema=SCHEMA, orient="row")


def called(name: str, **of: str | int) -> pl.Expr:
    """Returns an expression that selects rows of `compare` by the metric's name and subject."""
    return pl.all_horizontal(pl.col("name") == name, *(pl.col(field) == value for field, value in of.items()))


def row(key: Key, found: list[Metric]) -> tuple[object, ...]:
    """Returns one row of `compare` from the values of all repetitions."""
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
    """Returns whether the values count chance events, such as losses, drops or retransmissions: whole numbers
    without interval in a unit of COUNTED, of a metric that is not in AMOUNTS.
    """
    counted = found[0].unit in COUNTED and found[0].name not in AMOUNTS
    return counted and all(m.low is None and m.value >= 0 and m.value == int(m.value) for m in found)
