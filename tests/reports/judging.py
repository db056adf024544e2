"""Judges expectations on a run, with changed messages if a test wants them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
from synthetic_shape import CLASS

from contract.plan import Expectation
from reports.cell import Cell
from reports.expect import judge
from reports.study import study_of_run

OF = {"traffic_class": CLASS}


def cell_of(directory: Path) -> Cell:
    (cell,) = study_of_run(directory).cells
    return cell


def verdict(run: Cell, **what: Any) -> str:
    return judgement(run, **what)[0]


def judgement(run: Cell, **what: Any) -> tuple[str, str]:
    given = {"text": "x", "subject": "metric", "of": OF} | what
    found = judge.of_run(run, Expectation(**given))
    return found.verdict, found.reason


def altered(run: Path, **columns: pl.Expr) -> Cell:
    """Returns the run with changed columns of its messages, for judgement."""
    table = pl.read_parquet(run / "messages.parquet")
    table.with_columns(**columns).write_parquet(run / "messages.parquet")
    (run / "summary.json").unlink(missing_ok=True)
    return cell_of(run)
