"""Chooses the rows of the headline table, at most a dozen: interruptions, messages and transfers, then links
and load.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from reports.metrics.groups import ORDER
from reports.metrics.transfers import MOST as MOST_TRANSFERS
from reports.study import Study

MOST = 12  # largest number of rows; the sections below have every figure
# largest number of rows for messages, interruptions and transfers, so that some are left for links and load
MOST_ASKED = 8
TICKS = "rough: 10 ms ticks"
MOST_GROUPS, MOST_LINKS, MOST_CLASSES, MOST_FLOWS, MOST_EVENTS, MOST_HOSTS = 3, 1, 3, 3, 3, 3
MOST_PROGRAMS = 2
FEW_FLOWS = 4  # number of transfers up to which the table has all of them
SERVES = ("broker", "server")
TIMES = {
    "round_trip_p50": "round trip p50, ms",
    "round_trip_p99": "round trip p99, ms",
    "latency_p50": "latency p50, ms",
    "latency_p99": "latency p99, ms",
}
COUNTS = {
    "messages_scheduled": "messages scheduled",
    "messages_received": "messages received",
    "messages_lost": "messages lost",
}
FAULTS = {  # rows that are shown only if at least one condition has such a fault
    "messages_unanswered": "requests unanswered",
    "messages_late": "deadlines missed",
    "messages_duplicated": "messages duplicated",
    "messages_reordered": "messages reordered",
}
LOST = ("messages_lost",)
GUARANTEE = {"guarantee_held": "delivery guarantee"}
CAPTURED = {
    "connections": "TCP connections",
    "handshake_p50": "TCP handshake p50, ms",
    "connection_rate_p50": "TCP goodput per connection p50, Mbit/s",
    "goodput_packets": "packets with TCP payload, %",
    "goodput_bytes": "TCP payload share, % of bytes",
    "retransmitted_packets": "retransmissions, % of packets",
    "overhead": "protocol overhead, % of bytes",
}
PROGRAMS = {  # rows of a program's own figures, by the metric of its amount of work
    "program_latency_p99": "latency p99, ms",
    "program_rate": "requests/s",
    "program_failed": "requests without an answer",
    "program_throughput": "throughput, Mbit/s",
    "program_loss": "packets lost, %",
}
WIRE = {"wire_rate": "throughput on the wire, Mbit/s"}


@dataclass(frozen=True)
class Line:
    """A row of the headline table: its text, its metric, and the columns of `Of` that select its subject."""

    text: str
    name: str
    of: dict[str, str] = field(default_factory=dict)


def lines(study: Study) -> list[Line]:
    """Returns the rows that have a value, at most MOST: interruptions, messages and transfers, then links,
    wire rate and load, then other figures of captures if rows are left.

    If there are too many, the first group is cut, but not below MOST_ASKED rows. Losses and broken
    guarantees beyond the cut stay, in place of the last rows of links and load.
    """
    table = study.compared
    ticked = any(cell.run.ticked for cell in study.cells)
    asked = [*_interruptions(table), *_messages(table), *_programs(table), *_transfers(table)]
    asked = _known(table, asked)
    rest = _known(table, [*_links(table), *_captured(table, WIRE), *_load(table, ticked)])
    if len(asked) + len(rest) > MOST:
        most = max(MOST_ASKED, MOST - len(rest))
        asked = asked[:most] + [line for line in asked[most:] if _speaks_against(table, line)]
    shown = [*asked, *rest]
    more = _known(table, _captured(table, CAPTURED)) if len(shown) < MOST else []
    return [*shown, *more][:MOST]


def _known(table: pl.DataFrame, found: Iterator[Line] | list[Line]) -> list[Line]:
    """Returns the lines whose metric and subject are in the table."""
    return [line for line in found if not _rows(table, line.name, line.of).is_empty()]


def _rows(table: pl.DataFrame, name: str, of: dict[str, str]) -> pl.DataFrame:
    same = [pl.col(key) == value for key, value in of.items()]
    return table.filter(pl.all_horizontal(pl.col("name") == name, *same))


def _speaks_against(table: pl.DataFrame, line: Line) -> bool:
    """Returns True for a row with losses or faults, or with a broken delivery guarantee."""
    if line.name in GUARANTEE:
        return bool(_rows(table, line.name, line.of).filter(pl.col("value") < 1).height)
    return line.name in (*LOST, *FAULTS) and _largest(table, line.name, line.of) > 0


def _largest(table: pl.DataFrame, name: str, of: dict[str, str]) -> float:
    """Returns the largest value of a metric in any condition; 0 if no condition has it."""
    found: Any = _rows(table, name, of).get_column("value").max()
    return float(found or 0.0)


def _messages(table: pl.DataFrame) -> Iterator[Line]:
    """Yields times, counts and faults of the MOST_CLASSES worst classes; for each guarantee by itself if a
    class has several.
    """
    keys = ["traffic_class"]
    counted = table.filter(pl.col("name") == "messages_scheduled")
    if counted.select("scenario", "series", "traffic_class").is_duplicated().any():
        keys.append("guarantee")
    every = [row_of(row) for row in _most(table, "messages_scheduled", keys, counted.height or 1)]
    chosen = sorted(every, key=lambda of: _worst_first(table, _some(of)))[:MOST_CLASSES]
    for of in map(_some, chosen):
        yield from _of_class(table, of, ", ".join(of.values()) + ": " if len(chosen) > 1 else "")


def _some(of: dict[str, str]) -> dict[str, str]:
    """Returns the subject without the columns that are None."""
    return {key: value for key, value in of.items() if value is not None}


def _worst_first(table: pl.DataFrame, of: dict[str, str]) -> tuple[float, ...]:
    """Returns the sort key of a class: broken guarantees first, then large shares of lost messages, then of
    late ones, then large latencies (p99).
    """
    held = _rows(table, "guarantee_held", of).get_column("value")
    broken = 0.0 if held.is_empty() else 1.0 - float(held.min() or 0.0)  # type: ignore[arg-type]  # floats
    expected = max(1.0, _largest(table, "messages_expected", of))
    shares = [_largest(table, name, of) / expected for name in ("messages_lost", "messages_late")]
    slowest = max(_largest(table, name, of) for name in ("round_trip_p99", "latency_p99"))
    return (-broken, *(-share for share in shares), -slowest)


def _of_class(table: pl.DataFrame, of: dict[str, str], before: str) -> Iterator[Line]:
    """Yields all rows of the only class (`before` is empty), or for one class of several its times, losses
    and faults, and its guarantee if that is broken. Faults that are zero are left out.
    """
    rows = TIMES | COUNTS | FAULTS | GUARANTEE
    if before:
        kind = "round_trip" if not _rows(table, "round_trip_p50", of).is_empty() else "latency"
        times = {name: text for name, text in TIMES.items() if name.startswith(kind)}
        rows = times | {"messages_lost": COUNTS["messages_lost"]} | FAULTS
        if _rows(table, "guarantee_held", of).filter(pl.col("value") < 1).height:
            rows |= GUARANTEE
    for name, text in rows.items():
        if name not in FAULTS or _largest(table, name, of) > 0:
            yield Line(before + text, name, of)


def _interruptions(table: pl.DataFrame) -> Iterator[Line]:
    """Yields recovery time and losses of the MOST_EVENTS events with the longest recovery times, and of the
    event that cost most messages. Losses that are zero are left out.
    """
    keys = ["event", "traffic_class"]
    longest = [row_of(row) for row in _most(table, "interruption_until", keys, MOST_EVENTS)]
    dearest = _most(table.filter(pl.col("value") > 0), "interruption_lost", keys, 1)
    for of in longest + [row_of(row) for row in dearest if row_of(row) not in longest]:
        place = f"{of['event']}, {of['traffic_class']}"
        yield Line(f"{place}: recovery time, s", "interruption_until", of)
        for name, text in (
            ("interruption_lost", "messages lost"),
            ("interruption_unanswered", "requests unanswered"),
        ):
            if _largest(table, name, of) > 0:
                yield Line(f"{place}: {text}", name, of)


def _programs(table: pl.DataFrame) -> Iterator[Line]:
    """Yields the programs' own figures: of the MOST_PROGRAMS with the largest p99, else with the largest of
    the first metric that any program has.
    """
    for name in PROGRAMS:
        chosen = _most(table, name, ["program"], MOST_PROGRAMS)
        for row in chosen:
            for shown, text in PROGRAMS.items():
                yield Line(f"{row['program']}: {text}", shown, row_of(row))
        if chosen:
            return


def _transfers(table: pl.DataFrame) -> Iterator[Line]:
    """Yields the rates of all transfers, or of the MOST_FLOWS fastest of more than FEW_FLOWS; the fairness of
    all transfers; and the classes with the largest shares of them.
    """
    rates = _most(table, "transfer_rate", ["flow"], table.height or 1)
    shown = rates if len(rates) <= FEW_FLOWS else rates[:MOST_FLOWS]
    among = f"the {MOST_TRANSFERS} largest" if len(rates) >= MOST_TRANSFERS else f"{len(rates)}"
    note = "" if shown is rates else f" ({len(shown)} fastest of {among})"
    for row in shown:
        yield Line(f"{row['flow']}: rate, Mbit/s{note}", "transfer_rate", {"flow": row["flow"]})
    yield Line("fairness of the transfers (Jain), 1 is even", "fairness")
    for row in _most(table, "share", ["traffic_class"], MOST_CLASSES):
        yield Line(f"{row['traffic_class']}: share of all transfers, %", "share", row_of(row))


def _links(table: pl.DataFrame) -> Iterator[Line]:
    """Yields the direction that dropped the largest share above zero, and the busiest direction with a
    requested rate.
    """
    keys = ["link", "direction"]
    lossy = table.filter((pl.col("name") == "link_dropped_share") & (pl.col("value") > 0))
    for row in _most(lossy, "link_dropped_share", keys, MOST_LINKS):
        place = f"{row['link']} {row['direction']}"
        yield Line(f"{place}: dropped, % of packets", "link_dropped_share", row_of(row))
    for row in _most(table, "link_utilisation", keys, MOST_LINKS):
        place = f"{row['link']} {row['direction']}"
        yield Line(f"{place}: utilisation, %", "link_utilisation", row_of(row))


def _load(table: pl.DataFrame, ticked: bool) -> Iterator[Line]:
    """Yields the CPU of up to MOST_GROUPS groups that used any, sorted by role and then by use, with the
    machines after the first one; then the traffic of the first broker or server, or else of the first group.

    With `ticked`, the CPU rows are marked as rough.
    """
    known = table.filter((pl.col("name") == "cpu") & pl.col("group").is_not_null() & (pl.col("value") > 0))
    rank = {role: place for place, role in enumerate(ORDER)}
    rows = known.group_by("group", maintain_order=True).agg(pl.col("role").first(), pl.col("value").max())
    chosen = sorted(rows.to_dicts(), key=lambda r: (rank.get(r["role"], len(rank)), -r["value"]))
    note = f" ({TICKS})" if ticked else ""
    cpu = [
        Line(f"{_node(table, row['group'])} CPU, % of a core{note}", "cpu", {"group": row["group"]})
        for row in chosen[:MOST_GROUPS]
    ]
    yield from cpu[:1]
    yield from _machines(table)
    yield from cpu[1:]
    for row in [row for row in chosen if row["role"] in SERVES][:1] or chosen[:1]:
        of = {"group": row["group"]}
        yield Line(f"{_node(table, row['group'])} receives, kB/s", "received", of)
        yield Line(f"{_node(table, row['group'])} sends, kB/s", "sent", of)


def _node(table: pl.DataFrame, group: str) -> str:
    """Returns a group's name, with "mean" before it if the group has several nodes."""
    return f"mean {group}" if _largest(table, "nodes", {"group": group}) > 1 else group


