"""Makes the page's section on bulk transfers: throughput (over time and mean), retransmissions, fairness."""

from __future__ import annotations

import polars as pl

from reports.figures import registry
from reports.sections.section import Page, Part, entries
from reports.sections.tabular import by_subject, value

MEASURES = {
    "transfer_rate": "rate, Mbit/s",
    "transfer_bytes": "carried, MB",
    "transfer_retransmits": "retransmissions, segments",
    "transfer_lost": "packets lost",
    "transfer_rtt": "smoothed RTT, ms",
}
SHARES = {"share": "share, %"}


def section(page: Page) -> Part | None:
    """Returns the section of the page; None if no flow is a bulk transfer."""
    table = by_subject(page.study, {"flow": "flow", "traffic_class": "class"}, MEASURES)
    if table is None:
        return None
    figures = page.figures(registry.TRANSFERS)
    shares = by_subject(page.study, {"traffic_class": "class"}, SHARES, "Shares while all of them send")
    return page.part(
        "transfers",
        "Bulk transfers",
        entries(figures),
        tables=[one.cut() for one in (table, shares) if one is not None],
        fairness=_fairness(page),
        figures=figures,
    )


def _fairness(page: Page) -> list[tuple[str, str]]:
    """Returns the name of each condition that has Jain's index, with the index as text."""
    rows = page.study.compared.filter(pl.col("name") == "fairness").to_dicts()
    return [(page.study.named(row["scenario"], row["series"]), value(row)) for row in rows]
