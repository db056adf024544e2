"""Draws latency and round trips by traffic class: distributions, tails, and percentiles over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import altair as alt
import numpy as np
import polars as pl

from reports.control import COLUMNS, floors
from reports.figures.marks import mark_times, seconds, time_axis
from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import HALF, HEIGHT, WIDTH, colour, dash, log_ticks
from reports.metrics.messages import held_messages
from reports.metrics.pooled import Pooled
from reports.rundir import Run
from reports.study import Study, per_cell

NEEDS = "no message of the hold arrived"
# the points are denser towards the slowest messages
QUANTILES = np.unique(np.concatenate([np.linspace(0, 0.99, 100), 1 - np.logspace(-2, -5, 46), [1.0]]))
MOST_POINTS = 300  # time bins of a plot; longer runs get wider bins
MOST_CURVES = 8  # largest number of curves in one plot: those with most messages
Data = Callable[[Study], pl.DataFrame]


def quantiles_data(column: str) -> Data:
    """Returns a function that computes the columns scenario, curve, ms, share (%), beyond (%): quantiles of
    `column` over the messages of the hold, all repetitions together. It raises CannotDrawError if there is no
    such message.

    A curve is a class, a series, or both if a study has several of both; only the MOST_CURVES with most
    messages remain. Runs are read one at a time, twice: first to find the curves, then for their times.
    """

    def computed(study: Study) -> pl.DataFrame:
        found = per_cell(study, lambda run: _classes(run, column))
        if found is None:
            raise CannotDrawError(NEEDS)
        curves = _shown(found.with_columns(curve=_curve(found)))
        pairs = list(dict.fromkeys(curves.values()))
        pooled = Pooled()
        for cell in study.cells:
            for (name,), rows in _times(cell.run, column).group_by("traffic_class"):
                pair = curves.get((cell.scenario, cell.series, str(name)))
                if pair is not None:
                    pooled.add(pairs.index(pair), rows.get_column("time_ns"))
        parts = [
            quantiles(pooled.of(number)).with_columns(scenario=pl.lit(scenario), curve=pl.lit(curve))
            for number, (scenario, curve) in enumerate(pairs)
        ]
        return pl.concat(parts).select("scenario", "curve", "ms", "share", "beyond")

    return lambda study: study.once(computed)


def _times(run: Run, column: str) -> pl.DataFrame:
    """Returns the columns traffic_class and time_ns of the messages of the hold whose `column` is
    not null.
    """
    held = held_messages(run)
    if held is None:
        return pl.DataFrame(schema={"traffic_class": pl.String, "time_ns": pl.Int64})
    return held.select(traffic_class="class", time_ns=column).drop_nulls("time_ns")


def _classes(run: Run, column: str) -> pl.DataFrame:
    """Returns the columns traffic_class and len, the number of messages of the hold whose `column`
    is not null.
    """
    return _times(run, column).group_by("traffic_class", maintain_order=True).len()


def _shown(found: pl.DataFrame) -> dict[tuple[str, str, str], tuple[str, str]]:
    """Maps (scenario, series, class) to (scenario, curve), for the MOST_CURVES curves with most messages."""
    most = found.group_by("curve").agg(pl.col("len").sum()).sort("len", "curve", descending=[True, False])
    names = most.get_column("curve").head(MOST_CURVES).to_list()
    shown = found.filter(pl.col("curve").is_in(names))
    return {
        (scenario, series, name): (scenario, curve)
        for scenario, series, name, curve in shown.select(
            "scenario", "series", "traffic_class", "curve"
        ).iter_rows()
    }


def _curve(rows: pl.DataFrame) -> pl.Expr:
    classes, series = (rows.get_column(name).n_unique() for name in ("traffic_class", "series"))
    if classes == 1:
        return pl.col("series") if series > 1 else pl.col("traffic_class")
    return (
        pl.col("traffic_class") if series == 1 else pl.concat_str("traffic_class", "series", separator=", ")
    )


def quantiles(counts: pl.DataFrame) -> pl.DataFrame:
    """Returns the QUANTILES of times, which `counts` has sorted with their numbers, in ms: with the share of
    messages up to each (`share`) and at or above it (`beyond`), in %. Equal times have one row.
    """
    by_then = counts.get_column("count").cast(pl.Int64).cum_sum().to_numpy()
    n = int(by_then[-1])
    ranks = np.minimum(n, np.maximum(1, np.ceil(QUANTILES * n).astype(int)))
    at = np.searchsorted(by_then, ranks, side="left")
    before = np.concatenate([[0], by_then[:-1]])[at]
    ms = counts.get_column("time_ns").to_numpy()[at] / 1e6
    rows = pl.DataFrame({"ms": ms, "share": 100.0 * ranks / n, "beyond": 100.0 - 100.0 * before / n})
    return rows.group_by("ms", maintain_order=True).agg(pl.col("share").last(), pl.col("beyond").last())


def ecdf_chart(title: str, column: str) -> Callable[[pl.DataFrame, Study], AnyChart]:
    """Returns a function that draws the cumulative share of messages against time, on a logarithmic axis."""

    def draw(frame: pl.DataFrame, study: Study) -> AnyChart:
        y = alt.Y("share:Q", title="cumulative share of messages, %", scale=alt.Scale(domain=[0, 100]))
        return _steps(frame, title, y, _floor(frame, study, column))

    return draw


def ccdf_chart(title: str, column: str) -> Callable[[pl.DataFrame, Study], AnyChart]:
    """Returns a function that draws the share of messages at or above each time, both axes logarithmic."""

    def draw(frame: pl.DataFrame, study: Study) -> AnyChart:
        scale, axis = log_ticks(frame, "beyond")
        y = alt.Y("beyond:Q", title="share of messages this slow or slower, %", scale=scale, axis=axis)
        return _steps(frame, title, y, _floor(frame, study, column), "step-before")

    return draw


def _steps(
    frame: pl.DataFrame,
    title: str,
    y: alt.Y,
    floor: pl.DataFrame,
    interpolate: Literal["step-after", "step-before"] = "step-after",
) -> AnyChart:
    scenarios = frame.get_column("scenario").n_unique()
    curves = frame.get_column("curve").unique().sort().to_list()
    scale, axis = log_ticks(frame, "ms")
    if floor.height:
        scale, axis = log_ticks(pl.concat([frame.select("ms"), floor.select("ms")]), "ms")
    line = (
        alt.Chart(frame)
        .mark_line(interpolate=interpolate)
        .encode(
            x=alt.X("ms:Q", title=title, scale=scale, axis=axis),
            y=y,
            color=colour(curves, field="curve"),
            strokeDash=dash(curves, field="curve"),
        )
    )
    drawn: AnyChart = line if floor.is_empty() else line + _floor_lines(floor, curves)
    sized = drawn.properties(width=WIDTH if scenarios == 1 else HALF, height=HEIGHT)
    if scenarios == 1:
        return sized
    faceted: AnyChart = sized.facet(column=alt.Column("scenario:N", title=None))
    return faceted


def _floor(frame: pl.DataFrame, study: Study, column: str) -> pl.DataFrame:
    """Returns the floor of the frame's curves; empty for a campaign, or without a control run."""
    floor = floors(study.cells[0].run, column)
    return floor.filter(pl.col("curve").is_in(frame.get_column("curve").to_list()) & study.single)


