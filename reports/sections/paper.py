"""Makes the page's sections on the paper that the topology names as its reference. The sections have the
paper's figures redrawn, tables of measured and printed values, and the claims with their verdicts.
"""

from __future__ import annotations

from reports.claims.verdict import OPEN
from reports.sections.section import Page, Part, entries
from reports.trials import of_trials


def section(page: Page) -> Part | None:
    """Returns the section of the page; None without a reference, and for RFC 2544 trials."""
    if page.paper is None or of_trials(page.study):
        return None
    wanted = page.figures(page.paper.figures(page.study), absent=True)
    tables = page.paper.tables(page.study)
    claims = {f.spec.key: [page.judged[k] for k in f.spec.claims if k in page.judged] for f in wanted}
    judged = {t.figure for t in tables} | {
        key for key, judged in claims.items() if any(verdict.verdict != OPEN for _, verdict in judged)
    }
    figures = tuple(f for f in wanted if f.svg or f.spec.key in judged)
    drawn = {f.spec.key for f in figures}
    return page.part(
        "paper",
        "The paper's figures",
        entries(figures),
        paper=page.paper,
        figures=figures,
        tables={key: [t for t in tables if t.figure == key] for key in drawn},
        alone=[t for t in tables if t.figure not in drawn],
        claims=claims,
        others=[f for f in wanted if f.spec.key not in drawn],
        suspect=page.suspect,
    )


def claims(page: Page) -> Part | None:
    """Returns the section of the page; None without a paper that has claims, and for RFC 2544 trials."""
    if page.paper is None or of_trials(page.study) or not page.judged:
        return None
    return page.part("claims", "All claims", claims=page.judged.values())
