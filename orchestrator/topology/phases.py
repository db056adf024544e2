"""Computes the lengths of ramp, hold and drain, and the order in which clients connect."""

from __future__ import annotations

from dataclasses import dataclass

from ..language.scalars import Moment
from ..language.units import DURATION, whole
from ..software.registry import kind_of, session_names
from .document import File
from .expansion import Expansion

DEFAULT_INTERVAL_NS = whole(DURATION, "200 ms")


@dataclass(frozen=True)
class Phases:
    """The lengths of the phases, which follow each other from time 0."""

    ramp_ns: int
    hold_ns: int
    drain_ns: int

    def start_ns(self, phase: str) -> int:
        return {"ramp": 0, "hold": self.ramp_ns, "drain": self.ramp_ns + self.hold_ns}[phase]

    def length_ns(self, phase: str) -> int:
        return {"ramp": self.ramp_ns, "hold": self.hold_ns, "drain": self.drain_ns}[phase]

    @property
    def end_ns(self) -> int:
        return self.ramp_ns + self.hold_ns + self.drain_ns

    def moment(self, at_ns: int) -> Moment:
        """Returns the phase and offset of a time in ns from the scenario's start."""
        if at_ns < self.ramp_ns:
            return Moment("ramp", at_ns)
        if at_ns < self.ramp_ns + self.hold_ns:
            return Moment("hold", at_ns - self.ramp_ns)
        return Moment("drain", at_ns - self.ramp_ns - self.hold_ns)


def clients(names: Expansion) -> list[tuple[str, str]]:
    """Returns (node, software) of every client in the order of connecting; clients that only receive come
    first.
    """
    found: list[tuple[int, str, str]] = []
    for node, machine in names.nodes.items():
        for name, software in machine.software.items():
            turn = kind_of(software).ramp(software)
            if turn is not None:
                found += [(turn, node, each) for each in session_names(name, software)]
    return [(node, name) for _, node, name in sorted(found, key=lambda item: item[0])]


def interval_ns(model: File, count: int) -> int:
    """Returns the time between the connections of two clients, in ns: `ramp` divided by `count`, or else
    `connect_interval`, or else DEFAULT_INTERVAL_NS.
    """
    if model.run.ramp is not None:
        return model.run.ramp // max(count, 1)
    return DEFAULT_INTERVAL_NS if model.run.connect_interval is None else model.run.connect_interval


def phases(model: File, names: Expansion) -> Phases:
    """Returns the lengths of a run's phases; by default the ramp ends one interval after the last
    connection.
    """
    count = len(clients(names))
    ramp = model.run.ramp if model.run.ramp is not None else count * interval_ns(model, count)
    return Phases(ramp, model.run.hold, model.run.drain)
