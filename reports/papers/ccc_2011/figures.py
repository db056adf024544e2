"""Redraws figures 7.2 to 7.7: latency, throughput and drops over time, without and with cooperation."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import polars as pl

from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import HALF, INK, PALETTE
from reports.papers.ccc_2011.intervals import deadlines_ns, intervals, sent
from reports.rundir import Run
from reports.series import parameters
from reports.study import Study

SCHEMES = {False: "without cooperation", True: "with cooperation"}
BIN_S = 1.0


def _panel(run: Run) -> pl.DataFrame | None:
    """Returns the columns class, at (s), latency (mean, ms), received and dropped (packets/s) of one run, in
    bins of BIN_S by scheduled time; None for runs without the paper's flows.
    """
    rows = sent(run)
    if rows is None:
        return None
    return (
        rows.group_by("class", (pl.col("at") // BIN_S * BIN_S).alias("at"))
        .agg(
            (pl.col("latency_ns").mean() / 1e6).alias("latency"),
            (pl.col("received_ns").count() / BIN_S).alias("received"),
            (pl.col("received_ns").null_count() / BIN_S).alias("dropped"),
        )
        .sort("class", "at")
    )


def over_time(study: Study) -> pl.DataFrame:
    """Returns the rows of `_panel` for the first repetition of each scheme, with the column `scheme`;
    CannotDrawError if no run has the paper's flows.
    """
    made: dict[str, pl.DataFrame] = {}
    for cell in study.cells:
        scheme = SCHEMES[bool((parameters(cell.run) | cell.levels).get("cooperate"))]
        rows = _panel(cell.run) if scheme not in made else None
        if rows is not None:
            made[scheme] = rows.with_columns(scheme=pl.lit(scheme))
    if not made:
        raise CannotDrawError("needs a run of ccc-2011.yaml")
    return pl.concat(made.values())


def _column(name: str) -> Callable[[Study], pl.DataFrame]:
    def data(study: Study) -> pl.DataFrame:
        return study.once(over_time).select("scheme", "class", "at", pl.col(name).cast(pl.Float64))

    return data


def _draw(name: str, title: str, log: bool) -> Callable[[pl.DataFrame, Study], AnyChart]:
    def draw(frame: pl.DataFrame, study: Study) -> AnyChart:
        x = alt.X("at:Q", title="s", axis=alt.Axis(values=[0, 20, 40, 60, 80, 100, 120]))
        y = alt.Y(f"{name}:Q", title=title, scale=alt.Scale(type="log" if log else "linear"))
        color = alt.Color("class:N", title=None, scale=alt.Scale(range=list(PALETTE)))
        both = alt.Chart(pl.concat([frame, *_rules(study, name)], how="diagonal"))
        lines = both.transform_filter("isValid(datum.class)").mark_line(strokeWidth=1.3)
        rules = both.transform_filter("!isValid(datum.class)").mark_rule(color=INK, strokeDash=[2, 4])
        marks = [lines.encode(x=x, y=y, color=color)]
        marks += [rules.transform_filter("isValid(datum.at)").encode(x=x)]
        if name == "latency":
            marks += [rules.transform_filter("isValid(datum.latency)").encode(y=y)]
        panels = alt.layer(*marks).properties(width=HALF, height=180)
        facet = alt.Facet("scheme:N", title=None, sort=list(SCHEMES.values()))
        panelled: alt.FacetChart = panels.facet(facet=facet, columns=2)
        return panelled

    return draw


def _rules(study: Study, name: str) -> list[pl.DataFrame]:
    """Returns the rows of the vertical marks at the steps of the load and, for latencies, of the horizontal
    marks at the deadlines.
    """
    steps = sorted({end for interval in intervals() for end in interval})[1:]
    values: list[tuple[str, list[float]]] = [("at", steps)]
    if name == "latency":
        deadlines = {ns / 1e6 for cell in study.cells for ns in deadlines_ns(cell.run).values()}
        values.append((name, sorted(deadlines)))
    schemes = pl.DataFrame({"scheme": list(SCHEMES.values())})
    return [schemes.join(pl.DataFrame({column: found}), how="cross") for column, found in values]


def specs(study: Study) -> tuple[Spec, ...]:
    """Returns the figures of the paper; a figure without runs gives the reason when it is drawn."""
    return (
        Spec(
            "ccc-latency",
            "Latency, without and with cooperation (figures 7.2 and 7.5)",
            "Mean of each second of what arrived, by when it was due, of the first repetition. Dashed: the "
            "load's steps, the broker's answer at 100 s, and the deadlines of 50 and 100 ms.",
            _column("latency"),
            _draw("latency", "latency, ms", log=True),
            ("with-in-time", "without-late"),
            wide=True,
        ),
        Spec(
            "ccc-throughput",
            "Throughput, without and with cooperation (figures 7.3 and 7.6)",
            "Packets that arrived of those due in each second, of the first repetition.",
            _column("received"),
            _draw("received", "packets/s", log=False),
            wide=True,
        ),
        Spec(
            "ccc-dropped",
            "Dropped packets, without and with cooperation (figures 7.4 and 7.7)",
            "Packets due in each second that never arrived, of the first repetition: queues hold 20.",
            _column("dropped"),
            _draw("dropped", "packets/s", log=False),
            ("without-dropped", "with-no-drops", "with-extra-dropped"),
            wide=True,
        ),
    )
