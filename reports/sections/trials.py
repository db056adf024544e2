"""Makes the page's section on RFC 2544 tests, for runs with trials of a path."""

from __future__ import annotations

from reports.figures import registry
from reports.sections.section import Page, Part, entries
from reports.trials import RFC, of_trials, searches


def section(page: Page) -> Part | None:
    if not of_trials(page.study):
        return None
    figures = page.figures(registry.TRIALS, absent=True)
    return page.part(
        "trials", "RFC 2544", entries(figures), figures=figures, rfc=RFC, searches=searches(page.study)
    )
