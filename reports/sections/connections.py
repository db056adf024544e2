"""Makes the page's section on TCP connections in the captures: a summary for each capture point, and the
connections of a single run with most payload.
"""

from __future__ import annotations

import polars as pl

from reports.figures import registry
from reports.metrics.connections import connections
from reports.sections.section import Page, Part, entries
from reports.sections.tabular import Column, Table, by_subject

SUMS = {
    "connections": "connections",
    "connection_rate_p50": "goodput p50, Mbit/s",
    "connection_seconds_p50": "duration p50, s",
    "handshake_p50": "handshake p50, ms",
    "handshake_p99": "handshake p99, ms",
    "smoothed_rtt_p50": "smoothed RTT p50, ms",
    "smoothed_rtt_p99": "smoothed RTT p99, ms",
    "connection_retransmissions": "retransmissions",
}
BUSIEST = {
    "source": "from",
    "destination": "to",
    "app": "protocol",
    "payload_bytes": "payload, kB",
    "mbps": "goodput, Mbit/s",
    "seconds": "duration, s",
    "handshake_ms": "handshake, ms",
    "rtt_ms": "smoothed RTT, ms",
    "retransmissions": "retransmissions",
    "end": "end",
}
TEXTS = ("source", "destination", "app", "end")
MOST = 10
RTTS = {"transfer_rtt", "smoothed_rtt_p50"}  # two smoothed RTTs, which differ; the page explains them


def section(page: Page) -> Part | None:
    """Returns the section of the page; None if no capture has a TCP connection. For a single run it also
    writes the table of connections at the capture point with most of them.
    """
    sums = by_subject(page.study, {"capture": "capture point"}, SUMS)
    if sums is None:
        return None
    drawn = page.figures(registry.CONNECTIONS)
    point, rows = _busiest(page)
    file = page.write("connections", f"TCP connections at {point}", rows)
    return page.part(
        "connections",
        "TCP connections",
        entries(drawn),
        sums=sums.cut(),
        point=point,
        busiest=None if rows is None else _table(rows),
        file=file,
        figures=drawn,
        twice=set(page.study.compared["name"]) >= RTTS,
    )


def _busiest(page: Page) -> tuple[str, pl.DataFrame | None]:
    """Returns the capture point of a single run with most connections, and its connections; ("", None) for
    several runs.
    """
    tables = page.study.cells[0].run.connections if page.study.single else {}
    if not tables:
        return "", None
    point = max(tables, key=lambda name: tables[name].height)
    return point, connections(tables[point])


def _table(rows: pl.DataFrame) -> Table:
    columns = tuple(Column(title, text=name in TEXTS) for name, title in BUSIEST.items())
    shown = rows.with_columns(payload_bytes=pl.col("payload_bytes") / 1e3)
    texts = tuple(tuple(_text(row[name]) for name in BUSIEST) for row in shown.to_dicts())
    return Table(columns, texts).cut(MOST)


def _text(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
