"""Makes the page's section on all claims of the paper with their verdicts."""

from __future__ import annotations

from reports.sections.section import Page, Part
from reports.trials import of_trials


def section(page: Page) -> Part | None:
    """Returns the section of the page; None without a paper that has claims, and for RFC 2544 trials."""
    if page.paper is None or of_trials(page.study) or not page.judged:
        return None
    return page.part("claims", "All claims", claims=page.judged.values())
