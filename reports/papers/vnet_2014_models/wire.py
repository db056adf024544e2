"""Computes the bytes that each side of the bridge sent, and loss and delay of the bridge, from the captures
at both sides.
"""

from __future__ import annotations

import polars as pl

from capture.hops import hops
from reports.metrics.metric import Metric, Of, count, metric
from reports.metrics.stats import percentile
from reports.rundir import Run

UTILITY, CONSUMERS = "at-utility", "at-consumers"  # capture points of topologies/papers/interaction-*.yaml
# first byte of the multicast group's address; a packet to the group is sent once for all receivers
ONCE = "239."


def wire_metrics(run: Run) -> list[Metric]:
    """Returns the data of each side, overhead, largest frame, repairs, missing answers, and loss and delay of
    the bridge, from the first scheduled message on; empty without messages or without both captures.
    """
    messages = run.table("messages")
    if messages is None or not {UTILITY, CONSUMERS} <= run.captures.keys():
        return []
    begin_ns = int(messages.select(pl.col("scheduled_ns").min()).item())
    utility = _address(run, str(messages["sender"][0]))
    there = pl.read_parquet(run.captures[UTILITY]).filter((pl.col("t_ns") >= begin_ns) & _from(utility))
    back = pl.read_parquet(run.captures[CONSUMERS]).filter((pl.col("t_ns") >= begin_ns) & ~_from(utility))
    return [
        *_data(there, back, messages),
        *_repairs(there, back),
        *_answers(messages),
        *_hops(run, begin_ns, utility),
    ]


def _address(run: Run, endpoint: str) -> str:
    """Returns the first address of the node that runs this endpoint; ValueError if no node does."""
    for node, _, session in run.plan.sessions():
        if session.endpoint == endpoint:
            return node.interfaces[0].address
    raise ValueError(f"{run.path}: no node of its plan has the endpoint {endpoint}")


def _from(address: str) -> pl.Expr:
    return (pl.col("src") == address).fill_null(False)


def _data(there: pl.DataFrame, back: pl.DataFrame, messages: pl.DataFrame) -> list[Metric]:
    """Returns the bytes on the wire of each side, the largest frame, and the overhead: all bytes except each
    payload's first sending.

    A payload that is multicast counts once for all receivers.
    """
    ours, theirs = int(there["wire_bytes"].sum()), int(back["wire_bytes"].sum())
    sent = messages.filter(pl.col("sent_ns").fill_null(0) > 0)
    once = bool(there["dst"].fill_null("").str.starts_with(ONCE).any())
    asked = sent.unique(["flow", "seq"]) if once else sent
    answered = messages.filter(pl.col("received_ns").is_not_null())
    # An answer is as long as its request.
    payload = int(asked["bytes"].sum()) + int(answered["bytes"].sum())
    overhead, packets = ours + theirs - payload, there.height + back.height
    largest = pl.concat([there, back]).select(pl.col("wire_bytes").max()).item() or 0
    of, how = Of(), "capture before the bridge, from the first update on"
    return [
        count("utility_data", of, ours / 1e6, "MB", there.height, how),
        count("consumer_data", of, theirs / 1e6, "MB", back.height, how),
        count("wire_overhead", of, overhead / 1e3, "kB", packets, "bytes on the wire less payload sent once"),
        count("overhead_share", of, 100 * overhead / max(1, ours + theirs), "% of bytes", packets, "of them"),
        count("largest_frame", of, largest, "B", packets, "largest"),
    ]


def _repairs(there: pl.DataFrame, back: pl.DataFrame) -> list[Metric]:
    """Returns the TCP retransmissions of each side, and PGM's repairs and repair requests if a side sent PGM
    packets.
    """
    found = [
        count(name, Of(), int(rows["retransmission"].fill_null(False).sum()), "packets", rows.height, "count")
        for name, rows in (("utility_retransmissions", there), ("consumer_retransmissions", back))
    ]
    for name, kind, rows in (("repairs", "RDATA", there), ("repair_requests", "NAK", back)):
        seen = rows.filter(pl.col("app") == "pgm")
        if not seen.is_empty():
            packets = seen.filter(pl.col("app_types").list.contains(kind)).height
            found.append(count(name, Of(), packets, "packets", seen.height, "count"))
    return found


def _answers(messages: pl.DataFrame) -> list[Metric]:
    """Returns the requests without an answer at the end of the run, their share (the paper's loss), and the
    share of updates that never arrived.
    """
    missing = messages.filter(pl.col("replied_ns").is_null()).height
    share = 100 * missing / messages.height
    never = 100 * messages.filter(pl.col("received_ns").is_null()).height / messages.height
    return [
        count("answers_missing", Of(), share, "% of answers", messages.height, "count"),
        count("answers_outstanding", Of(), missing, "answers", messages.height, "count"),
        count("updates_missing_share", Of(), never, "% of updates", messages.height, "count"),
    ]


def _hops(run: Run, begin_ns: int, utility: str) -> list[Metric]:
    """Returns loss and delay across the bridge in each direction from `begin_ns` on, from the same packets in
    both captures; empty if a pcap was not kept.
    """
    ours, theirs = (run.path / "pcap" / f"{point}.pcap" for point in (UTILITY, CONSUMERS))
    if not (ours.exists() and theirs.exists()):
        return []
    is_utility = pl.col("source") == utility
    found: list[Metric] = []
    for name, seen, sender in (
        ("hop_there", hops(ours, theirs), is_utility),
        ("hop_back", hops(theirs, ours), ~is_utility),
    ):
        ways = seen.filter((pl.col("t_ns") >= begin_ns) & sender)
        passed = ways["delay_ns"].drop_nulls().sort().cast(pl.Float64).to_numpy()
        lost = 100 * (ways.height - len(passed)) / max(1, ways.height)
        found.append(
            count(f"{name}_lost", Of(), lost, "% of packets", ways.height, "not seen on the other side")
        )
        if len(passed):
            for word, share in (("p50", 0.5), ("p99", 0.99)):
                found.append(metric(f"{name}_{word}", Of(), "ms", percentile(passed, share), 1e-6))
    return found
