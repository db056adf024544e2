"""Writes CSV tables in which a spreadsheet cannot mistake text from names, labels or logs for a formula."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from contract import regular

# First characters of a formula (OWASP, CSV injection; full-width forms too). Text that begins with the mark
# gets a second mark; so removing one apostrophe always gives the original text.
_FORMULA = "^['=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_TEXT = (pl.String, pl.Categorical, pl.Enum)
MARK = "'"


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Writes the frame as CSV, with an apostrophe before any text or heading that a spreadsheet would take
    for a formula; replaces an earlier file.
    """
    write_parts([frame], path)


def write_parts(frames: Iterable[pl.DataFrame], path: Path) -> None:
    """Writes several frames with the same columns one below the other under one heading, as
    `write_table` does.
    """
    with regular.replacing(path) as file:
        for number, frame in enumerate(frames):
            _readable(frame).write_csv(file, include_header=number == 0)


def _readable(frame: pl.DataFrame) -> pl.DataFrame:
    table = flat(frame)
    texts = [name for name, kind in table.schema.items() if kind in _TEXT]
    return table.with_columns(_guarded(name) for name in texts).rename(_heading)


def flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Returns the frame with each list as a text of its elements, separated by spaces, because CSV
    has no lists.
    """
    lists = [name for name, kind in frame.schema.items() if isinstance(kind, pl.List)]
    return frame.with_columns(pl.col(name).list.join(" ") for name in lists)


def _guarded(column: str) -> pl.Expr:
    text = pl.col(column).cast(pl.String)
    harmful = text.str.contains(_FORMULA) & ~text.str.contains(_NUMBER)
    return pl.when(harmful).then(pl.concat_str(pl.lit(MARK), text)).otherwise(text).alias(column)


def _heading(name: str) -> str:
    """Returns the name of a column, protected against formulas like any other cell."""
    return MARK + name if re.match(_FORMULA, name) else name
