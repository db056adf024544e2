"""Defines arrival and service curves of network calculus in closed form, in seconds and bits.

Section and theorem numbers refer to Le Boudec and Thiran, Network Calculus, Springer LNCS 2050 (version of
2022).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bucket:
    """A leaky-bucket arrival curve: at most `bits` + `bps` * t bits arrive in any time t (section 1.2.1)."""

    bits: float = 0.0
    bps: float = 0.0

    def __add__(self, other: Bucket) -> Bucket:
        """Returns the arrival curve of two flows together."""
        return Bucket(self.bits + other.bits, self.bps + other.bps)

    def spread(self, jitter_s: float) -> Bucket:
        """Returns the arrival curve after a system whose delays differ by at most `jitter_s`: bits that leave
        in a time t have arrived in t + jitter.
        """
        return Bucket(self.bits + self.bps * jitter_s, self.bps)


@dataclass(frozen=True, slots=True)
class RateLatency:
    """A service curve: the server starts after at most `latency_s` and then sends at
    `bps` (section 1.3.2).
    """

    bps: float
    latency_s: float = 0.0

    def stable(self, arrivals: Bucket) -> bool:
        """Returns whether the arrival rate is below the service rate."""
        return arrivals.bps < self.bps

    def delay_s(self, arrivals: Bucket) -> float:
        """Returns the worst delay T + b/R in seconds (theorem 1.4.2, section 1.4.1); infinity if unstable."""
        return self.latency_s + arrivals.bits / self.bps if self.stable(arrivals) else math.inf

    def delay_of_groups_s(self, groups: Sequence[Group]) -> float:
        """Returns the worst delay in seconds of the groups together, whose arrival curve is the sum of each
        group's lower curve; infinity if unstable.

        The curve is concave, so its distance from the service is longest at 0 or where a group's two curves
        meet (theorem 1.4.2).
        """
        if not self.stable(sum((bucket for bucket, _ in groups), Bucket())):
            return math.inf
        moments = [0.0, *(meet_s(bucket, line) for bucket, line in groups)]
        return self.latency_s + max(sum(_least(g, t) for g in groups) / self.bps - t for t in moments)

    def output(self, arrivals: Bucket) -> Bucket:
        """Returns the arrival curve of the output (theorem 1.4.3): the burst grows by rate * latency."""
        return arrivals.spread(self.latency_s)


# The arrival curve of streams, and that of the link over which all of them come; None if it has none.
Group = tuple[Bucket, "Bucket | None"]


def meet_s(bucket: Bucket, line: Bucket | None) -> float:
    """Returns the time (s) until which the link's curve is the lower one; 0 if it never is."""
    if line is None or line.bits >= bucket.bits or line.bps <= bucket.bps:
        return 0.0
    return (bucket.bits - line.bits) / (line.bps - bucket.bps)


def _least(group: Group, t: float) -> float:
    bucket, line = group
    own = bucket.bits + bucket.bps * t
    return own if line is None else min(own, line.bits + line.bps * t)


def after_priority(bps: float, above: Bucket, blocking_bits: float) -> RateLatency:
    """Returns the service of one class of a link with non-preemptive strict priority (proposition 1.3.4).

    above: the arrivals of all classes with higher priority; blocking_bits: the longest frame of a class with
    lower priority, for whose end an arriving frame waits. The rate is 0 and the latency infinite if `above`
    uses the whole link.
    """
    left = bps - above.bps
    return RateLatency(left, (above.bits + blocking_bits) / left) if left > 0 else RateLatency(0.0, math.inf)


def busy_s(bps: float, arrivals: Bucket) -> float:
    """Returns the longest busy period in seconds, which bounds the delay for any order of a work-conserving
    server (section 1.4.4); infinity if the arrivals use the whole rate.
    """
    return arrivals.bits / (bps - arrivals.bps) if arrivals.bps < bps else math.inf
