"""Compares the latency of messages with the least delay of the links between sender and receiver."""

from __future__ import annotations

import itertools

import polars as pl

from capture.conservation.check import Compared, Found, Rule
from capture.conservation.evidence import Evidence
from capture.conservation.ways import LeastDelays, brokers, homes, ways

MESSAGE_DELAY = Rule(
    "message-delay", "latencies of messages", "the delays of the links on their shortest path",
    "times of this run's records are wrong, or a link delivered frames early: repeat the run",
    "at least",
)  # fmt: skip
NEAR_NS = (
    100_000  # ns by which each link's kernel timer may fire early (kernel/time/hrtimer.c: timer slack 50 us)
)


def none_is_too_soon(e: Evidence) -> Found:
    """Checks that each flow's shortest latency per receiver, and its shortest round trip, are at least the
    sum of the least delays of the links on the shortest path, less 0.1 ms.

    Pairs of ends without such a delay are left out. A published message takes the path through the brokers
    of its sender and its receiver, if both are in the lab.
    """
    if why := e.unsuitable or doubtful(e):
        return Found(left_out=[why])
    if e.messages is None:
        return Found(left_out=["no records of messages"])
    delays, home_of = LeastDelays(ways(e)), homes(e.plan)
    broker_of = brokers(e.plan)
    flows = e.messages.drop_nulls("receiver").group_by("name", "sender", "receiver", "pattern")
    least = flows.agg(pl.col("latency_ns").min(), pl.col("round_trip_ns").min()).sort("name", "receiver")
    compared = []
    for name, sender, receiver, pattern, there, both in least.iter_rows():
        stops = [home_of.get(sender), home_of.get(receiver)]
        if pattern == "publish" and (via := [broker_of.get(sender), broker_of.get(receiver)]) and all(via):
            stops[1:1] = via
        if None in stops:
            continue
        places = [str(stop) for stop in stops]
        out, back = _along(delays, places), _along(delays, places[::-1])
        if there is not None and out:
            compared.append(Compared(f"{name} to {receiver}", there, out, "ns", NEAR_NS))
        if both is not None and out and back:
            compared.append(Compared(f"{name}, reply of {receiver}", both, out + back, "ns", NEAR_NS))
    return Found(compared, [] if compared else ["no message has to cross a link with a delay"])


def doubtful(e: Evidence) -> str:
    """Returns the reason why a latency may be below the delay of the links: VM nodes, NICs of the machine,
    nodes or links that were added during the run, or bit errors; "" without these.
    """
    nodes = e.plan.nodes
    if any(node.kind != "light" for node in nodes):
        return "the clocks of virtual machines are their own"
    if any(i.nic for node in nodes for i in node.interfaces):
        return "a NIC of the machine leads over a cable to an unknown end"
    if e.events is not None and e.events.filter(action="add").height:
        return "nodes and links were added while the lab ran"
    if any(one.corrupt for _, _, one in e.plan.impairments()):
        return "a link flips bits: a message's number becomes another's"
    return ""


def _along(delays: LeastDelays, places: list[str]) -> int | None:
    """Returns the sum of the least delays (ns) from each place to the next; None if there is no way."""
    parts = [delays.between(a, b) for a, b in itertools.pairwise(places)]
    return None if None in parts else sum(part for part in parts if part is not None)
