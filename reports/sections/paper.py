"""The paper that the topology names as its reference: its figures redrawn, its tables beside ours."""

from __future__ import annotations

from reports.sections.section import Page, Part, entries
from reports.trials import of_trials


def section(page: Page) -> Part | None:
    """Absent without a reference."""
    if page.paper is None or of_trials(page.study):
        return None
    figures = page.figures(page.paper.figures(page.study), absent=True)
    tables = page.paper.tables(page.study)
    drawn = {f.spec.key for f in figures}
    return page.part(
        "paper",
        "The paper's figures",
        entries(figures),
        paper=page.paper,
        figures=figures,
        tables={key: [t for t in tables if t.figure == key] for key in drawn},
        alone=[t for t in tables if t.figure not in drawn],
        claims={f.spec.key: [page.judged[k] for k in f.spec.claims if k in page.judged] for f in figures},
        suspect=page.suspect,
    )
