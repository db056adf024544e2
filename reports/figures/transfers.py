"""Draws bulk transfers over time: throughput, round trips, congestion windows and fairness."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import polars as pl

from reports.figures.marks import mark_times, seconds, time_axis
from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import WIDTH, colour, dash
from reports.metrics.fairness import jain, shared_rates
from reports.metrics.transfers import rtt_samples, transfer_samples, window_samples
from reports.rundir import Run
from reports.study import Study

MOST = 8  # more curves would be hard to distinguish


def data(study: Study) -> pl.DataFrame:
    """Returns the columns time (s), mbps, flow of the MOST largest flows, counted at their receivers;
    CannotDrawError for several runs or without samples.
    """
    run = _single(study)
    rows = transfer_samples(run)
    if rows is None or rows.is_empty():
        raise CannotDrawError("needs samples of a bulk transfer (transfers.parquet)")
    return _largest(rows, rows, run, (pl.col("bps") / 1e6).alias("mbps"))


def rtt_data(study: Study) -> pl.DataFrame:
    """Returns the columns time (s), ms, flow: the round trips that the senders' kernels measure for the MOST
    largest flows; CannotDrawError for several runs or without round trips.
    """
    run = _single(study)
    rows, carried = rtt_samples(run), transfer_samples(run)
    if rows is None or carried is None or rows.is_empty():
        raise CannotDrawError("needs round trips of a bulk transfer over TCP (transfers.parquet)")
    return _largest(rows, carried, run, (pl.col("rtt_ns") / 1e6).alias("ms"))


def window_data(study: Study) -> pl.DataFrame:
    """Returns the columns time (s), segments, flow: the congestion windows in the senders' kernels, for the
    MOST largest flows; CannotDrawError for several runs or without windows.
    """
    run = _single(study)
    rows, carried = window_samples(run), transfer_samples(run)
    if rows is None or carried is None or rows.is_empty():
        raise CannotDrawError("needs congestion windows of a bulk transfer (`window:` of its sender)")
    return _largest(rows, carried, run, pl.col("segments"))


def fairness_data(study: Study) -> pl.DataFrame:
    """Returns the columns time (s) and index (Jain's), for the time in which all transfers send;
    CannotDrawError for several runs or without such a time.
    """
    run = _single(study)
    rows = shared_rates(run)
    if rows is None:
        raise CannotDrawError("needs two bulk transfers that send at the same time")
    return rows.select(seconds("t_ns", run), index=pl.Series(jain(rows.drop("t_ns").to_numpy())))


def _single(study: Study) -> Run:
    if not study.single:
        raise CannotDrawError("each run's own page has it")
    return study.cells[0].run


def _largest(rows: pl.DataFrame, carried: pl.DataFrame, run: Run, value: pl.Expr) -> pl.DataFrame:
    """Returns the columns time (s), `value` and flow of `rows`, for the MOST flows with the largest sum of
    rates in `carried`.
    """
    most = carried.group_by("name").agg(pl.col("bps").sum()).sort("bps", "name", descending=[True, False])
    chosen = rows.filter(pl.col("name").is_in(most.get_column("name").head(MOST).to_list()))
    return chosen.select(seconds("t_ns", run), value, flow=pl.col("name"))


def curves(column: str, title: str) -> Callable[[pl.DataFrame, Study], AnyChart]:
    """Returns a function that draws `column` over time, with one curve for each flow; `title` is that of the
    vertical axis.
    """

    def draw(frame: pl.DataFrame, study: Study) -> AnyChart:
        flows = frame.get_column("flow").unique().sort().to_list()
        line = (
            alt.Chart(frame)
            .mark_line(strokeWidth=1.6, interpolate="step-before")
            .encode(
                x=time_axis(study.cells[0].run),
                y=alt.Y(f"{column}:Q", title=title, scale=alt.Scale(zero=True)),
                color=colour(flows, field="flow"),
                strokeDash=dash(flows, field="flow"),
            )
        )
        return mark_times(line, study.cells[0].run).properties(width=WIDTH, height=280)

    return draw


def fairness_chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws Jain's index over time, as one curve between 0 and 1."""
    line = (
        alt.Chart(frame)
        .mark_line(strokeWidth=1.6, interpolate="step-before")
        .encode(
            x=time_axis(study.cells[0].run),
            y=alt.Y("index:Q", title="Jain's index", scale=alt.Scale(domain=[0, 1])),
        )
    )
    return mark_times(line, study.cells[0].run).properties(width=WIDTH, height=180)


SPECS = (
    Spec(
        "transfers-time",
        "Throughput of the transfers",
        "Payload over the second before each sample, where it arrived.",
        data,
        curves("mbps", "payload, Mbit/s"),
    ),
    Spec(
        "transfers-windows",
        "Congestion windows of the transfers",
        "Segments that may be in flight unacknowledged, from the sender's kernel (TCP_INFO); the sum over a "
        "flow's connections.",
        window_data,
        curves("segments", "congestion window, segments"),
    ),
    Spec(
        "transfers-rtt",
        "Round trip of the transfers",
        "Smoothed by the senders' kernels; it includes the time in queues, both ways.",
        rtt_data,
        curves("ms", "smoothed RTT, ms"),
    ),
    Spec(
        "transfers-fairness",
        "Fairness of the transfers",
        "Jain's index of each second in which all of them send: 1 is even, 1 / n if one has everything.",
        fairness_data,
        fairness_chart,
    ),
)
