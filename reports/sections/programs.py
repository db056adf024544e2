"""Makes the page's sections on requests: the figures that programs printed themselves, and those of requests
in captures.
"""

from __future__ import annotations

from reports.sections.section import Page, Part
from reports.sections.tabular import Column, Table, by_subject

SUBJECT = {"program": "program"}
REQUESTS = {
    "program_requests": "requests",
    "program_rate": "requests/s",
    "program_failed": "without an answer",
    "program_refused": "neither 2xx nor 3xx",
    **{f"program_status_{digit}xx": f"{digit}xx" for digit in (1, 2, 3, 4, 5)},
}
LATENCY = {
    f"program_latency_{name}": name
    for name in ("min", "mean", "p50", "p75", "p90", "p95", "p99", "p99.9", "max", "deviation")
}
CARRIED = {
    "program_throughput": "throughput, Mbit/s",
    "program_bytes": "carried, MB",
    "program_retransmits": "retransmissions, segments",
    "program_sent": "packets sent",
    "program_received": "packets received",
    "program_lost": "packets lost",
    "program_loss": "lost, %",
    "program_jitter": "jitter, ms",
}
CAPTURED = {"capture": "capture point", "protocol": "protocol"}
ASKED = {
    "app_requests": "requests",
    "app_rate": "requests/s",
    "app_unanswered": "without an answer",
    "app_errors": "answered by an error",
    **{f"app_status_{digit}xx": f"{digit}xx" for digit in (2, 3, 4, 5)},
    "app_unfollowed": "connections left out",
}
ANSWERED_MS = {f"app_latency_{name}": name for name in ("mean", "p50", "p90", "p99", "p99.9", "max")}
SOURCES = (
    Column("program", text=True),
    Column("metric", text=True),
    Column("read from", text=True, small=True),
)


def section(page: Page) -> Part | None:
    """Returns the section of the page; None if no program's figures were read."""
    parts = (
        by_subject(page.study, SUBJECT, LATENCY, "Latency, ms"),
        by_subject(page.study, SUBJECT, REQUESTS, "Requests"),
        by_subject(page.study, SUBJECT, CARRIED, "Throughput, packets"),
    )
    tables = [table.cut() for table in parts if table is not None]
    if not tables:
        return None
    return page.part("programs", "Figures of the programs", tables=tables, sources=_sources(page))


def captured(page: Page) -> Part | None:
    """Returns the section on requests in captures; None if no capture has requests of a known protocol."""
    parts = (
        by_subject(page.study, CAPTURED, ANSWERED_MS, "From request to answer at the capture point, ms"),
        by_subject(page.study, CAPTURED, ASKED, "Requests of the hold"),
    )
    tables = [table.cut() for table in parts if table is not None]
    if not tables:
        return None
    return page.part("requests", "Requests in the captures", tables=tables)


def _sources(page: Page) -> Table | None:
    """Returns the log and line of each value, for a page of one run."""
    if not page.study.single:
        return None
    found = page.study.compared.filter(page.study.compared["program"].is_not_null())
    rows = found.select("program", "name", "method").iter_rows()
    return Table(SOURCES, tuple((program, name, method) for program, name, method in rows)).cut()
