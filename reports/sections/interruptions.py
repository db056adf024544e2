"""Makes the page's section on interruptions: the effect of each timeline event on the messages."""

from __future__ import annotations

from reports.metrics.interruptions import MOST, events
from reports.sections.section import Page, Part
from reports.sections.tabular import by_subject

SUBJECT = {"event": "event", "traffic_class": "class"}
MEASURES = {
    "interruption_lost": "messages lost",
    "interruption_unanswered": "requests unanswered",
    "interruption": "longest pause, ms",
    "interruption_before": "longest pause before any event, ms",
    "interruption_until": "recovery time, s",
}


def section(page: Page) -> Part | None:
    """Returns the section of the page; None without messages, or without events that can interrupt a flow."""
    table = by_subject(page.study, SUBJECT, MEASURES)
    if table is None:
        return None
    most = MOST if any(len(events(cell.run)) > MOST for cell in page.study.cells) else 0
    return page.part("interruptions", "Interruptions", table=table.cut(), most=most)
