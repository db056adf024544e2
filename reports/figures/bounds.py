"""Draws the delays of the slowest messages of each class beside their network-calculus bound."""

from __future__ import annotations

import altair as alt
import polars as pl

from reports.figures.latency import MOST_CURVES, quantiles
from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import HEIGHT, WIDTH, colour, log_ticks
from reports.metrics.bounds import taken_ns
from reports.study import Study


def data(study: Study) -> pl.DataFrame:
    """Returns the columns curve (class), ms, share, beyond (%), bound_ms (the largest bound of the class's
    flows), for the MOST_CURVES classes with most messages; CannotDrawError if no message of a flow with a
    bound arrived in the hold.
    """
    taken = taken_ns(study.cells[0].run)
    if taken.is_empty():
        raise CannotDrawError("no message of a flow with a bound arrived in the hold")
    most = taken.group_by("class").len().sort("len", "class", descending=[True, False])
    parts = []
    for name in most.get_column("class").head(MOST_CURVES).sort().to_list():
        rows = taken.filter(pl.col("class") == name)
        bound = pl.lit(rows.get_column("worst_ns").max()) / 1e6
        parts.append(
            quantiles(rows.group_by(time_ns="took_ns").agg(count=pl.len()).sort("time_ns")).with_columns(
                curve=pl.lit(name), bound_ms=bound
            )
        )
    return pl.concat(parts).select("curve", "ms", "share", "beyond", "bound_ms")


def chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws the distributions on two logarithmic axes, with a dashed line at each class's bound."""
    curves = frame.get_column("curve").unique().sort().to_list()
    both = pl.concat([frame.select("ms"), frame.select(ms="bound_ms")])
    scale, axis = log_ticks(both, "ms")
    y_scale, y_axis = log_ticks(frame, "beyond")
    line = (
        alt.Chart(frame)
        .mark_line(interpolate="step-before")
        .encode(
            x=alt.X("ms:Q", title="measured, and bound (dashed), ms", scale=scale, axis=axis),
            y=alt.Y("beyond:Q", title="share of messages this slow or slower, %", scale=y_scale, axis=y_axis),
            color=colour(curves, field="curve"),
        )
    )
    limits = frame.select("curve", "bound_ms").unique(maintain_order=True)
    rules = (
        alt.Chart(limits)
        .mark_rule(strokeDash=[6, 4], strokeWidth=2)
        .encode(x=alt.X("bound_ms:Q", scale=scale, axis=axis), color=colour(curves, field="curve"))
    )
    named = alt.Chart(limits).mark_text(
        angle=270, align="right", baseline="bottom", dx=-6, dy=-4, fontSize=11
    )
    words = named.encode(
        x=alt.X("bound_ms:Q", scale=scale, axis=axis),
        y=alt.value(0),
        text=alt.Text("label:N"),
        color=colour(curves, field="curve"),
    ).transform_calculate(label="'bound ' + format(datum.bound_ms, '.3~f') + ' ms'")
    return alt.layer(line, rules, words).properties(width=WIDTH, height=HEIGHT)


BOUNDS = Spec(
    "bounds-ccdf",
    "Measured delays and their bounds",
    "Messages scheduled in the hold, of flows with a bound, from the scheduled time to delivery (for a "
    "request, to its reply). Dashed line: the largest bound of the class's flows.",
    data,
    chart,
)
SPECS = (BOUNDS,)
