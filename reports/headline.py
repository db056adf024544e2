"""Makes the headline table of page and terminal: a row for each quantity (for RFC 2544 trials, for each frame
size), a column for each condition.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from contract.verdict import FAILS, HOLDS
from reports.judged import Summary, summary
from reports.lines import lines
from reports.metrics.compare import called
from reports.numbers import FEW, measured
from reports.study import Study, study_of_campaign, study_of_run
from reports.trials import of_trials, trial_rows

Row = tuple[str, ...]


def headline(directory: Path) -> list[Row]:
    """Returns the headline table of a run or campaign directory; the first row is the header."""
    campaign = (directory / "cells.jsonl").exists()
    return headline_rows(study_of_campaign(directory) if campaign else study_of_run(directory))


def result(directory: Path) -> tuple[list[Row], Summary]:
    """Returns the headline table and the verdicts of a run or campaign, as the terminal shows them."""
    return headline(directory), summary(directory)


def headline_rows(study: Study) -> list[Row]:
    """Returns the headline table of a study as rows of text: the header, then one row for each quantity or,
    for RFC 2544 trials, for each frame size. "-" means a missing value.
    """
    if of_trials(study):
        return trial_rows(study)
    conditions = study.conditions
    rows: list[Row] = [("with 95 % intervals", *(study.named(*one) for one in conditions))]
    for line in lines(study):
        found = {(r["scenario"], r["series"]): r for r in _of(study.compared, line.name, line.of)}
        rows.append((line.text, *(_cell(found.get(condition)) for condition in conditions)))
    return rows


def _of(table: pl.DataFrame, name: str, of: dict[str, str]) -> list[dict[str, Any]]:
    return table.filter(called(name, **of)).to_dicts()


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "-"
    if row["name"] == "guarantee_held":
        kept, repetitions = round(row["value"] * row["repetitions"]), row["repetitions"]
        if repetitions == 1:
            return HOLDS if kept else FAILS
        return f"{HOLDS} in {kept} of {repetitions}"
    return measured(row["value"], row["low"], row["high"], row["method"], FEW)
