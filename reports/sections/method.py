"""Makes the page's section on the methods by which its figures were measured."""

from __future__ import annotations

from reports.sections.section import Page, Part
from reports.trials import of_trials
from reports.virtual import statement


def section(page: Page) -> Part:
    names = set(page.study.compared.get_column("name").to_list())
    return page.part(
        "method",
        "Method",
        trials=of_trials(page.study),
        names=names,
        statement=statement(page.study),
        ticked=any(cell.run.ticked for cell in page.study.cells),
    )
