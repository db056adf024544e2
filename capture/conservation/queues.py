"""Checks that the backlog of a link is within its queue's limit, and above zero while the full queue drops
packets.
"""

from __future__ import annotations

import polars as pl

from capture.conservation.check import WRONG, Compared, Found, Rule
from capture.conservation.counters import link_steps
from capture.conservation.evidence import Evidence
from contract.plan import WAYS, Impairment, Plan

LINK_BACKLOG = Rule(
    "link-backlog", "packets that wait in a link", "the packets in its queues", WRONG, "at most"
)
LINK_FULL = Rule(
    "link-full", "samples of a full link in which nothing waits", "half of them", WRONG, "at most"
)
# share of the rate from which a sample counts as full; the queue is then empty for at most 0.5 % of it
FULL = 0.995
FEWEST = 5  # least number of full samples of a direction


def backlog_fits(e: Evidence) -> Found:
    """Checks that the backlog of each link direction is at most the capacity of netem and the queue behind
    it, with the largest limit that the plan requests. Directions without a known limit are left out.
    """
    if e.unsuitable or e.links is None:
        return Found(left_out=[e.unsuitable or "no counters of links"])
    compared = []
    most = dict(_limits(e.plan))
    rows = (
        e.links.group_by("link", "direction").agg(pl.col("backlog_packets").max()).sort("link", "direction")
    )
    for link, direction, waiting in rows.iter_rows():
        if limit := most.get((link, direction)):
            compared.append(Compared(f"{link} {direction}", waiting, limit, "packets"))
    return Found(compared, [] if compared else ["no link has a queue whose size is known"])


def full_links_hold(e: Evidence) -> Found:
    """Checks that a link direction has a backlog in at least half of the samples in which it carries its full
    rate and drops packets, if there are at least five such samples.

    Left out are directions without a rate or with requested loss, links with a trace, half-duplex links,
    and links that the timeline changes.
    """
    if e.unsuitable:
        return Found(left_out=[e.unsuitable])
    steps = link_steps(e)
    if steps is None:
        return Found(left_out=["no counters of links"])
    rates = {(name, way): one.rate_bps for name, way, one in asked(e.plan) if one.rate_bps and not one.loss}
    changed = {t for event in e.plan.events if event.action == "impair" for t in event.targets}
    compared = []
    for (link, direction), rows in steps.partition_by("link", "direction", as_dict=True).items():
        rate = rates.get((str(link), str(direction)))
        if rate is None or link in changed:
            continue
        seconds = (pl.col("t_ns") - pl.col("begin_ns")) / 1e9
        full = rows.filter((pl.col("bytes") * 8 >= FULL * rate * seconds) & (pl.col("dropped") > 0))
        if full.height >= FEWEST:
            empty = full.filter(pl.col("backlog_packets") == 0).height
            compared.append(Compared(f"{link} {direction}", empty, full.height // 2, "samples"))
    return Found(compared, absent="no queue was full")


def asked(plan: Plan) -> list[tuple[str, str, Impairment]]:
    return [
        (link.name, way, link.way(way).impairment)
        for link in plan.links for way in WAYS
        if not link.way(way).shared and link.way(way).trace is None
        and not link.way(way).impairment.gemodel
    ]  # fmt: skip


def _limits(plan: Plan) -> dict[tuple[str, str], int]:
    """Returns for each link direction the most packets that netem and the queue behind it hold: twice the
    largest limit of the plan and its events, plus 2.

    Left out are directions that share a transmitter, follow a trace or have bursty loss (gemodel), and
    directions that at any time have a queue kind or no limit.
    """
    found: dict[tuple[str, str], int] = {}
    wishes = asked(plan)
    for event in plan.events:
        wishes += event.impairments()
    unknown = {(name, way) for name, way, wanted in wishes if wanted.queue or not wanted.limit_packets}
    known = {(name, way) for name, way, _ in asked(plan)}
    for name, way, wanted in wishes:
        if (name, way) in known - unknown:
            found[name, way] = max(found.get((name, way), 0), 2 * (wanted.limit_packets or 0) + 2)
    return found
