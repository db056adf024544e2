"""Multiplies the traffic of a substation as the paper does before it simulates; none of these figures is
measured.

The predictions of `vnet plan topologies/papers/substation-traffic.yaml` have the same figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from reports.metrics.metric import Metric, Of, count
from reports.papers.published import reference
from reports.study import Study

ROOM = Path(__file__).parent
LEVEL = "200 us"  # the level in claims of figures that need no run
NAMES = ("whole", "multicast", "three_phases")


@dataclass(frozen=True, slots=True)
class Traffic:
    """The numbers that the paper multiplies."""

    points: int  # number of measurement points
    frames: int  # frames for one sample of a point: one for each phase, or one for all
    receivers: int  # receivers of each sample
    samples_hz: int
    data_bytes: int  # bytes of data in a frame
    overhead_bytes: int
    # Administrative messages per second from each point to each receiver, in frames of one phase.
    other_hz: int
    other_bytes: int

    @property
    def measurements(self) -> int:
        """The number of frames per second with measurements."""
        return self.points * self.frames * self.receivers * self.samples_hz

    @property
    def others(self) -> int:
        """The number of administrative frames per second."""
        return self.points * self.receivers * self.other_hz

    @property
    def mbps(self) -> float:
        """The megabits per second of all frames."""
        return self.measurements_mbps + 8 * self.others * (self.other_bytes + self.overhead_bytes) / 1e6

    @property
    def measurements_mbps(self) -> float:
        """The megabits per second of the measurements alone."""
        return 8 * self.measurements * (self.data_bytes + self.overhead_bytes) / 1e6


def variants() -> dict[str, Traffic]:
    """Returns the paper's traffic: as it is, with multicast (each frame is sent once), and with frames that
    hold all three phases.
    """
    numbers = reference(ROOM)["traffic"]
    one = Traffic(**{key: numbers[key] for key in Traffic.__dataclass_fields__})
    three = replace(one, frames=1, data_bytes=one.frames * one.data_bytes)
    return dict(zip(NAMES, (one, replace(one, receivers=1), three), strict=True))


def gathered(study: Study) -> Iterator[tuple[str, Metric]]:
    """Yields, for each variant, thousands of frames and megabits per second; no run is needed."""
    for name, of in variants().items():
        subject = Of(stream=name)
        frames = (of.measurements + of.others) / 1000
        yield LEVEL, count("traffic_frames", subject, frames, "thousand packets/s", 1, "calculated")
        yield LEVEL, count("traffic_rate", subject, of.mbps, "Mbit/s", 1, "calculated")
        yield LEVEL, count("traffic_measured", subject, of.measurements_mbps, "Mbit/s", 1, "calculated")
