"""Makes the page's sections on the course of a run: plots over time, and the effect of timeline events."""

from __future__ import annotations

from reports.figures import registry
from reports.metrics.interruptions import MOST, events
from reports.roles import origin_ns
from reports.sections.section import Page, Part, entries
from reports.sections.tabular import by_subject
from reports.trials import of_trials

SUBJECT = {"event": "event", "traffic_class": "class"}
MEASURES = {
    "interruption_lost": "messages lost",
    "interruption_unanswered": "requests unanswered",
    "interruption": "longest pause, ms",
    "interruption_before": "longest pause before any event, ms",
    "interruption_until": "recovery time, s",
}


def time(page: Page) -> Part | None:
    """Returns the section of the page; for RFC 2544 trials, it has only the plots of the machine and links.
    None for several runs, whose own pages have it.

    Without any plot, a run with a known start gets a note instead; one without gets None.
    """
    if not page.study.single:
        return None
    figures = page.figures(registry.MACHINE if of_trials(page.study) else registry.OVER_TIME)
    instant = not figures and origin_ns(page.study.cells[0].run) is not None
    if not figures and not instant:
        return None
    return page.part("time", "Over time", entries(figures), figures=figures, instant=instant)


def interruptions(page: Page) -> Part | None:
    """Returns the section of the page; None without messages, or without events that can interrupt a flow."""
    table = by_subject(page.study, SUBJECT, MEASURES)
    if table is None:
        return None
    most = MOST if any(len(events(cell.run)) > MOST for cell in page.study.cells) else 0
    return page.part("interruptions", "Interruptions", table=table.cut(), most=most)