def _floor_lines(floor: pl.DataFrame, curves: list[str]) -> AnyChart:
    """Draws the median latency of each class in the control run as a vertical line."""
    chart = alt.Chart(floor).encode(x="ms:Q")
    rule = chart.mark_rule(strokeDash=[1, 3], strokeWidth=2).encode(color=colour(curves, field="curve"))
    words = chart.mark_text(align="left", baseline="top", dx=4, y=0).encode(text=alt.value("control, p50"))
    drawn: AnyChart = alt.layer(rule, words)
    return drawn


def over_time_data(study: Study) -> pl.DataFrame:
    """Returns the columns time (s), traffic_class, percentile, latency_ms, n, for bins of the scheduled time
    over the whole first run and its four largest classes.

    The percentiles are p50 and p99, and max if there is a single class. CannotDrawError if no message
    arrived.
    """
    run = study.cells[0].run
    table = run.table("messages")
    if table is None or not table.get_column("latency_ns").drop_nulls().len():
        raise CannotDrawError(NEEDS)
    rows = table.drop_nulls("latency_ns").select(
        seconds("scheduled_ns", run), traffic_class=pl.col("class"), ms=pl.col("latency_ns") / 1e6
    )
    most = rows.group_by("traffic_class").len().sort("len", "traffic_class", descending=[True, False])
    rows = rows.filter(pl.col("traffic_class").is_in(most.get_column("traffic_class").head(4).to_list()))
    width = bin_seconds(rows)
    wanted = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    if rows.get_column("traffic_class").n_unique() > 1:
        del wanted["max"]
    binned = rows.group_by("traffic_class", (pl.col("time") // width * width + width / 2).alias("time")).agg(
        *[pl.col("ms").quantile(q, "higher").alias(name) for name, q in wanted.items()], n=pl.len()
    )
    keys = ["time", "traffic_class", "n"]
    long = binned.unpivot(on=list(wanted), index=keys, variable_name="percentile", value_name="latency_ms")
    order = ("traffic_class", "percentile", "time")
    return long.sort(order).select("time", "traffic_class", "percentile", "latency_ms", "n")


def bin_seconds(rows: pl.DataFrame) -> float:
    """Returns the width of the time bins in whole seconds: at least 1 s, and wide enough for at most
    MOST_POINTS bins. `rows` must not be empty.
    """
    first, last = rows.get_column("time").min(), rows.get_column("time").max()
    span = float(last) - float(first)  # type: ignore[arg-type]  # both are floats: rows is not empty
    return float(max(1.0, np.ceil(span / MOST_POINTS)))


def over_time_chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws the percentiles over the scheduled time; one colour for each class if there are several."""
    order = [p for p in ("p50", "p99", "max") if p in frame.get_column("percentile")]
    classes = frame.get_column("traffic_class").unique().sort().to_list()
    scale, axis = log_ticks(frame, "latency_ms")
    several = len(classes) > 1
    line = (
        alt.Chart(frame)
        .mark_line(strokeWidth=1.6)
        .encode(
            x=time_axis(study.cells[0].run),
            y=alt.Y("latency_ms:Q", title="latency, ms", scale=scale, axis=axis),
            color=colour(classes, field="traffic_class") if several else colour(order, field="percentile"),
            strokeDash=dash(order, field="percentile"),
        )
    )
    return mark_times(line, study.cells[0].run).properties(width=WIDTH, height=HEIGHT)


LATENCIES, ROUND_TRIPS = (quantiles_data(column) for column in COLUMNS)
LATENCY, ROUND_TRIP = "latency from the scheduled time, ms", "round trip from the scheduled time, ms"
ECDF = Spec(
    "latency-cdf",
    "Latency distribution",
    "Received messages of the hold, from their scheduled (not their actual) sending to delivery to the "
    "application. Both ends share one clock.",
    LATENCIES,
    ecdf_chart(LATENCY, COLUMNS[0]),
)
CCDF = Spec(
    "latency-ccdf",
    "The slowest messages",
    "The tail of the same distribution: the share of messages at or above each latency. Lost messages are "
    "not included.",
    LATENCIES,
    ccdf_chart(LATENCY, COLUMNS[0]),
)
TRIPS = Spec(
    "round-trip-ccdf",
    "Round trips",
    "Answered requests of the hold: the share whose reply took this long or longer.",
    ROUND_TRIPS,
    ccdf_chart(ROUND_TRIP, COLUMNS[1]),
)
OVER_TIME = Spec(
    "latency-time",
    "Latency over time",
    "Percentiles of the messages scheduled in each bin of time.",
    over_time_data,
    over_time_chart,
)
SPECS = (ECDF, CCDF, TRIPS)
