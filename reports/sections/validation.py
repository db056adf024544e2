"""Makes the page's section on the delivery guarantees of the flows, judged message by message."""

from __future__ import annotations

import polars as pl

from contract.verdict import ORDER, of_truth
from reports.judged import said
from reports.metrics.delivery import delivery
from reports.sections.checks import named
from reports.sections.section import Page, Part
from reports.sections.tabular import Column, Table
from reports.study import Study

COUNTS = ("expected", "lost", "unanswered", "duplicated", "disordered", "unsent", "unsettled", "late")
TITLES = {
    "guarantee": "guarantee",
    "disordered": "out of order",
    "unsent": "never sent",
    "unsettled": "in flight",
}
SCHEMA = {
    **dict.fromkeys(("cell", "scenario", "class", "guarantee", "rule", "verdict"), pl.String),
    **dict.fromkeys(COUNTS, pl.Int64),
    "reason": pl.String,
}


def section(page: Page) -> Part | None:
    """Returns the section and writes the table of guarantees; None if no flow has a guarantee."""
    verdicts = _as_written(page.study, guarantees(page.study))
    if verdicts.is_empty():
        return None
    file = page.write("guarantees", "Delivery guarantees with their verdicts", verdicts)
    return page.part("validation", "Delivery guarantees", table=_table(page.study, verdicts).cut(), file=file)


def guarantees(study: Study) -> pl.DataFrame:
    """Returns one row for each run, class and guarantee with its verdict and counts; flows without a
    guarantee are left out.
    """
    rows = [
        (
            *(cell.name, cell.scenario, v.class_, v.guarantee, v.rule, of_truth(v.holds)),
            *(getattr(v, name) for name in COUNTS),
            v.reason,
        )
        for cell in study.cells
        for v in delivery(cell.run)
        if v.guaranteed
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _as_written(study: Study, made: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows of `guarantees` with the verdicts of each run's verdicts.json; runs without matching
    verdicts keep their own.
    """
    rows = [
        row
        for cell in study.cells
        for row in said(cell.run.path, "guarantee", made.filter(pl.col("cell") == cell.name).to_dicts())
    ]
    return pl.DataFrame(rows, schema=SCHEMA)


def _table(study: Study, verdicts: pl.DataFrame) -> Table:
    """Returns the page's table, failures first. Counts that are all zero are left out, except expected and
    lost.

    Runs with the same class, guarantee, rule and verdict are one row, with the sums of their counts.
    """
    shown = [name for name in COUNTS if name in ("expected", "lost") or verdicts.get_column(name).sum()]
    order = pl.col("verdict").replace_strict({word: place for place, word in enumerate(ORDER)}, default=0)
    rows = _alike(study, verdicts).sort(order, maintain_order=True)
    texts = ["class", "guarantee", "verdict", "rule"]
    columns = [
        Column(TITLES.get(name, name), text=True, chip=name == "verdict", small=name == "rule")
        for name in texts
    ]
    columns += [] if study.single else [Column("runs", text=True)]
    columns += [Column(TITLES.get(name, name)) for name in shown] + [Column("reason", text=True, small=True)]
    return Table(
        tuple(columns),
        tuple(
            (
                *(row[name] for name in texts),
                *([] if study.single else [named(row["cell"])]),
                *(f"{row[name]:,}" for name in shown),
                row["reason"],
            )
            for row in rows.to_dicts()
        ),
    )


def _alike(study: Study, verdicts: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows of a single run. For several runs, returns one row for each class, guarantee, rule and
    verdict. The row has the list of cells, the sums of the counts, and the first reason, which names its run
    if the reasons differ.
    """
    if study.single:
        return verdicts
    keys = ["class", "guarantee", "rule", "verdict"]
    alike = verdicts.group_by(keys, maintain_order=True)
    first, differ = pl.col("reason").first(), pl.col("reason").n_unique() > 1
    reason = pl.when(differ).then(pl.format("{}: {}", pl.col("cell").first(), first)).otherwise(first)
    return alike.agg(pl.col("cell"), pl.col(*COUNTS).sum(), reason.alias("reason"))
