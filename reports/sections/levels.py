"""Makes the page's section that compares a campaign's levels."""

from __future__ import annotations

from reports.figures import registry
from reports.sections.section import Page, Part, entries


def section(page: Page) -> Part | None:
    """Returns the section of the page; None if the study has a single series or the comparison
    cannot be drawn.
    """
    figures = page.figures(registry.LEVELS) if len(page.study.series) > 1 else ()
    return (
        page.part("levels", "Comparison of the levels", entries(figures), figures=figures)
        if figures
        else None
    )
