"""Bulk transfers: throughput over time and in the mean, and what was sent again."""

from __future__ import annotations

from reports.figures import registry
from reports.sections.section import Page, Part, entries
from reports.sections.tabular import by_subject

MEASURES = {
    "transfer_rate": "rate, Mbit/s",
    "transfer_bytes": "carried, MB",
    "transfer_retransmits": "segments sent again",
    "transfer_lost": "packets lost",
    "transfer_rtt": "smoothed RTT, ms",
}


def section(page: Page) -> Part | None:
    """Absent where no flow is a bulk transfer."""
    table = by_subject(page.study, {"flow": "flow", "traffic_class": "class"}, MEASURES)
    if table is None:
        return None
    figures = page.figures(registry.TRANSFERS)
    return page.part("transfers", "Bulk transfers", entries(figures), table=table.cut(), figures=figures)
