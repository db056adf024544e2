"""Computes the service curves of classes behind credit-based shapers (IEEE 802.1Qav) in strict priority.

Source: De Azua and Boyer, Complete modelling of AVB in network calculus framework, RTNS 2014. A class i with
the idle slope I has the service I * (t - wait), where `wait` is the longest time for which its first frame
waits for others (`queueing.cbs.waits_s`). Linux departs from the standard in two ways, which lower the curve:

- Credit above 0 does not grow while a frame leaves (cbs_dequeue_soft adds only where the credit is negative).
  This happens only to a class whose frames are shorter than its highest credit. Then at most
  (own bits + bits of the classes above) / C of the time is lost.
- Credit is rounded down to whole bytes at each look, and each frame that comes or leaves makes it look.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...queueing.cbs import waits_s
from .curves import Bucket, RateLatency

ROUNDED_BITS = 16.0  # bits of credit that a frame costs: a byte when it comes, and a byte when it leaves
SHORTEST_BITS = 8.0 * 60  # the shortest frame, without its checksum


@dataclass(frozen=True, slots=True)
class Shaper:
    """The shaped classes of a link: its rate, their idle slopes in order of priority, its longest frame."""

    bps: float
    slopes_bps: tuple[float, ...]
    frame_bits: float

    def service(self, place: int, shortest_bits: float, frames: Bucket) -> RateLatency:
        """Returns the service of a shaped class whose frames have at least `shortest_bits`; `frames` are the
        arrivals at the link, in frames.
        """
        slope = self.slopes_bps[place]
        used = sum(self.slopes_bps[:place])
        latency_s = self._waits(self.frame_bits)[place]
        rounded = ROUNDED_BITS * frames.bits
        # The token bucket has paid for a lower frame when it leaves: it does not raise the credit.
        highest = [i * wait for i, wait in zip(self.slopes_bps, self._waits(0.0), strict=True)]
        bps = slope - ROUNDED_BITS * frames.bps
        lost_bits = slope * latency_s + rounded
        if highest[place] > 0 and shortest_bits <= highest[place] * (1 + 1e-6):
            owed = sum(
                credit + self.frame_bits * (1 - i / self.bps)
                for credit, i in zip(highest[:place], self.slopes_bps, strict=False)
            )
            share = 1 + slope / self.bps
            bps = (bps - slope * used / self.bps) / share
            lost_bits = (lost_bits + slope * owed / self.bps) / share
        return RateLatency(max(bps, 0.0), lost_bits / bps if bps > 0 else 0.0)

    def output(self, place: int) -> Bucket:
        """Returns the arrival curve of what a shaped class sends: its slope, beyond its highest credit and
        the debt of one frame.
        """
        slope = self.slopes_bps[place]
        credit = slope * self._waits(self.frame_bits)[place]
        return Bucket(credit + self.frame_bits * (1 - slope / self.bps), slope)

    def _waits(self, lower_bits: float) -> list[float]:
        return waits_s(self.bps, self.slopes_bps, self.frame_bits, lower_bits)
