"""Draws the links that follow a trace: the rates that the trace requests, the rates carried,
and the delays.
"""

from __future__ import annotations

from typing import Literal

import altair as alt
import polars as pl

from reports.figures.marks import mark_times, seconds, time_axis
from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import WIDTH, colour, dash
from reports.metrics.links import whole
from reports.study import Study

Steps = Literal["step-before", "step-after"]
MOST = 4  # directions, each with two curves
REQUESTED, CARRIED = "requested", "carried"


def rates(study: Study) -> pl.DataFrame:
    """Returns the columns time (s), curve (link and direction), what (requested or carried), value (Mbit/s)
    of the first run, for the first MOST directions by name whose trace has rates; CannotDrawError without
    one.
    """
    run = study.cells[0].run
    table = run.table("links")
    if table is None or "requested_bps" not in table.columns:
        raise CannotDrawError("no link follows a trace")
    rows = whole(table).drop_nulls(["requested_bps", "bps"])
    if rows.is_empty():
        raise CannotDrawError("no trace of a link has rates")
    curve = pl.col("link") + " " + pl.col("direction")
    shown = rows.select(curve.alias("curve")).unique().sort("curve").head(MOST)["curve"].to_list()
    return (
        rows.select(
            seconds("t_ns", run), curve.alias("curve"),
            (pl.col("requested_bps") / 1e6).alias(REQUESTED), (pl.col("bps") / 1e6).alias(CARRIED),
        )
        .filter(pl.col("curve").is_in(shown))
        .unpivot(on=[REQUESTED, CARRIED], index=["time", "curve"], variable_name="what", value_name="value")
        .sort("curve", "what", "time")
    )  # fmt: skip


def delays(study: Study) -> pl.DataFrame:
    """Returns the columns time (s), curve (link and direction), value (ms) of the first run at each change,
    for the first MOST directions by name whose delay changes; CannotDrawError without one.
    """
    run = study.cells[0].run
    table = run.table("impairments")
    if table is None:
        raise CannotDrawError("no link follows a trace")
    rows = table.select(
        seconds("t_ns", run),
        curve=pl.col("link") + " " + pl.col("direction"),
        value=pl.col("delay_ns") / 1e6,
    )
    changing = rows.group_by("curve").agg(pl.col("value").n_unique()).filter(pl.col("value") > 1)
    shown = changing.sort("curve").head(MOST)["curve"].to_list()
    if not shown:
        raise CannotDrawError("no trace of a link has delays")
    return rows.filter(pl.col("curve").is_in(shown)).sort("curve", "time")


def rates_chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws two curves of the rate over time for each direction: requested and carried."""
    chart = alt.Chart(frame).encode(strokeDash=dash([REQUESTED, CARRIED], field="what"))
    return _drawn(frame, study, "Mbit/s", chart, "step-before")


def delays_chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws one curve of the delay for each direction."""
    return _drawn(frame, study, "delay, ms", alt.Chart(frame), "step-after")


def _drawn(frame: pl.DataFrame, study: Study, title: str, chart: alt.Chart, steps: Steps) -> AnyChart:
    curves = frame.get_column("curve").unique().sort().to_list()
    run = study.cells[0].run
    line = chart.mark_line(strokeWidth=1.6, interpolate=steps).encode(
        x=time_axis(run), y=alt.Y("value:Q", title=title), color=colour(curves, field="curve")
    )
    return mark_times(line, run).properties(width=WIDTH, height=240)


SPECS = (
    Spec(
        "links-trace-rate",
        "Rates of the traces: requested and carried",
        "Requested: mean of the trace's rate over the second before each sample. Carried: what the link sent "
        "on in that second, which is less where less was offered.",
        rates,
        rates_chart,
    ),
    Spec(
        "links-trace-delay",
        "Delays of the traces",
        "As set at each change, and read back from the kernel.",
        delays,
        delays_chart,
    ),
)
