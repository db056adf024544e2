"""Makes the page's section of plots over time of one run, with its phases and events marked."""

from __future__ import annotations

from reports.figures import registry
from reports.roles import origin_ns
from reports.sections.section import Page, Part, entries
from reports.trials import of_trials


def section(page: Page) -> Part | None:
    """Returns the section of the page, for RFC 2544 trials only with plots of the machine and links. None for
    several runs, whose own pages have it.

    Without any plot, a run with a known start gets a note instead; one without gets None.
    """
    if not page.study.single:
        return None
    figures = page.figures(registry.MACHINE if of_trials(page.study) else registry.OVER_TIME)
    instant = not figures and origin_ns(page.study.cells[0].run) is not None
    if not figures and not instant:
        return None
    return page.part("time", "Over time", entries(figures), figures=figures, instant=instant)
