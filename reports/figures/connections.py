"""Draws the distributions of rate and handshake time over the TCP connections of a run."""

from __future__ import annotations

import altair as alt
import polars as pl

from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import HALF, log_ticks
from reports.metrics.connections import connections
from reports.study import Study

FEWEST = 10  # least number of connections; with fewer, the table of the page is enough
MEASURES = {
    "mbps": "TCP goodput per connection, Mbit/s",
    "handshake_ms": "handshake, ms",
}
MOST_POINTS = 200


def data(study: Study) -> pl.DataFrame:
    """Returns the columns measure, value, share (%): the cumulative distributions over the connections of the
    capture point with most of them.

    Values that are zero are left out, and a measure with fewer than FEWEST values. CannotDrawError for
    several runs, without a capture, or if no measure is left.
    """
    tables = study.cells[0].run.connections if study.single else {}
    if not tables:
        raise CannotDrawError("needs a capture of a single run")
    rows = connections(max(tables.values(), key=lambda table: table.height))
    parts = []
    for column, title in MEASURES.items():
        values = rows.get_column(column).drop_nulls().sort()
        values = values.filter(values > 0)
        if values.len() >= FEWEST:
            step = max(1, values.len() // MOST_POINTS)
            share = [100.0 * (i + 1) / values.len() for i in range(values.len())]
            part = pl.DataFrame({"value": values, "share": share}).gather_every(step)
            parts.append(part.with_columns(measure=pl.lit(title)).select("measure", "value", "share"))
    if not parts:
        raise CannotDrawError(f"fewer than {FEWEST} connections carried data")
    return pl.concat(parts)


def chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    """Draws the cumulative shares, one panel with a logarithmic axis for each measure."""
    titles = frame.get_column("measure").unique(maintain_order=True).to_list()
    panels = [_panel(frame.filter(pl.col("measure") == title), title) for title in titles]
    return alt.hconcat(*panels)  # type: ignore[return-value]  # a chart like the others


def _panel(rows: pl.DataFrame, title: str) -> alt.Chart:
    scale, axis = log_ticks(rows, "value")
    panel: alt.Chart = (
        alt.Chart(rows)
        .mark_line(interpolate="step-after", color="#0072B2")
        .encode(
            x=alt.X("value:Q", title=title, scale=scale, axis=axis),
            y=alt.Y("share:Q", title="share of connections, %", scale=alt.Scale(domain=[0, 100])),
        )
        .properties(width=HALF - 30, height=240)
    )
    return panel


SPECS = (
    Spec(
        "connections-spread",
        "Distribution over the connections",
        "Cumulative share of the capture's TCP connections by goodput, and by the time of their handshake.",
        data,
        chart,
    ),
)
