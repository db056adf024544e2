"""Links in use: what each direction carried, dropped and let wait."""

from __future__ import annotations

from reports.figures import registry
from reports.metrics.links import MOST
from reports.sections.section import Page, Part, entries
from reports.sections.tabular import by_subject

CARRIED = {
    "link_asked": "rate asked, Mbit/s",
    "link_carried": "carried, Mbit/s",
    "link_utilisation": "utilisation, %",
    "link_utilisation_p99": "its p99, %",
    "link_peak": "peak, Mbit/s",
    "link_goodput": "goodput, Mbit/s",
}
WAITING = {
    "link_dropped": "dropped, packets",
    "link_dropped_share": "% of packets",
    "link_queue_p50": "queue p50, packets",
    "link_queue_p99": "p99",
    "link_queue_max": "max",
}
SUBJECT = {"link": "link", "direction": "direction"}


def section(page: Page) -> Part | None:
    """Absent without samples of links."""
    carried = by_subject(page.study, SUBJECT, CARRIED)
    if carried is None:
        return None
    waiting = by_subject(page.study, SUBJECT, WAITING, "Drops and queues")
    figures = page.figures(registry.LINKS)
    goodput = any(column.title == CARRIED["link_goodput"] for column in carried.columns)
    many = any(len(cell.run.plan.get("links", [])) > MOST for cell in page.study.cells)
    return page.part(
        "links",
        "Links in use",
        entries(figures),
        tables=[table.cut() for table in (carried, waiting) if table is not None],
        figures=figures,
        goodput=goodput,
        most=MOST if many else 0,
    )
