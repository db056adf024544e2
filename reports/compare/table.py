"""Makes the table of a comparison: a line for each figure, for pages and CSV files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from reports.compare.comparison import Row
from reports.compare.figure import subject
from reports.compare.words import sentence
from reports.numbers import plain
from reports.sections.tabular import Column, Table


def table(rows: Sequence[Row]) -> Table:
    """Returns the table with a line for each row: figure, both values, unit, finding, method; and the letters
    of the compared sides if the rows compare several pairs.
    """
    several = len({(row.a, row.b) for row in rows}) > 1
    heads = ("of the first", "of the other") if several or not rows else (rows[0].a, rows[0].b)
    columns = (
        Column("figure", text=True),
        *((Column("compared", text=True),) if several else ()),
        *(Column(head) for head in heads),
        Column("unit", text=True),
        Column("finding", text=True),
        Column("method", text=True),
    )
    return Table(columns, tuple(_line(row, several) for row in rows))


def _line(row: Row, several: bool) -> tuple[str, ...]:
    one = row.difference
    sides = (f"{row.b} with {row.a}",) if several else ()
    return (row.what, *sides, plain(one.a), plain(one.b), row.unit, sentence(row), one.method)


def as_data(row: Row) -> dict[str, Any]:
    """Returns a row as a dictionary for scripts: the relative change and its interval are shares, None if
    they are unknown.
    """
    one = row.difference
    low, high = one.changes() or (None, None)
    return {
        "metric": row.key[0], **subject(row.key[1]), "condition": row.condition, "first": row.a,
        "other": row.b, "first_value": one.a, "other_value": one.b, "unit": row.unit, "n": one.n,
        "change": one.change, "low": low, "high": high, "p": row.p, "finding": row.finding,
        "more_repetitions": row.more, "text": sentence(row), "method": one.method,
    }  # fmt: skip


def frame(rows: Sequence[Row]) -> pl.DataFrame:
    """Returns the rows of `as_data` as a table; a subject that a row lacks is null."""
    found = [as_data(row) for row in rows]
    names = list(dict.fromkeys(name for one in found for name in one))
    return pl.DataFrame({name: [one.get(name) for one in found] for name in names}, strict=False)
