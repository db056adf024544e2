"""What the flows promise, judged message by message."""

from __future__ import annotations

import polars as pl

from capture.verdict import FAILS, of_truth
from reports.judged import said
from reports.metrics.delivery import delivery
from reports.sections.section import Page, Part
from reports.sections.tabular import Column, Table
from reports.study import Study

COUNTS = ("expected", "lost", "unanswered", "duplicated", "disordered", "unsent", "unsettled", "late")
SCHEMA = {
    **dict.fromkeys(("cell", "scenario", "class", "promise", "rule", "verdict"), pl.String),
    **dict.fromkeys(COUNTS, pl.Int64),
    "reason": pl.String,
}


def section(page: Page) -> Part | None:
    """Absent where nothing was promised."""
    verdicts = _as_written(page.study, promises(page.study))
    if verdicts.is_empty():
        return None
    file = page.write("promises", "What was promised, and whether it holds", verdicts)
    return page.part("validation", "Promises", table=_table(page.study, verdicts).cut(), file=file)


def promises(study: Study) -> pl.DataFrame:
    """One row per run, class and promise; flows that promise nothing are counted with the messages only."""
    rows = [
        (
            *(cell.name, cell.scenario, v.class_, v.promise, v.rule, of_truth(v.holds)),
            *(getattr(v, name) for name in COUNTS),
            v.reason,
        )
        for cell in study.cells
        for v in delivery(cell.run)
        if v.promised
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _as_written(study: Study, made: pl.DataFrame) -> pl.DataFrame:
    """The rows of `promises` with the verdicts of each run's verdicts.json."""
    rows = [
        row
        for cell in study.cells
        for row in said(cell.run.path, "promise", made.filter(pl.col("cell") == cell.name).to_dicts())
    ]
    return pl.DataFrame(rows, schema=SCHEMA)


def _table(study: Study, verdicts: pl.DataFrame) -> Table:
    """The page's columns: counts that are all zero are left out, failures come first."""
    shown = [name for name in COUNTS if name in ("expected", "lost") or verdicts.get_column(name).sum()]
    first = ["cell"] if not study.single else []
    texts = [*first, "class", "promise", "rule", "verdict"]
    order = verdicts.sort(pl.col("verdict") != FAILS, maintain_order=True)
    columns = [Column(name, text=True, chip=name == "verdict", small=name == "rule") for name in texts]
    columns += [Column(name) for name in shown] + [Column("reason", text=True, small=True)]
    rows = tuple(
        (*(row[name] for name in texts), *(f"{row[name]:,}" for name in shown), row["reason"])
        for row in order.to_dicts()
    )
    return Table(tuple(columns), rows)
