"""Tests tables for spreadsheets: no text becomes a formula, and every cell can be read back."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.spreadsheet import MARK, write_table

BEGINS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20", MARK)


def written(frame: pl.DataFrame) -> list[list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        write_table(frame, path)
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.reader(file))


@pytest.mark.parametrize("begin", BEGINS)
def test_text_is_no_formula(begin: str) -> None:
    text = f"{begin}cmd|' /C calc'!A0"
    heading, row = written(pl.DataFrame({text: [text], "list": [[text, "x"]]}))
    assert heading[0] == row[0] == MARK + text and row[1] == f"{MARK}{text} x"


def test_categories_are_text_too() -> None:
    frame = pl.DataFrame({"c": ["=1"], "e": ["=1"]}, schema={"c": pl.Categorical, "e": pl.Enum(["=1"])})
    assert written(frame)[1] == ["'=1", "'=1"]


def test_numbers_stay_numbers() -> None:
    frame = pl.DataFrame(
        {"a": [-1.5], "b": [-3], "c": ["-4"], "d": ["+1e-9"], "e": ["-.5"], "f": [None]},
        schema_overrides={"f": pl.String},
    )
    assert written(frame)[1] == ["-1.5", "-3", "-4", "+1e-9", "-.5", ""]


@pytest.mark.parametrize("text", ["a=1", "10.0.0.1", "node-1", "mean (ms)", " =x", "naïve"])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert written(pl.DataFrame({"name": [text]}))[1] == [text]


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0")) | st.builds(
    str.__add__, st.sampled_from(BEGINS), st.text(st.characters(codec="utf-8", exclude_characters="\0"))
)


@given(st.lists(TEXT.filter(bool), min_size=1))
def test_a_reader_that_takes_one_apostrophe_away_has_what_was_measured(texts: list[str]) -> None:
    rows = written(pl.DataFrame({"name": texts, "n": list(range(len(texts)))}))[1:]
    assert [row[0].removeprefix(MARK) for row in rows] == texts
    for cell, number in rows:
        assert number.isdecimal()
        assert cell[0] not in BEGINS[:-1] or float(cell) is not None
