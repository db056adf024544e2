"""Draws the relative differences of a comparison with their intervals, a row for each figure."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import polars as pl

from reports.compare.comparison import DIFFERS, OPEN, SAME, Row
from reports.figures.spec import AnyChart, CannotDrawError, Spec
from reports.figures.theme import MUTED, PALETTE, WIDTH
from reports.study import Study

MOST_ROWS = 40
# percent; beyond this the axis is logarithmic, so that a wide interval does not hide narrow ones
LINEAR = 5.0
TICKS = (0, 2, 5, 10, 20, 50, 100, 300, 1000)
LONGEST = 1000.0  # percent; the drawing cuts intervals there, so that the others stay readable
COLOURS = {DIFFERS: PALETTE[2], OPEN: PALETTE[6], SAME: PALETTE[1]}


def forest(rows: Sequence[Row]) -> Spec:
    """Returns the figure of the first MOST_ROWS rows that have a relative difference with an interval;
    drawing raises CannotDrawError if no row has one.
    """
    return Spec(
        "differences",
        "Differences with their 95 % intervals",
        "Relative differences; left of zero the second side has less. An interval that covers zero does not "
        "show a difference by itself. Beyond 5 % the axis is logarithmic.",
        lambda study: _data(rows),
        _chart,
        wide=True,
    )


def _data(rows: Sequence[Row]) -> pl.DataFrame:
    """Returns the columns figure, percent, low, high, finding, with percentages cut at LONGEST;
    CannotDrawError if no row has a relative difference with an interval.
    """
    several = len({(row.a, row.b) for row in rows}) > 1
    found = []
    for row in rows:
        changes, change = row.difference.changes(), row.difference.change
        if changes is not None and change is not None:
            name = f"{row.what}: {row.b} against {row.a}" if several else row.what
            percents = (min(LONGEST, max(-LONGEST, 100 * one)) for one in (change, *changes))
            found.append((name, *percents, row.finding))
    if not found:
        raise CannotDrawError("no figure has a relative difference with an interval")
    names = ("figure", "percent", "low", "high", "finding")
    return pl.DataFrame(found[:MOST_ROWS], schema=list(names), orient="row")


def _chart(frame: pl.DataFrame, study: Study) -> AnyChart:
    order = frame.get_column("figure").unique(maintain_order=True).to_list()
    known = [finding for finding in COLOURS if finding in frame.get_column("finding").to_list()]
    base = alt.Chart(frame).encode(
        y=alt.Y("figure:N", sort=order, title=None, axis=alt.Axis(labelLimit=330)),
        color=alt.Color(
            "finding:N", scale=alt.Scale(domain=known, range=[COLOURS[one] for one in known]), title=None
        ),
    )
    axis = alt.Axis(
        values=[sign * one for one in TICKS for sign in (-1, 1)], format="d", labelOverlap="greedy"
    )
    scale = alt.Scale(type="symlog", constant=LINEAR)
    whisker = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", title="difference, %", scale=scale, axis=axis), x2="high:Q"
    )
    point = base.mark_point(filled=True, size=70).encode(x="percent:Q")
    zero = (
        alt.Chart(pl.DataFrame({"zero": [0.0]})).mark_rule(color=MUTED, strokeDash=[4, 3]).encode(x="zero:Q")
    )
    layered: AnyChart = alt.layer(zero, whisker, point).properties(width=WIDTH - 330, height=alt.Step(22))
    return layered
