"""Makes the page's section on messages by traffic class: their counts and their latency."""

from __future__ import annotations

import shlex

import polars as pl

from reports.figures import latency, registry
from reports.metrics.messages import held_messages
from reports.sections.section import Page, Part, entries
from reports.sections.tabular import by_subject

MOST_BEHIND = 10  # largest number of classes for which the packets of the slowest message are listed
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


def _behind(page: Page) -> list[tuple[str, str, str]]:
    """Returns class, latency and command of the slowest message of each class; the command shows the packets
    that carry the message. Classes whose payload has no header are left out. Empty for several runs, or
    without a kept capture.
    """
    if not page.study.single:
        return []
    run = page.study.cells[0].run
    kept = [one.name for one in run.plan.captures if (run.path / "pcap" / f"{one.name}.pcap").is_file()]
    held = held_messages(run) if kept else None
    if held is None:
        return []
    named = [flow.name for flow in run.plan.flows if flow.payload.kind == "bytes"]
    rows = held.filter(pl.col("name").is_in(named)).drop_nulls("latency_ns").sort("latency_ns", "name", "seq")
    slowest = rows.group_by("class", maintain_order=True).last().select("class", "latency_ns", "name", "seq")
    point = f" --point {shlex.quote(kept[0])}" if len(run.plan.captures) > 1 else ""
    show = f"vnet packets DIR{point} --deep --message"
    return [(of, f"{ns / 1e6:,.4g} ms", f"{show} {name}:{seq}") for of, ns, name, seq in slowest.iter_rows()]


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
    # A run with messages should have a latency distribution, so the page gives the reason if it has none.
    figures = tuple(f for f in figures if f.svg or f.spec is latency.ECDF)
    return page.part(
        "messages",
        "Messages",
        entries(figures),
        tables=[table.cut() for table in tables if table is not None],
        figures=figures,
        behind=_behind(page)[:MOST_BEHIND],
    )
