"""Makes the page's section on how often each setting of a campaign was run, in which order, and which runs
count.
"""

from __future__ import annotations

from collections.abc import Sequence

from contract.cells import Line, set_aside
from contract.enough import Enough
from contract.verdict import HOLDS, OPEN
from reports.enough import by_setting, rule_of
from reports.numbers import plain
from reports.sections.section import Page, Part
from reports.sections.tabular import Column, Table
from reports.study import Study, all_lines

SETTINGS = (
    Column("setting", text=True),
    Column("value of", text=True),
    Column("repetitions"),
    Column("mean", text=True),
    Column("known well enough", chip=True),
)
ASIDE = (Column("cell", text=True), Column("run set aside", text=True), Column("suspect because", small=True))


def section(page: Page) -> Part | None:
    """Returns the section; None for one run, and for a campaign with a fixed number of runs in the listed
    order.
    """
    about = page.study.about
    rule = rule_of(page.study)
    lines = [] if page.study.single else all_lines(page.study.root / "cells.jsonl")
    aside = set_aside(lines)
    order = about.get("order")
    if rule is None and not aside and not order and not about.get("design"):
        return None
    return page.part(
        "repetitions",
        "Repetitions of each setting",
        design=str(about.get("design") or ""),
        seed=order.get("seed") if isinstance(order, dict) else None,
        rule=rule,
        looks=", ".join(map(str, rule.looks)) if rule else "",
        share=plain(100 * rule.interval) if rule else "",
        confidence=plain(100 * rule.confidence) if rule else "",
        settings=_settings(page.study, rule).cut() if rule else None,
        aside=_aside(aside).cut() if aside else None,
    )


def _settings(study: Study, rule: Enough) -> Table:
    """Returns one line for each setting and each value that the rule chooses."""
    rows = []
    for name, cells, found in by_setting(study, rule):
        rows += [(name, one.of, str(one.n), one.text, HOLDS if one.enough else OPEN) for one in found]
        if not found:
            rows.append((name, "", str(cells), f"no run measured {rule.metric.text}", OPEN))
    return Table(SETTINGS, tuple(rows), f"Precision of the mean of {rule.metric.text}")


def _aside(found: dict[str, list[Line]]) -> Table:
    rows: Sequence[tuple[str, ...]] = [
        (name, str(line.get("run_dir", "")), str(line.get("suspect") or ""))
        for name, lines in found.items()
        for line in lines
    ]
    return Table(ASIDE, tuple(rows), "Runs that do not count, since their cell was run again")
