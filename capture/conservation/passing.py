"""Compares the times at which captures saw messages with the times at which these were due and received."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from capture.conservation.check import Compared, Found, Rule
from capture.conservation.delays import NEAR_NS, doubtful
from capture.conservation.evidence import Evidence
from capture.conservation.ways import LeastDelays, brokers, ends, homes, least_delays, ways
from contract.plan import WAYS, Capture, Plan

CAPTURE_TIMES = Rule(
    "capture-times", "times from a message's due time to its capture, and from there to its receipt",
    "the delays of the links in between",
    "times of the captured packets are wrong, so are figures made of them: repeat the run", "at least",
)  # fmt: skip
CLOCK_NS = 10_000_000  # the highest error of the captures' clock in real time, also between hosts
OUTLIERS = 100  # one in this many messages is ignored, since TCP may retransmit it after its receipt
Least = dict[str, int]  # place -> least delay (ns) from or to another place


def packets_pass_in_time(e: Evidence) -> Found:
    """Checks that no capture sees a message sooner after its due time than the least delay from its sender,
    and that no receiver gets the message sooner after the capture than the least delay between both.

    The shortest 1 % of the times of each flow are ignored. The tolerance is 10 ms, in virtual time 0.1 ms.
    """
    if why := e.unsuitable or doubtful(e) or _repeated(e.plan):
        return Found(left_out=[why])
    if e.messages is None:
        return Found(left_out=["no messages"])
    known, compared, left_out = _Places(e), list[Compared](), list[str]()
    for capture in e.plan.captures:
        seen = e.seen.get(capture.name)
        passes = known.passes(capture)
        if isinstance(passes, str):
            left_out.append(passes)
        elif seen is None or (rows := _joined(e.messages, seen)).is_empty():
            left_out.append("a capture has no message that can be read")
        else:
            compared += _compared(e, capture.name, rows, known, passes)
    return Found(compared, left_out)


def _repeated(plan: Plan) -> str:
    if any(one.duplicate for _, _, one in plan.impairments()):
        return "a link duplicates frames: the later one may be captured first"
    return ""


def _joined(messages: pl.DataFrame, seen: pl.DataFrame) -> pl.DataFrame:
    """Returns one row for each captured message with all its receivers and the time of its capture; `last_ns`
    is the time when the last receiver got it, null if a receiver never got it.
    """
    received = pl.col("received_ns")
    every = messages.group_by("flow", "seq", "scheduled_ns").agg(
        pl.col("name", "sender", "pattern").first(),
        pl.col("receiver").drop_nulls().unique().sort(),
        last_ns=pl.when(received.null_count() == 0).then(received.max()),
    )
    keys = ["flow", "seq", "scheduled_ns"]
    return every.with_columns(pl.col("flow").cast(pl.UInt32), pl.col("seq").cast(pl.Int64)).join(
        seen, on=keys, how="inner"
    )


def _compared(
    e: Evidence, capture: str, rows: pl.DataFrame, known: _Places, passes: list[_Pass]
) -> Iterator[Compared]:
    tolerance = NEAR_NS if e.virtual else CLOCK_NS
    after = rows.drop_nulls("last_ns").with_columns(ns=pl.col("last_ns") - pl.col("seen_ns"))
    before = rows.with_columns(ns=pl.col("seen_ns") - pl.col("scheduled_ns"))
    for name, sender, ns in _least(before, "sender"):
        if (bound := known.before(sender, passes)) is not None:
            yield Compared(f"{capture}, {name} until its capture", ns, bound, "ns", tolerance)
    onward = after.with_columns(of=pl.struct("sender", "receiver", "pattern"))
    for name, of, ns in _least(onward, "of"):
        heads_on = known.heads_on(of["sender"], of["receiver"], of["pattern"], passes)
        if (bound := known.after(of["receiver"], passes) if heads_on else None) is not None:
            yield Compared(f"{capture}, {name} after its capture", ns, bound, "ns", tolerance)


def _least(rows: pl.DataFrame, end: str) -> Iterator[tuple[str, Any, int]]:
    """Yields, for each flow name and each value of column `end`, the shortest `ns` after the shortest 1 % are
    removed.
    """
    of = rows.group_by("name", end).agg(pl.col("ns").sort())
    for name, who, times in of.sort("name").iter_rows():
        yield name, who, times[len(times) // OUTLIERS]


# One path past a capture point: the place before it, the delay to the capture point, the place after it.
_Pass = tuple[str, int, str]


class _Places:
    """Computes the least delays (ns) from senders to capture points and from there to receivers, over the
    links of the plan.
    """

    def __init__(self, e: Evidence) -> None:
        self._plan = e.plan
        self._ways = LeastDelays(ways(e))
        self._homes, self._brokers = homes(e.plan), brokers(e.plan)
        self._delays = least_delays(e)

    def passes(self, capture: Capture) -> list[_Pass] | str:
        """Returns the paths past a capture point (the place before it, the delay until there in ns, the place
        behind it), or the reason why they are unknown.

        An interface shows outgoing frames after its own queue, and incoming frames after the far end's queue.
        So at both ends of a link, the capture records each direction after the link's delay.
        """
        place = capture.netns, capture.device
        for link in self._plan.links:
            both = (link.forward, link.reverse)
            at = {(way.netns, way.device) for way in both} | {(way.far_netns, way.far_device) for way in both}
            if place not in at and capture.at != f"link {link.name}":
                continue
            if place not in at or any(way.shared or way.enter for way in both):
                return "the ends of a captured link share one transmitter, or are inside a virtual machine"
            a, b = ends(link)
            there, back = (self._delays[link.name, way] for way in WAYS)
            return [(a, there, b), (b, back, a)]
        return [(capture.at, 0, capture.at)]

    def before(self, sender: str, passes: list[_Pass]) -> int | None:
        """Returns the least delay (ns) from a sender to the capture point; None if no path leads there."""
        home = self._homes.get(sender)
        found = [self._between(home, near) for near, _, _ in passes]
        sums = [ns + delay for ns, (_, delay, _) in zip(found, passes, strict=True) if ns is not None]
        return min(sums, default=None)

    def heads_on(self, sender: str, receivers: list[str], pattern: str, passes: list[_Pass]) -> bool:
        """Returns True if the capture point is on a shortest path of the message to at least one receiver. A
        capture point elsewhere may record only copies of the message that go to other places.

        Bridges flood frames whose destination they do not know, and brokers also publish to programs that
        record nothing. A published message (`pattern`) therefore counts only on the path to its sender's
        broker, if the capture point is at one end of that path, or on a link with a delay.
        """
        home = self._homes.get(sender)
        aims = [self._homes.get(one) for one in receivers]
        if pattern == "publish":
            aims = [self._brokers.get(sender)]
            at_an_end = {near for near, _, _ in passes} & {home, *aims}
            if not at_an_end and not all(delay for _, delay, _ in passes):
                return False
        whole = [self._between(home, aim) for aim in aims]
        return any(
            ns is not None and ns == self._past(home, aim, passes)
            for ns, aim in zip(whole, aims, strict=True)
        )

    def _past(self, home: str | None, aim: str | None, passes: list[_Pass]) -> int | None:
        """Returns the least delay (ns) from one place to another past the capture point; None if there is no
        such path.
        """
        found = [(self._between(home, near), delay, self._between(far, aim)) for near, delay, far in passes]
        return min((a + delay + b for a, delay, b in found if a is not None and b is not None), default=None)

    def after(self, receivers: list[str], passes: list[_Pass]) -> int | None:
        """Returns the least delay (ns) from the capture point to the nearest of the receivers; None if none
        is reachable.
        """
        found = [self._between(far, self._homes.get(one)) for one in receivers for _, _, far in passes]
        return min((ns for ns in found if ns is not None), default=None)

    def _between(self, start: str | None, end: str | None) -> int | None:
        return None if start is None or end is None else self._ways.between(start, end)
