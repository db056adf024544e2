"""Draws CPU, memory and traffic of the groups of nodes side by side."""

from __future__ import annotations

import altair as alt
import polars as pl

from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import INK, colour
from reports.study import Study

PANELS = {
    "cpu": "CPU, % of a core",
    "memory": "memory, MB",
    "received": "receives, kB/s",
    "sent": "sends, kB/s",
}
MOST = 16  # largest number of groups in one figure


def data(study: Study) -> pl.DataFrame:
    """Returns the columns scenario, series, group, measure, value, low, high, for the MOST groups with the
    highest CPU use, without measures that are zero everywhere.

    CannotDrawError without node samples, with one group of one series, or if no node used CPU or sent.
    """
    table = study.compared.filter(pl.col("name").is_in(list(PANELS)) & pl.col("group").is_not_null())
    if table.is_empty():
        raise CannotDrawError("needs a hold with node samples")
    if table.get_column("group").n_unique() < 2 and len(study.series) < 2:
        raise CannotDrawError("one group alone has nothing to be compared with")
    # a quantity that is always zero gets no panel
    table = table.filter(pl.col("value").max().over("name") > 0)
    if table.filter(pl.col("name") != "memory").is_empty():
        raise CannotDrawError("no node used CPU or sent in the hold")
    load = table.filter(pl.col("name") == "cpu").group_by("group", maintain_order=True)
    busy = load.agg(pl.col("value").max())
    shown = busy.sort("value", "group", descending=[True, False]).head(MOST).get_column("group").to_list()
    return table.filter(pl.col("group").is_in(shown)).select(
        "scenario", "series", "group", pl.col("name").replace(PANELS).alias("measure"), "value", "low", "high"
    )


def chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws one panel for each quantity, with one bar and its interval for each group and series."""
    panels = [
        _panel(frame.filter(pl.col("measure") == title), title, study)
        for title in PANELS.values()
        if title in frame.get_column("measure")
    ]
    rows = [alt.hconcat(*panels[i : i + 2], spacing=24) for i in range(0, len(panels), 2)]
    return alt.vconcat(*rows, spacing=18)


def _panel(rows: pl.DataFrame, title: str, study: Study) -> AnyChart:
    several = len(study.series) > 1
    base = alt.Chart(rows).encode(y=alt.Y("group:N", title=None, axis=alt.Axis(labelLimit=140)))
    if several:
        base = base.encode(yOffset=alt.YOffset("series:N", sort=study.series))
    x = alt.X("value:Q", title=title, axis=alt.Axis(tickCount=5, grid=True))
    bars = base.mark_bar().encode(x=x, color=colour(study.series) if several else alt.value("#0072B2"))
    whiskers = base.mark_rule(color=INK).encode(x=alt.X("low:Q", title=title), x2="high:Q")
    step = alt.Step(26 if not several else max(10, 26 // len(study.series)), **{"for": "position"})
    return alt.layer(bars, whiskers).properties(width=270, height=step)


SPECS = (
    Spec(
        "groups",
        "Load by group",
        "Mean of one node of each group over the hold, with 95 % intervals.",
        data,
        chart,
    ),
)
