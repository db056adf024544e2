"""Compares the figures of summary.json with counts computed from the tables in another way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from capture.conservation.check import WRONG, Compared, Found, Rule
from capture.conservation.evidence import Evidence

SUMMARY_COUNTS = Rule(
    "summary-counts", "counts of summary.json", "those of the tables",
    "`vnet report` makes summary.json again; if they still differ, report it as an error of vNET",
)  # fmt: skip
SUMMARY_GOODPUT = Rule(
    "summary-goodput", "the goodput of transfers", "the payload that receivers read", WRONG, singular=True
)
LINK_GOODPUT = Rule(
    "link-goodput",
    "the goodput of links",
    "the traffic that the links carried",
    WRONG,
    "at most",
    singular=True,
)
Row = dict[str, Any]
BYTES_OF_A_MEGABIT = 1e6 / 8
LINK_FIGURES = ("link_goodput", "link_carried", "link_peak")
ROUNDING = 1e-6  # relative error of a figure that was computed in floating point
SENT = pl.col("sent_ns").fill_null(0) > 0
HERE = pl.col("received_ns").is_not_null() | pl.col("replied_ns").is_not_null()


def counts_are_rows(e: Evidence, summary: Iterable[Row]) -> Found:
    """Compares the counts of messages by traffic class and of packets and bytes by capture in summary.json
    with the rows of the tables.
    """
    rows = list(summary)
    compared = [*_messages(e, rows), *_packets(e, rows)]
    return Found(compared, [] if compared else ["summary.json has no counts"])


def _messages(e: Evidence, rows: list[Row]) -> Iterator[Compared]:
    """Compares the counts of scheduled, sent, expected and received messages of each traffic class with the
    table, and checks scheduled = sent + unsent and expected = received + lost. Compares nothing without
    the table.
    """
    said = _by(rows, "traffic_class", "messages_")
    if e.messages is None:
        return
    for name, table in e.messages.partition_by("class", as_dict=True).items():
        known = said.get(str(name[0]), {})
        once = table.unique(["flow", "seq", "guarantee"])
        expected = table.filter(pl.col("receiver").is_not_null() & (SENT | HERE))
        counted = {
            "messages_scheduled": once.height, "messages_sent": once.filter(SENT).height,
            "messages_expected": expected.height, "messages_received": expected.filter(HERE).height,
        }  # fmt: skip
        for figure, number in counted.items():
            yield Compared(f"{name[0]}, {figure}", round(known.get(figure, 0)), number, "messages")
        for whole, *parts in (("scheduled", "sent", "unsent"), ("expected", "received", "lost")):
            of_parts = round(sum(known.get(f"messages_{part}", 0) for part in parts))
            label = f"{name[0]}, {' + '.join(parts)}"
            yield Compared(label, of_parts, counted[f"messages_{whole}"], "messages")


def _packets(e: Evidence, rows: list[Row]) -> Iterator[Compared]:
    """Compares the number and bytes of each capture's packets in the hold, or in the whole capture if the run
    records no hold. Captures without a table or without this figure are left out.
    """
    hold = e.manifest.phases.get("hold")
    for point, known in _by(rows, "capture", "").items():
        packets = e.packets(point)
        if packets is None or "packets" not in known:
            continue
        if hold and hold[1] > hold[0]:
            packets = packets.filter((pl.col("t_ns") >= hold[0]) & (pl.col("t_ns") < hold[1]))
        number, size = packets.select(pl.len(), pl.col("wire_bytes").cast(pl.Int64).sum()).collect().row(0)
        yield Compared(f"{point}, packets", round(known["packets"]), number, "packets")
        yield Compared(f"{point}, wire_bytes", round(known["wire_bytes"]), int(size or 0), "bytes")


def goodput_is_payload(e: Evidence, summary: Iterable[Row]) -> Found:
    """Checks that the mean rate of each bulk transfer, times its duration, equals the bytes between its first
    and last sample, and that its total equals the last count of bytes.

    Leaves out transfers with several counting ends, with fewer than two samples, without a rate, or with a
    count that decreased.
    """
    said = _by(summary, "flow", "transfer_")
    compared = []
    for name, known in said.items():
        rows = _arrived(e, name)
        if rows is None or "transfer_rate" not in known:
            continue
        seconds = (rows["t_ns"][-1] - rows["t_ns"][0]) / 1e9
        grown = rows["bytes"].diff().drop_nulls()
        if grown.is_empty() or int(grown.min()) < 0:  # type: ignore[arg-type]
            continue
        carried = round(known["transfer_rate"] * seconds * BYTES_OF_A_MEGABIT)
        compared.append(
            Compared(f"{name}, rate", carried, int(grown.sum()), "bytes", round(carried * ROUNDING) + 1)
        )
        total = round(known.get("transfer_bytes", 0) * 1e6)
        compared.append(Compared(f"{name}, bytes", total, int(rows["bytes"].max()), "bytes"))  # type: ignore[arg-type]
    return Found(compared, [] if compared else ["no bulk transfer has a rate"])


def payload_is_carried(e: Evidence, summary: Iterable[Row]) -> Found:
    """Checks that the goodput of each link direction is at most its mean rate. Directions that lack goodput,
    mean rate or peak rate are left out.

    The tolerance covers the two samples that the hold's begin and end cut: twice the peak rate divided by the
    number of samples or, if that is more, the rate that the link carried in these two samples.
    """
    links: dict[tuple[str, str], dict[str, Row]] = {}
    for row in summary:
        if row["name"] in LINK_FIGURES:
            links.setdefault((str(row["link"]), str(row["direction"])), {})[row["name"]] = row
    compared = []
    for (link, direction), rows in links.items():
        if len(rows) == len(LINK_FIGURES):
            goodput, carried, peak = (rows[name]["value"] * 1e6 for name in LINK_FIGURES)
            usual = 2 * peak / max(1, rows["link_carried"]["n"])
            tolerance = round(max(usual, _cut_bps(e, link, direction)))
            name = f"{link} {direction}"
            compared.append(Compared(name, round(goodput), round(carried), "bit/s", tolerance))
    return Found(compared, [] if compared else ["no capture saw a link's payload"])


def _cut_bps(e: Evidence, link: str, direction: str) -> float:
    """Returns the bit/s over the hold that a link's direction carried in the samples that the hold's begin
    and end cut; 0 without a hold or without samples on both sides of it.
    """
    begin, end = e.manifest.phases.get("hold", (0, 0))
    if e.links is None or end <= begin:
        return 0.0
    rows = e.links.filter(link=link, direction=direction).sort("t_ns").select("t_ns", "bytes")
    inner = rows.filter(pl.col("t_ns").is_between(begin, end))["bytes"]
    outer = [rows.filter(pl.col("t_ns") <= begin)["bytes"], rows.filter(pl.col("t_ns") >= end)["bytes"]]
    if inner.is_empty() or any(side.is_empty() for side in outer):
        return 0.0
    cut = (outer[1][0] - outer[0][-1]) - (inner[-1] - inner[0])
    return 8e9 * float(cut) / (end - begin)


def _by(rows: Iterable[Row], key: str, begins: str) -> dict[str, dict[str, float]]:
    """Sums the values of rows whose name begins with `begins`, by the value of column `key` and
    then by name.
    """
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.get(key) is not None and row["name"].startswith(begins):
            of = found.setdefault(str(row[key]), {})
            of[row["name"]] = of.get(row["name"], 0.0) + float(row["value"])
    return found


def _arrived(e: Evidence, name: str) -> pl.DataFrame | None:
    """Returns the samples of a flow's only receiver, or of its sender if no receiver counted. None without
    transfers, with fewer than two samples, and if several ends counted.
    """
    if e.transfers is None:
        return None
    rows = e.transfers.filter(name=name)
    there = rows.filter(pl.col("leg") == 1)
    rows = (there if there.height else rows).sort("t_ns")
    return rows if rows.height > 1 and rows["endpoint"].n_unique() == 1 else None
