"""Draws the levels of a study side by side: CPU and traffic of the central nodes, and latencies."""

from __future__ import annotations

import altair as alt
import polars as pl

from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import INK, colour
from reports.metrics.compare import called
from reports.study import Study

CENTRES = (
    "broker",
    "server",
    "receiver",
)  # sets of nodes through which all load passes; the first set that exists is shown
MOST_SERIES = 40  # largest number of bars in one panel
LOAD = {"cpu": "{} CPU, % of a core", "received": "{} receives, kB/s", "sent": "{} sends, kB/s"}
# The times that an application waits: the round trip of a request, the latency of other messages.
WAITING = {
    "latency_p50": "latency p50, ms",
    "latency_p99": "latency p99, ms",
    "round_trip_p50": "round trip p50, ms",
    "round_trip_p99": "round trip p99, ms",
}


def comparison_data(study: Study) -> pl.DataFrame:
    """Returns the columns scenario, series, measure, value, low, high, repetitions; CannotDrawError with
    fewer than two levels, with more than MOST_SERIES, or without node samples and messages.
    """
    if len(study.series) < 2:
        raise CannotDrawError("needs runs at two or more levels; this page has one")
    if len(study.series) > MOST_SERIES:
        raise CannotDrawError(f"shows at most {MOST_SERIES} levels; this page has {len(study.series)}")
    table = study.compared
    parts = [table.filter(of).with_columns(measure=pl.lit(title)) for title, of in _measures(table)]
    rows = pl.concat(parts) if parts else table.clear()
    if rows.is_empty():
        raise CannotDrawError("needs a hold with node samples or messages")
    return rows.select("scenario", "series", "measure", "value", "low", "high", "repetitions")


def _measures(table: pl.DataFrame) -> list[tuple[str, pl.Expr]]:
    """Returns the title of each panel, and the expression that selects its rows. The panels are CPU and
    traffic of the first set of CENTRES in the table, then for each class its round trips, or else its
    latencies.
    """
    sets = table.get_column("nodes").unique().to_list()
    centre = next((name for name in CENTRES if name in sets), None)
    load = [(text.format(centre), called(name, nodes=centre)) for name, text in LOAD.items() if centre]
    classes = table.get_column("traffic_class").drop_nulls().unique().sort().to_list()
    waiting = []
    for one in classes:
        known = table.filter(pl.col("traffic_class") == one).get_column("name").to_list()
        kind = "round_trip" if "round_trip_p50" in known else "latency"
        before = f"{one}: " if len(classes) > 1 else ""
        waiting += [
            (before + text, called(name, traffic_class=one))
            for name, text in WAITING.items()
            if name.startswith(kind)
        ]
    return load + waiting


def comparison_chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws small multiples of bars with their intervals: one column for each measure, one row for each
    scenario, one bar for each series.
    """
    base = alt.Chart(frame).encode(x=alt.X("series:N", title=None, axis=alt.Axis(labelAngle=-35)))
    bars = base.mark_bar().encode(y=alt.Y("value:Q", title=None), color=colour(study.series).legend(None))
    whiskers = base.mark_rule(color=INK, strokeWidth=1.5).encode(y=alt.Y("low:Q", title=None), y2="high:Q")
    order = frame.get_column("measure").unique(maintain_order=True).to_list()
    header = alt.Header(labelLimit=190, labelFontSize=12)
    faceted = (
        alt.layer(bars, whiskers)
        .properties(width=118, height=170)
        .facet(
            column=alt.Column("measure:N", sort=order, title=None, header=header),
            row=alt.Row("scenario:N", title=None),
        )
    )
    independent: AnyChart = faceted.resolve_scale(y="independent")
    return independent


SPEC = Spec(
    "comparison",
    "Comparison of the levels",
    "Means of the hold with 95 % intervals.",
    comparison_data,
    comparison_chart,
    wide=True,
)