def _machines(table: pl.DataFrame) -> Iterator[Line]:
    """Yields the machine outside the lab kernel, or else that of the lab; for a multi-host lab, its
    MOST_HOSTS busiest hosts.
    """
    machines = set(table.filter(pl.col("name") == "host_busy").get_column("machine").to_list())
    where = "outer" if "outer" in machines else "lab"
    if not machines or where in machines:
        yield Line("machine busy, %", "host_busy", {"machine": where})
        return
    for row in _most(table, "host_busy", ["machine"], MOST_HOSTS):
        yield Line(f"host {row['machine']} busy, %", "host_busy", row_of(row))


def _captured(table: pl.DataFrame, texts: dict[str, str]) -> Iterator[Line]:
    """Yields the figures in `texts` of the capture point with most packets."""
    for row in _most(table, "packets", ["capture"], 1):
        for name, text in texts.items():
            yield Line(text, name, {"capture": row["capture"]})


def row_of(row: dict[str, str]) -> dict[str, str]:
    """Returns the subject in a row of `_most`, without the value."""
    return {key: text for key, text in row.items() if key != "value"}


def _most(table: pl.DataFrame, name: str, keys: list[str], most: int) -> list[dict[str, str]]:
    """Returns up to `most` subjects (the columns `keys`) with the largest values of a metric in any
    condition, and those values.
    """
    known = (
        table.filter(pl.col("name") == name).group_by(keys, maintain_order=True).agg(pl.col("value").max())
    )
    return (
        known.sort("value", *keys, descending=[True, *[False] * len(keys)], nulls_last=True)
        .head(most)
        .to_dicts()
    )
