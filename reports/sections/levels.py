"""The levels of a campaign side by side."""

from __future__ import annotations

from reports.figures import registry
from reports.sections.section import Page, Part, entries


def section(page: Page) -> Part | None:
    """Absent where nothing varies."""
    figures = page.figures(registry.LEVELS) if len(page.study.series) > 1 else ()
    return (
        page.part("levels", "The levels side by side", entries(figures), figures=figures) if figures else None
    )
