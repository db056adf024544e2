"""Which rows the headline table of a study has: made of its own groups, links, classes and captures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from reports.metrics.groups import ORDER
from reports.study import Study

TICKS = "rough: 10 ms ticks"
# The sections below have all.
MOST_GROUPS, MOST_LINKS, MOST_CLASSES, MOST_FLOWS, MOST_EVENTS, MOST_HOSTS = 4, 2, 3, 3, 4, 3
SERVES = ("broker", "server")
MESSAGES = {
    "latency_p50": "latency p50, ms",
    "latency_p99": "latency p99, ms",
    "latency_max": "latency max, ms",
    "round_trip_p50": "round trip p50, ms",
    "round_trip_p99": "round trip p99, ms",
    "messages_scheduled": "messages scheduled",
    "messages_received": "messages received",
    "messages_lost": "messages lost",
    "messages_duplicated": "messages duplicated",
    "messages_reordered": "messages reordered",
    "messages_unanswered": "requests unanswered",
    "messages_late": "deadlines missed",
    "promise_held": "delivery guarantee",
}
BRIEFLY = (  # of several classes, whose whole account has its own section
    "latency_p50",
    "latency_p99",
    "round_trip_p50",
    "round_trip_p99",
    "messages_lost",
    "messages_unanswered",
    "messages_late",
    "promise_held",
)
CAPTURED = {
    "wire_rate": "throughput on the wire, Mbit/s",
    "connections": "TCP connections",
    "handshake_p50": "TCP handshake p50, ms",
    "connection_rate_p50": "rate of a TCP connection, by payload p50, Mbit/s",
    "goodput_packets": "packets with TCP payload, %",
    "goodput_bytes": "bytes that are TCP payload, %",
    "retransmitted_packets": "packets sent again, %",
    "overhead": "protocol overhead, % of bytes",
}


@dataclass(frozen=True)
class Line:
    """A row of the table: its text, the metric, and which columns of `Of` it has."""

    text: str
    name: str
    of: dict[str, str] = field(default_factory=dict)


def lines(study: Study) -> list[Line]:
    """Every line that the study may have a value for, in the order of the table."""
    table = study.compared
    ticked = any(cell.run.ticked for cell in study.cells)
    return [
        *_groups(table, ticked),
        *_links(table),
        *_messages(table),
        *_interruptions(table),
        *_transfers(table),
        *_captured(table),
    ]


def _groups(table: pl.DataFrame, ticked: bool) -> Iterator[Line]:
    """CPU of the groups that used any, those that serve first; what the first sends and receives."""
    known = table.filter((pl.col("name") == "cpu") & pl.col("group").is_not_null() & (pl.col("value") > 0))
    rank = {role: place for place, role in enumerate(ORDER)}
    rows = known.group_by("group", maintain_order=True).agg(pl.col("role").first(), pl.col("value").max())
    chosen = sorted(rows.to_dicts(), key=lambda r: (rank.get(r["role"], len(rank)), -r["value"]))[
        :MOST_GROUPS
    ]
    sizes = (
        table.filter(pl.col("name") == "nodes")
        .group_by("group", maintain_order=True)
        .agg(pl.col("value").max())
    )
    many = {group for group, size in sizes.iter_rows() if size > 1}
    for row in chosen:
        name = f"mean {row['group']}" if row["group"] in many else row["group"]
        note = f" ({TICKS})" if ticked else ""
        yield Line(f"{name} CPU, % of a core{note}", "cpu", {"group": row["group"]})
    yield from _machines(table)
    for row in [row for row in chosen if row["role"] in SERVES][:1] or chosen[:1]:
        name = f"mean {row['group']}" if row["group"] in many else row["group"]
        yield Line(f"{name} receives, kB/s", "received", {"group": row["group"]})
        yield Line(f"{name} sends, kB/s", "sent", {"group": row["group"]})


def _machines(table: pl.DataFrame) -> Iterator[Line]:
    """The machine that the lab took its time from, or the busiest of its hosts."""
    machines = set(table.filter(pl.col("name") == "host_busy").get_column("machine").to_list())
    where = "outer" if "outer" in machines else "lab"
    if not machines or where in machines:
        yield Line("machine busy, %", "host_busy", {"machine": where})
        return
    for row in _most(table, "host_busy", ["machine"], MOST_HOSTS):
        yield Line(f"host {row['machine']} busy, %", "host_busy", row_of(row))


def _links(table: pl.DataFrame) -> Iterator[Line]:
    """Utilisation and drops of the busiest directions that were asked for a rate."""
    for row in _most(table, "link_utilisation", ["link", "direction"], MOST_LINKS):
        place = f"{row['link']} {row['direction']}"
        of = {"link": row["link"], "direction": row["direction"]}
        yield Line(f"{place}: utilisation, %", "link_utilisation", of)
        yield Line(f"{place}: dropped, % of packets", "link_dropped_share", of)


def _messages(table: pl.DataFrame) -> Iterator[Line]:
    """Latency and account of the classes with most messages; with the promise where one has several."""
    keys = ["traffic_class"]
    counted = table.filter(pl.col("name") == "messages_scheduled")
    if counted.select("scenario", "series", "traffic_class").is_duplicated().any():
        keys.append("promise")
    chosen = _most(table, "messages_scheduled", keys, MOST_CLASSES)
    for row in chosen:
        of = {key: row[key] for key in keys if row[key] is not None}
        several = len(chosen) > 1
        before = ", ".join(of.values()) + ": " if several else ""
        for name, text in MESSAGES.items():
            if not several or name in BRIEFLY:
                yield Line(before + text, name, of)


def _interruptions(table: pl.DataFrame) -> Iterator[Line]:
    """The events that interrupted a class for longest, and that which cost it most messages."""
    keys = ["event", "traffic_class"]
    longest = [row_of(row) for row in _most(table, "interruption_until", keys, MOST_EVENTS)]
    dearest = _most(table.filter(pl.col("value") > 0), "interruption_lost", keys, 1)
    for of in longest + [row_of(row) for row in dearest if row_of(row) not in longest]:
        place = f"{of['event']}: {of['traffic_class']}"
        if of in longest:
            yield Line(f"{place} goes on after, s", "interruption_until", of)
        yield Line(f"{place}, {MESSAGES['messages_lost']}", "interruption_lost", of)
        yield Line(f"{place}, {MESSAGES['messages_unanswered']}", "interruption_unanswered", of)


def row_of(row: dict[str, str]) -> dict[str, str]:
    """The subject of a row of `_most`, without its value."""
    return {key: text for key, text in row.items() if key != "value"}


def _transfers(table: pl.DataFrame) -> Iterator[Line]:
    yield Line("fairness of the transfers (Jain), 1 is even", "fairness")
    for row in _most(table, "share", ["traffic_class"], MOST_CLASSES):
        yield Line(f"{row['traffic_class']}: share of all transfers, %", "share", row_of(row))
    for row in _most(table, "transfer_rate", ["flow"], MOST_FLOWS):
        yield Line(f"{row['flow']}: rate, Mbit/s", "transfer_rate", {"flow": row["flow"]})


def _captured(table: pl.DataFrame) -> Iterator[Line]:
    """Of the capture point that saw most packets."""
    for row in _most(table, "packets", ["capture"], 1):
        for name, text in CAPTURED.items():
            yield Line(text, name, {"capture": row["capture"]})


def _most(table: pl.DataFrame, name: str, keys: list[str], most: int) -> list[dict[str, str]]:
    """The subjects that have most of a metric in any condition."""
    known = (
        table.filter(pl.col("name") == name).group_by(keys, maintain_order=True).agg(pl.col("value").max())
    )
    return (
        known.sort("value", *keys, descending=[True, *[False] * len(keys)], nulls_last=True)
        .head(most)
        .to_dicts()
    )
