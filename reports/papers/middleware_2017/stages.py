"""Draws two figures that the paper lacks: the parts of a message's time, and the warm-up of Java."""

from __future__ import annotations

import altair as alt
import polars as pl

from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import PALETTE
from reports.papers.middleware_2017.pairs import PATTERNS
from reports.papers.middleware_2017.split import PARTS, times, warming
from reports.study import Study

NEEDS = "needs runs of topologies/papers/middleware.yaml whose programs say spans"


def _shares(study: Study) -> pl.DataFrame:
    """Returns the mean time of each part by middleware and pattern, over the serialisers that every
    middleware was measured with, or over all if there is none; CannotDrawError without spans.
    """
    rows = study.once(times)
    if rows.is_empty():
        raise CannotDrawError(NEEDS)
    uses = rows["use"].n_unique()
    common = rows.group_by("serialiser").agg(pl.col("use").n_unique()).filter(pl.col("use") == uses)
    kept = rows.filter(pl.col("serialiser").is_in(common["serialiser"].to_list()))
    means = (rows if kept.is_empty() else kept).group_by("use", "pattern", "part").agg(pl.col("us").mean())
    return means.with_columns(
        ms=pl.col("us") * 1e-3, pattern=pl.col("pattern").replace(PATTERNS)
    ).sort("pattern", "use", "part")  # fmt: skip


def _bars(frame: pl.DataFrame, study: Study) -> AnyChart:
    order = frame.group_by("use").agg(pl.col("us").sum()).sort("us")["use"].to_list()
    place = pl.col("part").replace_strict({part: n for n, part in enumerate(PARTS)}, return_dtype=pl.Int8)
    chart: AnyChart = (
        alt.Chart(frame.with_columns(place=place))
        .mark_bar()
        .encode(
            x=alt.X("ms:Q", title="ms"),
            y=alt.Y("use:N", sort=order, title=None),
            color=alt.Color(
                "part:N", scale=alt.Scale(domain=list(PARTS), range=PALETTE[: len(PARTS)]), title=None
            ),
            order=alt.Order("place:Q"),
            row=alt.Row("pattern:N", title=None),
        )
        .properties(width=520, height=alt.Step(18))
    )
    return chart


def _warming(study: Study) -> pl.DataFrame:
    rows = study.once(warming)
    if rows.is_empty():
        raise CannotDrawError(NEEDS)
    return rows


def _curves(frame: pl.DataFrame, study: Study) -> AnyChart:
    chart: AnyChart = (
        alt.Chart(frame)
        .mark_line()
        .encode(
            x=alt.X("s:Q", title="s since the first request"),
            y=alt.Y("ms:Q", title="ms a request", scale=alt.Scale(type="log")),
            color=alt.Color("use:N", title=None),
        )
        .properties(width=520, height=260)
    )
    return chart


SPECS = (
    Spec(
        "where-time-goes",
        "Parts of a message's latency",
        "Means of calm messages that were alone on their way, over the serialisers that all were measured "
        "with. On the wire: from its first packet's leaving one node to its last one's arrival at the other. "
        "Writing and reading are the programs' own stamps; the rest is the libraries', and waiting for the "
        "processor.",
        _shares,
        _bars,
        wide=True,
    ),
    Spec(
        "warming-up",
        "Java warms up",
        "Before anything is counted, and on the whole machine: the median time of a request, by fifths of a "
        "second.",
        _warming,
        _curves,
    ),
)
