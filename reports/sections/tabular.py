"""Makes the tables of sections: a row for each subject (class, link, group) and condition, a column for each
metric.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from reports.numbers import measured
from reports.study import Study

MOST_ROWS = 40  # largest number of rows of a table on the page; its CSV has all


@dataclass(frozen=True)
class Column:
    """A column of a table. `text` aligns it left, `chip` shows it as a verdict, `small` as a sentence."""

    title: str
    text: bool = False
    chip: bool = False
    small: bool = False


@dataclass(frozen=True)
class Table:
    """A table of the page, with all cells as text."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    left_out: str = ""

    def cut(self, most: int = MOST_ROWS) -> Table:
        """Returns the table with its first `most` rows, and with a note on the number of all if some are left
        out.
        """
        if len(self.rows) <= most:
            return self
        return replace(self, rows=self.rows[:most], left_out=f"{most} of {len(self.rows)} rows.")


def by_subject(
    study: Study,
    subject: Mapping[str, str],
    measures: Mapping[str, str],
    caption: str = "",
    within: Mapping[str, str] | None = None,
) -> Table | None:
    """Returns a row for each subject and condition that has one of the metrics; None if there is none.

    `subject` and `within` map columns of `Of` to titles, `within` for the whole that the subject is part of;
    `measures` maps metrics to titles. Empty columns are left out, and so are the condition if there is only
    one, and a single capture point, which the caption names.
    """
    table = study.compared.filter(pl.col("name").is_in(list(measures)))
    table = table.filter(pl.any_horizontal(pl.col(field).is_not_null() for field in subject))
    if table.is_empty():
        return None
    subject = {**(within or {}), **subject}
    keys = list(subject)
    order = table.select(keys).unique(maintain_order=True)
    found = {(r["scenario"], r["series"], *(r[k] for k in keys), r["name"]): r for r in table.to_dicts()}
    rows = []
    for one in order.iter_rows():
        for scenario, series in study.conditions:
            cells = [value(found.get((scenario, series, *one, name))) for name in measures]
            if any(cells):
                rows.append((*(str(v or "") for v in one), study.named(scenario, series), *cells))
    if keys[0] == "capture" and len(keys) > 1 and order.get_column("capture").n_unique() == 1:
        # the name of the only capture stands in the caption, not in every row
        caption = f"{caption}, at {order.item(0, 'capture')}"
        rows = [("", *row[1:]) for row in rows]
    columns = [Column(title, text=True) for title in (*subject.values(), "condition")]
    columns += [Column(title) for title in measures.values()]
    return _without_empty(columns, rows, len(study.conditions) > 1, len(keys), caption)


def value(row: dict[str, Any] | None) -> str:
    """Returns a metric's value with its interval as text; empty if it was not measured."""
    return "" if row is None else measured(row["value"], row["low"], row["high"], row["method"])


def _without_empty(
    columns: Sequence[Column], rows: Sequence[tuple[str, ...]], several: bool, condition: int, caption: str
) -> Table:
    used = [i for i in range(len(columns)) if (several or i != condition) and any(row[i] for row in rows)]
    texts = tuple(tuple(row[i] or "-" for i in used) for row in rows)
    return Table(tuple(columns[i] for i in used), texts, caption)
