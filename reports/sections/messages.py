"""Makes the page's section on messages by traffic class: their counts and their latency."""

from __future__ import annotations

from reports.figures import latency, registry
from reports.sections.section import Page, Part, entries
from reports.sections.tabular import by_subject

SUBJECT = {"traffic_class": "class", "guarantee": "guarantee"}
ACCOUNT = {
    "messages_scheduled": "scheduled",
    "messages_unsent": "never sent",
    "messages_expected": "expected",
    "messages_received": "received",
    "messages_lost": "lost",
    "messages_duplicated": "duplicated",
    "messages_reordered": "reordered",
    "messages_unanswered": "requests unanswered",
    "messages_late": "deadline missed",
}
TIMES = ("p50", "p90", "p99", "p99.9", "max")
LATENCY = {f"latency_{name}": f"{name}, ms" for name in TIMES}
ROUND_TRIP = {f"round_trip_{name}": f"{name}, ms" for name in TIMES}


def section(page: Page) -> Part | None:
    """Returns the section of the page; None if no flow has messages. A latency distribution that cannot be
    drawn appears with its reason, other missing figures are left out.
    """
    account = by_subject(page.study, SUBJECT, ACCOUNT)
    if account is None:
        return None
    tables = [
        account,
        by_subject(page.study, SUBJECT, LATENCY, "Latency, from the scheduled time to the first delivery"),
        by_subject(
            page.study, SUBJECT, ROUND_TRIP, "Round trip, from a request's scheduled time to its reply"
        ),
    ]
    figures = page.figures(registry.MESSAGES, absent=True)
    # A run with messages should have a latency distribution, so the page says why it has none.
    figures = tuple(f for f in figures if f.svg or f.spec is latency.ECDF)
    return page.part(
        "messages",
        "Messages",
        entries(figures),
        tables=[table.cut() for table in tables if table is not None],
        figures=figures,
    )
