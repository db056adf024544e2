"""Makes the page's section on the effect of the machines on the figures of a campaign that ran on several."""

from __future__ import annotations

import polars as pl

from reports.metrics.hosts import SIGNIFICANT, Effect
from reports.sections.section import Page, Part
from reports.sections.tabular import Column, Table

MOST = 12


def section(page: Page) -> Part | None:
    """Returns the section and writes the table of effects; None if no figure could be tested, for example
    because no condition ran on two machines.
    """
    effects = page.study.hosts
    if not effects:
        return None
    file = page.write("machines", "Effect of each machine on the figures", _rows(effects))
    return page.part(
        "machines",
        "Comparison of the machines",
        table=_table(effects).cut(MOST),
        file=file,
        limit=SIGNIFICANT,
    )


def _names(effects: list[Effect]) -> list[str]:
    return sorted({machine for effect in effects for machine in effect.adds})


def _table(effects: list[Effect]) -> Table:
    machines = _names(effects)
    columns = [Column("figure", text=True), Column("of", text=True), *(Column(f"{m}, %") for m in machines)]
    rows = tuple(
        (e.name, e.of.words, *(_percent(e.adds.get(m)) for m in machines), f"{e.p:.2g}") for e in effects
    )
    return Table((*columns, Column("p")), rows)


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:+.2g}"


def _rows(effects: list[Effect]) -> pl.DataFrame:
    rows = [
        {"name": e.name, "of": e.of.words, "machine": machine, "adds_percent": 100 * share, "p": e.p}
        for e in effects
        for machine, share in e.adds.items()
    ]
    return pl.DataFrame(rows)
