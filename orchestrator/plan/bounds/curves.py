"""Arrival and service curves of network calculus, in closed form; seconds and bits.

Le Boudec and Thiran, Network Calculus, Springer LNCS 2050 (version of 2022); sections are its.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bucket:
    """A leaky bucket: in any time t at most `bits` + `bps` t (section 1.2.1)."""

    bits: float = 0.0
    bps: float = 0.0

    def __add__(self, other: Bucket) -> Bucket:
        """The arrival curve of two flows together."""
        return Bucket(self.bits + other.bits, self.bps + other.bps)

    def spread(self, jitter_s: float) -> Bucket:
        """Behind a system whose delays differ by at most that: what left in t came in t + jitter."""
        return Bucket(self.bits + self.bps * jitter_s, self.bps)


@dataclass(frozen=True, slots=True)
class RateLatency:
    """A server that is late at most `latency_s`, and then serves at `bps` (section 1.3.2)."""

    bps: float
    latency_s: float = 0.0

    def stable(self, arrivals: Bucket) -> bool:
        """Whether it is used less than wholly."""
        return arrivals.bps < self.bps

    def delay_s(self, arrivals: Bucket) -> float:
        """The horizontal deviation (theorem 1.4.2; for these curves T + b/R, section 1.4.1)."""
        return self.latency_s + arrivals.bits / self.bps if self.stable(arrivals) else math.inf

    def output(self, arrivals: Bucket) -> Bucket:
        """The output of all arrivals together (theorem 1.4.3): the burst grows by r T."""
        return arrivals.spread(self.latency_s)


def after_priority(bps: float, above: Bucket, blocking_bits: float) -> RateLatency:
    """The service of a class of a link in non-preemptive strict priority (proposition 1.3.4).

    above: all classes served first; blocking_bits: the longest frame of a class served later, which a frame
    that comes waits for.
    """
    left = bps - above.bps
    return RateLatency(left, (above.bits + blocking_bits) / left) if left > 0 else RateLatency(0.0, math.inf)


def busy_s(bps: float, arrivals: Bucket) -> float:
    """The longest busy period: a bound in whatever order a work-conserving server sends (section 1.4.4)."""
    return arrivals.bits / (bps - arrivals.bps) if arrivals.bps < bps else math.inf
