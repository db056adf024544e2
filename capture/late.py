"""Finds stalled senders: messages that left long after they were due without a recorded reason.

Latency counts from the time when a message was due, so a stalled sender causes large latencies that no
network causes. Some senders are late for a known reason, which is no finding: the connection was down, the
window was full, the path was slower than the load, an event had just happened, or the node's CPU is limited.
In virtual time the modelled core is a reason, too, if many nodes used it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Any

import polars as pl

from contract.plan import WAYS, Plan

LATE_NS = 50_000_000  # least delay of a gap; timers and time slices of other programs cause less
GAP_NS = 200_000_000  # one gap of this length is a finding in any run
# gaps over more than this share of the scenario are a finding, because they then affect the 99th percentile
SHARE = 0.01
SHARE_NS = 100_000_000  # a smaller sum of gaps is no finding, even in a short run
EVENT_NS = 1_000_000_000  # time after an event in which nodes and connections recover
DEMAND = 0.5  # share of the slowest link's rate; a sender with less does not wait for the path
FLOOD_BYTES = 64 * 1024  # bytes sent in the second before the gap; fewer fit into any socket's buffer
FULL = 0.9  # share of a gap that the modelled core must have worked to be the gap's cause
TURN_NS = 10_000_000  # more than a fair scheduler lets one node run while others wait (some ticks of 1 ms)
FAIR = 0.5  # see _fair
MOST = 200  # largest number of gaps that are examined, the longest first


@dataclass(frozen=True, slots=True)
class Gap:
    """A time in which a sender sent nothing: from the due time of a message until the message left."""

    sender: str
    due_ns: int
    sent_ns: int

    @property
    def length_ns(self) -> int:
        return self.sent_ns - self.due_ns


def gaps(
    messages: pl.DataFrame, plan: Plan, sessions: pl.DataFrame | None, events: pl.DataFrame | None
) -> list[Gap]:
    """Returns the gaps of 50 ms and more of agent roles, the longest first, except those that a full window,
    a full path, a lost connection or an event explains. Considers only the 200 longest gaps, and no nodes
    with a CPU limit.
    """
    senders = _senders(plan)
    slowest = _slowest_bps(plan)
    sent = (
        messages.filter(pl.col("sent_ns").is_not_null() & pl.col("sender").is_in(list(senders)))
        .unique(["flow", "seq"], keep="first")
        .sort("sender", "sent_ns", "scheduled_ns")
        .with_columns(late_ns=pl.col("sent_ns") - pl.col("scheduled_ns"))
        .with_columns(
            before_ns=pl.col("sent_ns").shift(1).over("sender"),
            late_before_ns=pl.col("late_ns").shift(1).over("sender"),
        )
    )
    silent = (pl.col("before_ns") <= pl.col("scheduled_ns")) & (pl.col("late_before_ns") < LATE_NS)
    found = sent.filter((pl.col("late_ns") >= LATE_NS) & silent).sort("late_ns", descending=True).head(MOST)
    return [
        gap
        for gap in (Gap(*row) for row in found.select("sender", "scheduled_ns", "sent_ns").iter_rows())
        if not _explained(gap, sent.filter(pl.col("sender") == gap.sender), senders[gap.sender], slowest)
        and not _away(gap, sessions)
        and not _told(gap, events)
    ]


def _senders(plan: Plan) -> dict[str, int]:
    """Returns the endpoints of agent roles on nodes without a CPU limit, each with the number of its
    messages that may be in flight at once: `inflight` of its `publish` settings, else 1.
    """
    return {
        session.endpoint: _window(software.spec)
        for node, software, session in plan.sessions()
        if software.process is None and node.cpu_limit_cores is None and node.cpu_limit_mhz is None
    }


def _window(spec: dict[str, Any]) -> int:
    sends = spec.get("publish") or {}
    return int(sends.get("inflight") or 1) if isinstance(sends, dict) else 1


def _slowest_bps(plan: Plan) -> float | None:
    """Returns the lowest rate (bit/s) of all links at the start; None if no link has a rate."""
    rates = [link.way(way).impairment.rate_bps for link in plan.links for way in WAYS]
    return min((float(rate) for rate in rates if rate), default=None)


def _explained(gap: Gap, own: pl.DataFrame, window: int, slowest: float | None) -> bool:
    """Returns True if at the due time the sender's window was full, or if in the second before it had sent
    64 KiB, or more than half of what the slowest link carries.
    """
    under_way = own.filter(
        (pl.col("sent_ns") <= gap.due_ns)
        & (pl.col("outcome") != "sent")
        & (pl.col("settled_ns").is_null() | (pl.col("settled_ns") > gap.due_ns))
    )
    second = own.filter(pl.col("sent_ns").is_between(gap.due_ns - EVENT_NS, gap.due_ns))
    handed = int(second["bytes"].sum())
    crowded = slowest is not None and handed * 8 > DEMAND * slowest
    return under_way.height >= window or crowded or handed >= FLOOD_BYTES


def _away(gap: Gap, sessions: pl.DataFrame | None) -> bool:
    """Returns True if the sender recorded a change of its session between the message's due time and its
    sending, or if its last record before that time was connecting, disconnected or failed.
    """
    if sessions is None:
        return False
    own = sessions.filter((pl.col("endpoint") == gap.sender) & (pl.col("t_ns") <= gap.sent_ns))
    last = own.filter(pl.col("t_ns") <= gap.due_ns)
    gone = last.height > 0 and last.sort("t_ns")["what"][-1] in ("connecting", "disconnected", "failed")
    return gone or own.height > last.height


def _told(gap: Gap, events: pl.DataFrame | None) -> bool:
    """Returns True if an event happened in the gap or in the second before the gap, at any node or link."""
    if events is None:
        return False
    near = pl.col("t_ns").is_between(gap.due_ns - EVENT_NS, gap.sent_ns)
    return events.filter(near).height > 0


def by_core(found: list[Gap], plan: Plan, nodes: pl.DataFrame | None) -> tuple[list[Gap], list[Gap]]:
    """Divides the gaps of a run in virtual time, in their order, into those that the modelled core does not
    explain and those that it does.

    nodes: nodes.parquet. The core explains a gap if the nodes used at least 90 % of the gap's length between
    the samples around it, and if a fair scheduler lets a node wait so long (`_fair`).
    """
    homes = {session.endpoint: node.name for node, _, session in plan.sessions()}
    times = [] if nodes is None else sorted(nodes["t_ns"].unique())
    known: dict[tuple[int, int], dict[str, int]] = {}
    free, waited = list[Gap](), list[Gap]()
    for gap in found:
        first, last = bisect_right(times, gap.due_ns) - 1, bisect_left(times, gap.sent_ns)
        if nodes is None or first < 0 or last == len(times):
            free.append(gap)
            continue
        between = (times[first], times[last])
        used = known[between] = known.get(between) or _used_ns(nodes, *between)
        explained = sum(used.values()) >= FULL * gap.length_ns and _fair(
            used, homes.get(gap.sender, ""), gap.length_ns, between[1] - between[0]
        )
        (waited if explained else free).append(gap)
    return free, waited


def _fair(used: dict[str, int], own: str, gap_ns: int, between_ns: int) -> bool:
    """Returns True if the sender's node `own` worked itself, at least half as much as each other node, or if
    it can have waited for all others in turn: at most 10 ms for each, and none of them had more than half of
    the gap.

    used: CPU time of each node, in ns, between the samples around the gap, which lie `between_ns` apart.
    """
    others = [ns for name, ns in used.items() if name != own and ns]
    most = max(others, default=0)
    in_gap_ns = most - (between_ns - gap_ns)  # at least
    in_turn = gap_ns <= len(others) * TURN_NS and in_gap_ns <= FAIR * gap_ns
    return used.get(own, 0) >= FAIR * most or in_turn


def _used_ns(nodes: pl.DataFrame, first_ns: int, last_ns: int) -> dict[str, int]:
    """Returns the CPU time of each node between two of its samples; 0 if its counter began again."""
    at = nodes.filter(pl.col("t_ns").is_in([first_ns, last_ns])).sort("t_ns")
    grown = at.group_by("node").agg(ns=pl.col("cpu_ns").last() - pl.col("cpu_ns").first())
    return {str(name): max(0, int(ns)) for name, ns in grown.iter_rows()}


def finding(found: list[Gap], length_ns: int) -> str | None:
    """Returns the text of the finding for the gaps `found` (the longest first) of a scenario of `length_ns`:
    which senders, and how late.

    None without gaps, or if none takes 200 ms and the time in which at least one sender stalled is less than
    100 ms or less than 1 % of the scenario.
    """
    total = _together_ns(found)
    if not found or (found[0].length_ns < GAP_NS and total < max(SHARE * length_ns, SHARE_NS)):
        return None
    senders = sorted({gap.sender for gap in found})
    named = ", ".join(senders[:3])
    who = f"sender {named}" if len(senders) == 1 else f"{len(senders)} senders ({named})"
    return f"messages of {who} left up to {found[0].length_ns / 1e6:.0f} ms after they were due"


def _together_ns(found: list[Gap]) -> int:
    """Returns the time that the gaps cover; a time in which several senders stalled counts once."""
    total, end = 0, 0
    for gap in sorted(found, key=lambda one: one.due_ns):
        total += max(0, gap.sent_ns - max(gap.due_ns, end))
        end = max(end, gap.sent_ns)
    return total
