"""Draws the utilisation of the links: the share of its requested rate that each direction carried."""

from __future__ import annotations

import altair as alt
import polars as pl

from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import INK, colour
from reports.study import Study

MOST = 12


def data(study: Study) -> pl.DataFrame:
    """Returns the columns scenario, series, place (link and direction), value (%), low, high, p99, for the
    MOST busiest places; CannotDrawError without a sampled link that has a requested rate.
    """
    known = study.compared.filter(pl.col("link").is_not_null())
    keys = ["scenario", "series", "link", "direction"]
    mean = known.filter(pl.col("name") == "link_utilisation").select(*keys, "value", "low", "high")
    if mean.is_empty():
        raise CannotDrawError("needs samples of a link with a requested rate")
    highest = known.filter(pl.col("name") == "link_utilisation_p99").select(*keys, p99="value")
    rows = mean.join(highest, on=keys, how="left").with_columns(
        place=pl.col("link") + " " + pl.col("direction")
    )
    most = rows.group_by("place").agg(pl.col("value").max()).sort("value", "place", descending=[True, False])
    shown = most.get_column("place").head(MOST).to_list()
    return rows.filter(pl.col("place").is_in(shown)).drop("link", "direction")


def chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws a bar for the mean over the hold and a tick at the 99th percentile of the samples."""
    several = len(study.series) > 1
    title = "share of the requested rate, %"
    top = max(100.0, float(frame.get_column("p99").max() or 0))  # type: ignore[arg-type]  # a float column
    scale = alt.Scale(domain=[0, top], nice=False)
    base = alt.Chart(frame).encode(y=alt.Y("place:N", title=None))
    if several:
        base = base.encode(yOffset=alt.YOffset("series:N", sort=study.series))
    bars = base.mark_bar().encode(
        x=alt.X("value:Q", title=title, scale=scale, axis=alt.Axis(grid=True)),
        color=colour(study.series) if several else alt.value("#0072B2"),
    )
    whiskers = base.mark_rule(color=INK, clip=True).encode(x=alt.X("low:Q", title=title), x2="high:Q")
    ticks = base.mark_tick(color=INK, thickness=2, size=14).encode(x=alt.X("p99:Q", title=title))
    step = alt.Step(28 if not several else max(10, 28 // len(study.series)), **{"for": "position"})
    return alt.layer(bars, whiskers, ticks).properties(width=560, height=step)


SPECS = (
    Spec(
        "links-utilisation",
        "Utilisation of the links",
        "Bar: mean over the hold with its 95 % interval. Vertical line: 99th percentile of the samples, one "
        "each second.",
        data,
        chart,
    ),
)
