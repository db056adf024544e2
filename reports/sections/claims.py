"""Every claim of the paper with its verdict."""

from __future__ import annotations

from reports.sections.section import Page, Part
from reports.trials import of_trials


def section(page: Page) -> Part | None:
    """Absent without a paper that claims something."""
    if page.paper is None or of_trials(page.study) or not page.judged:
        return None
    return page.part("claims", "All claims", claims=page.judged.values())
