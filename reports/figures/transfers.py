"""Throughput of bulk transfers over time."""

from __future__ import annotations

import altair as alt
import polars as pl

from reports.figures.marks import mark_times, seconds, time_axis
from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import WIDTH, colour, dash
from reports.metrics.transfers import transfer_samples
from reports.study import Study

MOST = 8  # curves that one can tell apart


def data(study: Study) -> pl.DataFrame:
    """Rows time (s), flow, mbps: of the flows that carried most, as they arrived."""
    if not study.single:
        raise CannotDrawError("each run's own page has it")
    run = study.cells[0].run
    rows = transfer_samples(run)
    if rows is None or rows.is_empty():
        raise CannotDrawError("needs samples of a bulk transfer (transfers.parquet)")
    most = rows.group_by("name").agg(pl.col("bps").sum()).sort("bps", "name", descending=[True, False])
    shown = most.get_column("name").head(MOST).to_list()
    chosen = rows.filter(pl.col("name").is_in(shown))
    return chosen.select(seconds("t_ns", run), flow=pl.col("name"), mbps=pl.col("bps") / 1e6)


def chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """A curve a flow."""
    flows = frame.get_column("flow").unique().sort().to_list()
    line = (
        alt.Chart(frame)
        .mark_line(strokeWidth=1.6, interpolate="step-before")
        .encode(
            x=time_axis(study.cells[0].run),
            y=alt.Y("mbps:Q", title="payload, Mbit/s", scale=alt.Scale(zero=True)),
            color=colour(flows, field="flow"),
            strokeDash=dash(flows, field="flow"),
        )
    )
    return mark_times(line, study.cells[0].run).properties(width=WIDTH, height=280)


SPECS = (
    Spec(
        "transfers-time",
        "Throughput of the transfers",
        "Payload over the second before each sample, where it arrived.",
        data,
        chart,
    ),
)
