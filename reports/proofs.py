"""Reads the link proof of one run, and combines those of all runs of a study."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import polars as pl

from contract.verdict import FAILS, HOLDS, OPEN
from reports.cell import Cell
from reports.judged import proven_said
from reports.study import Study

UNITS = {"ns": ("ms", 1e-6), "bit/s": ("Mbit/s", 1e-6), "share": ("%", 100.0)}
WORDS = (FAILS, OPEN, HOLDS)  # verdicts, the worst first
KEYS = ["link", "direction", "quantity", "requested", "expected", "unit"]
AT_ONCE = 50_000  # number of rows that are joined at a time: some 10 MB, for any number of runs
SCHEMA = {
    "cell": pl.String,
    "link": pl.String,
    "direction": pl.String,
    "quantity": pl.String,
    "requested": pl.Float64,
    "expected": pl.Float64,
    "measured": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "unit": pl.String,
    "n": pl.Int64,
    "tolerance": pl.Float64,
    "machine": pl.Float64,
    "verdict": pl.String,
    "reason": pl.String,
}
_VALUES = attrgetter(*(name for name in SCHEMA if name != "cell"))
ORDER = (
    pl.col("verdict").replace_strict({word: place for place, word in enumerate(WORDS)}, default=1),
    pl.col("cell"), pl.col("quantity"), pl.col("link"), pl.col("direction"),
)  # fmt: skip


def of_cell(cell: Cell) -> pl.DataFrame:
    """Returns the link checks of a run with the columns of SCHEMA, failures first, in readable units (ms,
    Mbit/s, %).

    requested: the value in the topology; expected: the value that the request should produce, against which
    the measured one is judged; machine: the part of the value that the machine itself adds; verdict: from
    verdicts.json.
    """
    lines = proven_said(cell.run.path, cell.run.proof)
    rows = [(cell.name, *_VALUES(one)) for one in lines]
    return _readable(pl.DataFrame(rows, schema=SCHEMA, orient="row", strict=False)).sort(ORDER)


def _readable(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows with ns converted to ms, bit/s to Mbit/s and shares to %; other units stay."""
    factor = pl.col("unit").replace_strict({u: f for u, (_, f) in UNITS.items()}, default=1.0)
    unit = pl.col("unit").replace({u: name for u, (name, _) in UNITS.items()})
    return rows.with_columns(
        pl.col("requested", "expected", "measured", "low", "high", "tolerance", "machine") * factor, unit=unit
    )


def failures_first(study: Study) -> Iterator[pl.DataFrame]:
    """Yields all link checks of all runs in parts, one for each run and verdict, the worst verdicts first."""
    cells = sorted(study.cells, key=lambda cell: cell.name)
    counts = {word: proven(study).get_column(word).sum() for word in WORDS}
    for word in (word for word in WORDS if counts[word]):
        for cell in cells:
            rows = of_cell(cell)
            yield rows.filter(pl.col("verdict") == word)


def proven(study: Study) -> pl.DataFrame:
    """Returns one row for each link, direction, quantity and request over all runs; failures first.

    `runs` is the number of runs, `least` and `most` are the extremes of the measured values, n is the sum.
    The verdict is the worst one, and the other columns have the values of the first run with it; a column for
    each verdict counts it.
    """
    return study.once(_proven)


def _proven(study: Study) -> pl.DataFrame:
    parts, height = list[pl.DataFrame](), 0
    for cell in study.cells:
        parts.append(_alone(of_cell(cell)))
        height += parts[-1].height
        if height > AT_ONCE:
            parts = [_together(parts)]
            height = 0
    return _together([_alone(pl.DataFrame(schema=SCHEMA)), *parts])


def _alone(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows of one run with the columns that `_together` adds up."""
    word = pl.col("verdict")
    return rows.with_columns(
        *((word == one).cast(pl.Int64).alias(one) for one in WORDS),
        runs=pl.lit(1, pl.Int64), least=pl.col("measured"), most=pl.col("measured"),
    )  # fmt: skip


def _together(parts: list[pl.DataFrame]) -> pl.DataFrame:
    """Returns one row for each key, with the values of the worst row, the counts added up, and the extremes
    of the measured values.
    """
    alike = pl.concat(parts).sort(ORDER).group_by(KEYS, maintain_order=True)
    kept = [name for name in SCHEMA if name not in (*KEYS, "n")]
    n = pl.when(pl.col("n").count() > 0).then(pl.col("n").sum()).alias("n")
    counts = pl.col("runs", *WORDS).sum()
    return alike.agg(pl.col(kept).first(), n, counts, pl.col("least").min(), pl.col("most").max())


def proof_rows(study: Study, most: int) -> list[dict[str, Any]]:
    """Returns the first `most` rows of `proven` for the page; `shown` is the measured value, or its range, as
    text.

    Rows of several runs have no interval.
    """
    found = []
    for row in proven(study).head(most).to_dicts():
        interval = {"low": None, "high": None} if row["runs"] > 1 else {}
        found.append({**row, **interval, "shown": _span(row["least"], row["most"])})
    return found


def _span(low: float | None, high: float | None) -> str:
    if low is None:
        return "-"
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
