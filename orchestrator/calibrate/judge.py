"""Judges from the messages of a ladder up to which load the machine was faithful."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from orchestrator.calibrate.ladder import SETTLE_S, Ladder

# ns; a message that leaves or arrives later than this shows a slow machine, not the network
LATE_NS = 1_000_000
SHARE = 0.01  # share of a step's messages above which the machine determines the 99th percentile
# Seconds at the beginning of a step that do not count, because messages of the previous step may still wait.
EDGE_S = 0.2
HEADERS_BITS = 8 * 42  # Ethernet, IPv4, UDP
TIMER_QUANTILE = 0.99


@dataclass(frozen=True, slots=True)
class Step:
    """One load of a ladder: the offered packets per second, the shares of messages that left late, arrived
    late and were lost, and the 99th percentile of the lateness of leaving messages.
    """

    per_s: float
    late_share: float
    slow_share: float
    lost_share: float
    timer_ns: int

    @property
    def in_time(self) -> bool:
        """True if the messages left in time."""
        return self.late_share <= SHARE

    @property
    def faithful(self) -> bool:
        """True if the messages left and arrived in time and none was lost."""
        return self.in_time and self.slow_share <= SHARE and self.lost_share == 0


def steps(ladder: Ladder, messages: pl.DataFrame, begin_ns: int) -> list[Step]:
    """Returns the steps of a ladder from its messages; begin_ns: the start of the scenario. Leaves out steps
    in which no message was due.
    """
    found = []
    for number, rate in enumerate(ladder.rates()):
        first = begin_ns + round((SETTLE_S + number * ladder.step_s + EDGE_S) * 1e9)
        last = begin_ns + round((SETTLE_S + (number + 1) * ladder.step_s) * 1e9)
        rows = messages.filter(pl.col("scheduled_ns").is_between(first, last, closed="left"))
        if rows.height:
            found.append(_step(rate, rows))
    return found


def _step(rate: float, rows: pl.DataFrame) -> Step:
    late = rows["sent_ns"] - rows["scheduled_ns"]
    timer = late.drop_nulls().quantile(TIMER_QUANTILE, "higher")
    # Messages that never left also count as late. For messages that arrived, the time counts from the moment
    # when they left.
    slow = (rows["received_ns"] - rows["sent_ns"] > LATE_NS).fill_null(False)
    return Step(
        rate,
        float((late > LATE_NS).fill_null(True).sum()) / rows.height,
        float(slow.sum()) / rows.height,
        rows["received_ns"].null_count() / rows.height,
        round(timer) if timer is not None else 0,
    )


def limit(found: Sequence[Step], *, sends_only: bool = False) -> float:
    """Returns the load of the last step before the first unfaithful one, in packets a second; 0 if the first
    step was unfaithful. sends_only: True judges only whether messages left in time.
    """
    best = 0.0
    for step in found:
        if not (step.in_time if sends_only else step.faithful):
            break
        best = step.per_s
    return best


def bits_per_s(ladder: Ladder, packets_per_s: float) -> float:
    """Returns the bit/s on the wire for a number of packets a second of a ladder."""
    return packets_per_s * (8 * ladder.payload_bytes + HEADERS_BITS)
