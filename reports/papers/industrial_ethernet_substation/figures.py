"""Draws the delays over time as figures 3, 5, 6 and 7 do: the largest of each tenth of a second."""

from __future__ import annotations

import altair as alt
import polars as pl

from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import EVENT, HALF, colour, log_ticks
from reports.papers.industrial_ethernet_substation.delays import FTP, delays
from reports.papers.industrial_ethernet_substation.tables import NAMES
from reports.study import Study, per_cell

BIN_S = 0.1


def data(study: Study) -> pl.DataFrame:
    """Returns the columns scenario, series, stream, at (s), us (the largest of a tenth of a second), files
    (whether any was transferred) of the first repetition; CannotDrawError without a run of the paper.
    """
    rows = per_cell(study, delays)
    if rows is None:
        raise CannotDrawError("needs a run of substation-flat.yaml or substation-bays.yaml")
    return (
        rows.filter(pl.col("repetition") == 1)
        .with_columns(at=pl.col("at") // BIN_S * BIN_S, stream=pl.col("stream").replace(NAMES))
        .group_by("scenario", "series", "stream", "at")
        .agg(pl.col("us").max(), files=(pl.col("load") == FTP).any())
        .sort("scenario", "series", "stream", "at")
    )


def draw(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws one panel for each stream, with one line for each series and points during file transfers, on a
    logarithmic axis.
    """
    series = frame.get_column("series").unique().sort().to_list()
    scale, axis = log_ticks(frame, "us")
    base = alt.Chart(frame).encode(
        x=alt.X("at:Q", title="s of the hold"),
        y=alt.Y("us:Q", title="largest delay, us", scale=scale, axis=axis),
    )
    line = base.mark_line(strokeWidth=1.4).encode(color=colour(series))
    points = base.transform_filter("datum.files").mark_point(filled=True, size=26, color=EVENT)
    sized = alt.layer(line, points).properties(width=HALF, height=170)
    panelled: alt.FacetChart = sized.facet(facet=alt.Facet("stream:N", title=None), columns=2)
    return panelled


SPEC = Spec(
    "delays",
    "Delays of the streams over time (figures 3, 5, 6 and 7)",
    "The largest delay, from being sent to being received, of the messages of each tenth of a second; "
    "points: a file passes then. First repetition.",
    data,
    draw,
    ("upload", "up-with-files", "slower-transient"),
    wide=True,
)
