"""Metrics of all cells side by side: means over repetitions with 95 % t intervals."""

from __future__ import annotations

import polars as pl

from reports.metrics.metric import Metric
from reports.metrics.stats import t_interval
from reports.study import Study

SCHEMA = {
    "scenario": pl.String,
    "series": pl.String,
    "qos": pl.Int64,
    "name": pl.String,
    "scope": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "unit": pl.String,
    "n": pl.Int64,
    "repetitions": pl.Int64,
    "method": pl.String,
}


def compare(study: Study) -> pl.DataFrame:
    """One row per condition and metric.

    With one repetition the run's own interval and n; with more, the mean of the runs' values, n the
    repetitions, and Student's t interval over them. A scope that names the QoS is called "QoS" here, since
    the condition says which.
    """
    groups: dict[tuple[str, str, str, str], list[tuple[int | None, Metric]]] = {}
    for cell in study.cells:
        for m in cell.metrics:
            scope = "QoS" if cell.qos is not None and m.scope == f"QoS {cell.qos}" else m.scope
            groups.setdefault((cell.scenario, cell.series, m.name, scope), []).append((cell.qos, m))
    rows = [_row(key, found) for key, found in groups.items()]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _row(key: tuple[str, str, str, str], found: list[tuple[int | None, Metric]]) -> tuple[object, ...]:
    scenario, series, name, scope = key
    qos, first = found[0]
    if len(found) == 1:
        value, low, high, n, method = first.value, first.low, first.high, first.n, first.method
    else:
        spread = t_interval([m.value for _, m in found], "repetition")
        value, low, high, n, method = spread.value, spread.low, spread.high, spread.n, spread.method
    return (scenario, series, qos, name, scope, value, low, high, first.unit, n, len(found), method)
