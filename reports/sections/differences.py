"""Makes the page's section on the differences between a campaign's levels, and on the effects of
its factors.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from reports.compare.comparison import tested
from reports.compare.figure import figure
from reports.compare.levels import MOST_LEVELS, Moved, differences, effect_data, moved
from reports.compare.table import frame, table
from reports.compare.words import percent
from reports.sections.section import Page, Part
from reports.sections.tabular import Column, Table

MOST_EFFECTS = 15
EFFECTS = (
    Column("figure", text=True),
    Column("factor", text=True),
    Column("share of the scatter"),
    Column("largest difference of means"),
    Column("lowest at", text=True),
    Column("highest at", text=True),
    Column("p"),
)


def section(page: Page) -> Part | None:
    """Returns the section and writes the tables of differences and effects; None for one run, or if no
    difference between two levels has an interval and no effect can be tested.
    """
    rows = [] if page.study.single else differences(page.study)
    effects = [] if page.study.single else moved(page.study)
    if not any(row.difference.known for row in rows):
        rows = []
    if not rows and not effects:
        return None
    page.write("differences", "Differences between the levels", frame(rows))
    page.write("effects", "Effects of the factors on the figures", effects_frame(effects))
    return page.part(
        "differences",
        "Differences between the levels",
        differences=table(rows).cut() if rows else None,
        effects=_effects(effects).cut(MOST_EFFECTS) if effects else None,
        tested=sum(tested(row.difference) for row in rows),
        most=MOST_LEVELS,
    )


def effects_frame(found: Sequence[Moved]) -> pl.DataFrame:
    """Returns the effects with one column for each part of a subject; empty without effects."""
    rows = [effect_data(one) for one in found]
    names = list(dict.fromkeys(name for one in rows for name in one))
    return pl.DataFrame({name: [one.get(name) for one in rows] for name in names}, strict=False)


def _effects(found: Sequence[Moved]) -> Table:
    return Table(
        EFFECTS, tuple(map(_effect, found)), "Effects of the factors on the figures, the strongest first"
    )


def _effect(one: Moved) -> tuple[str, ...]:
    name, of = one.key
    what = figure(name).title + (f" of {of.words}" if of.words else "")
    span = "from zero" if one.span == float("inf") else f"{percent(one.span)} %"
    chance = "<0.001" if one.p < 0.001 else f"{one.p:.2g}"
    return (what, one.factor, f"{percent(one.share)} %", span, one.low, one.high, chance)
