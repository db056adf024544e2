"""Defines the axes of the atlas with their designed ranges, and the distance between two points."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

Floats = npt.NDArray[np.float64]
HALF, FULL = "half", "full"


@dataclass(frozen=True)
class Axis:
    """One axis of the atlas. `low` and `high` are the designed range; with `log`, positions on the axis are
    logarithmic; `say` converts a value to text.
    """

    name: str  # column of the data set
    parameter: str  # parameter of the topologies
    low: float
    high: float
    log: bool
    say: Callable[[float], str]

    def scaled(self, values: Floats) -> Floats:
        """Returns the values scaled so that the designed range is 0 to 1, logarithmically with `log`; values
        outside the range give numbers below 0 or above 1.
        """
        if self.log:
            return (np.log(values) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (values - self.low) / (self.high - self.low)

    def holds(self, value: float) -> bool:
        """Returns whether a value is within the designed range; both ends belong to it."""
        return self.low <= value <= self.high


def rate_words(bps: float) -> str:
    """Returns a rate in bit/s as text with three digits: in Mbit/s from 1 Mbit/s on, else in kbit/s."""
    return f"{bps / 1e6:.3g} Mbit/s" if bps >= 1e6 else f"{bps / 1e3:.3g} kbit/s"


def duration_words(seconds: float) -> str:
    """Returns a duration in seconds as text with three digits: in ms below 1 s, else in s."""
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def size_words(size_bytes: float) -> str:
    """Returns a size in bytes as text with three digits: in kB from 1000 bytes on, else in B."""
    return f"{size_bytes / 1e3:.3g} kB" if size_bytes >= 1000 else f"{size_bytes:.3g} B"


def share_words(share: float) -> str:
    """Returns a share (0 to 1) as text in percent, with three digits."""
    return f"{100 * share:.3g} %"


AXES = (
    Axis("loss", "loss", 0.0, 0.4, False, share_words),
    Axis("rate_bps", "rate", 50e3, 10e6, True, rate_words),
    Axis("delay_s", "delay", 0.0, 0.5, False, duration_words),
    Axis("receivers", "receivers", 1, 300, True, lambda value: f"{value:g}"),
    Axis("size_bytes", "size", 600, 10_000, True, size_words),
)
# Deadlines in s, for each of which the data set has the share of updates in time.
DEADLINES_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0)


@dataclass(frozen=True)
class Place:
    """The coordinates of a question or of a measurement: loss, rate and delay of the link, number of
    receivers, size of updates, and duplex mode ("half" or "full").
    """

    loss: float
    rate_bps: float
    delay_s: float
    receivers: float
    size_bytes: float
    duplex: str

    def value(self, axis: Axis) -> float:
        """Returns the coordinate of the place on one axis, in the axis's unit."""
        return float(getattr(self, axis.name))

    def outside(self) -> list[str]:
        """Returns one sentence for each axis on which the place is outside the designed range;
        empty if none.
        """
        return [
            f"{axis.parameter}: {axis.say(self.value(axis))} is outside what the atlas was designed for, "
            f"{axis.say(axis.low)} to {axis.say(axis.high)}"
            for axis in AXES
            if not axis.holds(self.value(axis))
        ]

    def scaled(self) -> Floats:
        """Returns the coordinates of the place in the order of AXES, scaled as by `Axis.scaled`; one more
        coordinate is 1 for half duplex and 0 for full duplex.
        """
        numbers = [float(axis.scaled(np.array([self.value(axis)]))[0]) for axis in AXES]
        return np.array([*numbers, float(self.duplex == HALF)])

    def words(self) -> Mapping[str, str]:
        """Returns the value of each parameter, and the duplex mode, as text for people."""
        said = {axis.parameter: axis.say(self.value(axis)) for axis in AXES}
        return {**said, "duplex": self.duplex}


def coordinates(rows: pl.DataFrame) -> Floats:
    """Returns the scaled coordinates (as `Place.scaled`) of each row of the data set, as an array of rows x
    axes.
    """
    columns = [axis.scaled(rows[axis.name].cast(pl.Float64).to_numpy()) for axis in AXES]
    return np.column_stack([*columns, (rows["duplex"] == HALF).cast(pl.Float64).to_numpy()])


def distances(points: Floats, at: Floats) -> Floats:
    """Returns the Euclidean distance of every point from one place; 1 is the whole range of one axis, or half
    against full duplex.
    """
    return np.asarray(np.sqrt(((points - at) ** 2).sum(axis=1)), dtype=np.float64)
