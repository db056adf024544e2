"""Latency of each class of traffic: its distribution, and percentiles over time."""

from __future__ import annotations

import altair as alt
import numpy as np
import polars as pl

from reports.figures.marks import mark_times, seconds, time_axis
from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import HALF, HEIGHT, WIDTH, colour, dash, log_ticks
from reports.metrics.messages import held_messages
from reports.rundir import Run
from reports.study import Study, per_cell

NEEDS = "needs received messages (messages.parquet)"
# dense towards the tail, which is what one looks for
QUANTILES = np.unique(np.concatenate([np.linspace(0, 0.99, 200), 1 - np.logspace(-2, -4, 60), [1.0]]))
SHOWN = {"p50": 0.5, "p99": 0.99, "max": 1.0}  # over time
MOST_POINTS = 300  # time bins of a plot; longer runs get wider bins


def cdf_data(study: Study) -> pl.DataFrame:
    """Rows scenario, series, class, latency_ms, share (%): quantiles of all repetitions together."""
    rows = per_cell(study, _latencies)
    if rows is None:
        raise CannotDrawError(NEEDS)
    parts = []
    keys = ("scenario", "series", "class")
    for (scenario, series, of_class), group in rows.group_by(*keys, maintain_order=True):
        values = np.sort(group.get_column("latency_ms").to_numpy())
        at = values[np.minimum(len(values) - 1, np.ceil(QUANTILES * len(values)).astype(int))]
        parts.append(
            pl.DataFrame({"latency_ms": at, "share": 100 * QUANTILES}).select(
                pl.lit(scenario).alias("scenario"),
                pl.lit(series).alias("series"),
                pl.lit(of_class).alias("class"),
                "latency_ms",
                "share",
            )
        )
    return pl.concat(parts)


def _latencies(run: Run) -> pl.DataFrame | None:
    held = held_messages(run)
    return None if held is None else held.select("class", latency_ms=pl.col("latency_ns") / 1e6).drop_nulls()


def cdf_chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Cumulative share of messages against latency, on a logarithmic axis; a colour a series, or a class."""
    scenarios = frame.get_column("scenario").n_unique()
    classes = frame.get_column("class").unique().sort().to_list()
    first, second = ("series", study.series), ("class", classes)
    if len(study.series) == 1 and len(classes) > 1:
        first, second = second, first
    scale, axis = log_ticks(frame, "latency_ms")
    x = alt.X("latency_ms:Q", title="latency from the scheduled time, ms", scale=scale, axis=axis)
    dashed = second if len(second[1]) > 1 else first
    line = (
        alt.Chart(frame)
        .mark_line(interpolate="step-after")
        .encode(
            x=x,
            y=alt.Y("share:Q", title="messages received by then, %", scale=alt.Scale(domain=[0, 100])),
            color=colour(first[1], field=first[0]),
            strokeDash=dash(dashed[1], field=dashed[0]),
        )
    )
    sized = line.properties(width=WIDTH if scenarios == 1 else HALF, height=HEIGHT)
    faceted: AnyChart = sized.facet(column=alt.Column("scenario:N", title=None))
    return faceted


def over_time_data(study: Study) -> pl.DataFrame:
    """Rows time (s), class, percentile, latency_ms, n, of messages scheduled in that bin of time."""
    run = study.cells[0].run
    table = run.table("messages")
    if table is None or not table.get_column("latency_ns").drop_nulls().len():
        raise CannotDrawError(NEEDS)
    known = table.drop_nulls("latency_ns")
    rows = known.select("class", seconds("scheduled_ns", run), ms=pl.col("latency_ns") / 1e6)
    width = bin_seconds(rows)
    binned = rows.group_by("class", (pl.col("time") // width * width + width / 2).alias("time")).agg(
        *[pl.col("ms").quantile(q, "higher").alias(name) for name, q in SHOWN.items()], n=pl.len()
    )
    long = binned.unpivot(
        on=list(SHOWN), index=["time", "class", "n"], variable_name="percentile", value_name="latency_ms"
    )
    return long.sort("class", "percentile", "time").select("time", "class", "percentile", "latency_ms", "n")


def bin_seconds(rows: pl.DataFrame) -> float:
    """A width of 1 s or more that gives at most 300 bins."""
    first, last = rows.get_column("time").min(), rows.get_column("time").max()
    span = float(last) - float(first)  # type: ignore[arg-type]  # both are floats: rows is not empty
    return float(max(1.0, np.ceil(span / MOST_POINTS)))


def over_time_chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """p50, p99 and maximum over the time of sending; a colour a class where there are several."""
    classes = frame.get_column("class").unique().sort().to_list()
    coloured = ("class", classes) if len(classes) > 1 else ("percentile", list(SHOWN))
    scale, axis = log_ticks(frame, "latency_ms")
    line = (
        alt.Chart(frame)
        .mark_line(strokeWidth=1.6)
        .encode(
            x=time_axis(study.cells[0].run),
            y=alt.Y("latency_ms:Q", title="latency, ms", scale=scale, axis=axis),
            color=colour(coloured[1], field=coloured[0]),
            strokeDash=dash(list(SHOWN), field="percentile"),
        )
    )
    return mark_times(line, study.cells[0].run).properties(width=WIDTH, height=HEIGHT)


CDF = Spec(
    "latency-cdf",
    "Latency distribution",
    "Messages scheduled in the hold that were received, from the time they were to be sent (not the "
    "time they were sent) to delivery to the application. Both ends share one clock.",
    cdf_data,
    cdf_chart,
)
OVER_TIME = Spec(
    "latency-time",
    "Latency over time",
    "Percentiles of the messages scheduled in each bin of time, by class of traffic.",
    over_time_data,
    over_time_chart,
)
