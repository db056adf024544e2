"""Follows a message from node to node: the frames that carried it past each capture point.

A leg is the path between two nodes whose addresses are in the frames: from the sender to a broker, or from a
broker to the receiver. Among TCP segments, the one with the message's last byte counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from capture.why.frames import Carried, Frames, Ident, Sight
from capture.why.places import Places, Way


@dataclass(frozen=True, slots=True)
class Stamp:
    """The time at which a capture point recorded the frame that arrived. position: index in the leg's
    path.
    """

    point: str
    position: int
    t_ns: int
    wire_bytes: int


@dataclass(frozen=True, slots=True)
class Leg:
    """A message's passage from one node to the next, as seen by the capture points on the path."""

    source: str
    to: str
    to_address: str
    way: Way
    stamps: tuple[Stamp, ...]  # stamps of the frame that got furthest, in path order; at least one
    first_ns: int  # time (ns) at which the first point recorded the message for the first time
    copies: int  # number of frames with the message's last byte at the first point
    # time (ns) at which the last point had also recorded all earlier bytes of the connection
    complete_ns: int

    @property
    def last(self) -> Stamp:
        return self.stamps[-1]


class Follower:
    """Finds the legs of messages in the frames that a run's capture points recorded."""

    def __init__(self, points: Mapping[str, Frames], places: Places) -> None:
        self._points = points
        self._places = places

    def legs(self, ident: Ident, length: int, source: str, to: str | None) -> tuple[Leg, ...]:
        """Returns the legs from the node `source` towards the node `to`, in order, as far as frames show
        them. Without `to`, or if no frame shows that the message reached it, the legs lead towards the
        place where the message was seen last.
        """
        found: dict[tuple[str, str], list[tuple[str, Carried]]] = {}
        for point, frames in self._points.items():
            for one in frames.carried.get(ident, ()):
                ends = self._places.owner(one.quad.source), self._places.owner(one.quad.to)
                if ends[0] is not None and ends[1] is not None:
                    found.setdefault((ends[0], ends[1]), []).append((point, one))
        chains = self._chains(found, ident, length, source)
        if to in chains:
            return chains[to]
        return max(chains.values(), key=lambda legs: legs[-1].last.t_ns if legs else 0)

    def unplaced(self, ident: Ident) -> dict[str, int]:
        """Returns the capture points that recorded frames of the message whose path the plan does not give,
        each with the time (ns) of the last such frame.
        """
        found: dict[str, int] = {}
        for point, frames in self._points.items():
            for one in frames.carried.get(ident, ()):
                source = self._places.owner(one.quad.source)
                known = source is not None and self._places.way(source, one.quad.to) is not None
                if not known:
                    found[point] = max(one.sight.t_ns, found.get(point, 0))
        return found

    def _chains(
        self, found: dict[tuple[str, str], list[tuple[str, Carried]]], ident: Ident, length: int, source: str
    ) -> dict[str, tuple[Leg, ...]]:
        """Returns for each node that frames show as reached the shortest chain of legs from `source`
        to it.
        """
        chains: dict[str, tuple[Leg, ...]] = {source: ()}
        waiting = [source]
        while waiting:
            here = waiting.pop(0)
            for (begin, end), seen in found.items():
                if begin == here and end not in chains and (leg := self._leg(begin, end, seen, length)):
                    chains[end] = (*chains[here], leg)
                    waiting.append(end)
        return chains

    def _leg(self, source: str, to: str, seen: list[tuple[str, Carried]], length: int) -> Leg | None:
        """Returns the leg, from the sending of the message that was complete first. None if its path is not
        known or no frame carried the message's end.
        """
        address = seen[0][1].quad.to
        way = self._places.way(source, address)
        if way is None:
            return None
        positions = self._places.positions(way)
        order = sorted((place, name) for name, place in positions.items() if name in self._points)
        sendings = {(one.quad, one.begin): one for _, one in seen}
        legs = [self._sending(one, order, seen, length) for one in sendings.values()]
        whole = [one for one in legs if one is not None]
        if not whole:
            return None
        stamps, _, _, complete_ns = min(whole, key=lambda one: (-one[0][-1].position, one[3]))
        first_ns = min(one[1] for one in whole)
        copies = sum(one[2] for one in whole)
        return Leg(source, to, address, way, stamps, first_ns, copies, complete_ns)

    def _sending(
        self, one: Carried, order: list[tuple[int, str]], seen: list[tuple[str, Carried]], length: int
    ) -> tuple[tuple[Stamp, ...], int, int, int] | None:
        """Returns the stamps of one sending, the time and the number of times that the first point recorded
        it, and the time when it was complete; None if no frame carried its end.
        """
        sights = [(place, name, self._sights(name, one, seen, length)) for place, name in order]
        sights = [(place, name, frames) for place, name, frames in sights if frames]
        if not sights:
            return None
        place, last, frames = sights[-1]
        copy = frames[0]
        stamps = [Stamp(last, place, copy.t_ns, copy.wire_bytes)]
        for place, name, frames in reversed(sights[:-1]):
            same = [f for f in frames if f.mark == copy.mark and f.t_ns <= stamps[0].t_ns]
            if same:
                stamps.insert(0, Stamp(name, place, same[-1].t_ns, same[-1].wire_bytes))
        complete = None
        if one.begin is not None:
            complete = self._points[last].streams[one.quad].complete_ns(one.begin + length)
        first = [f.t_ns for _, name, frames in sights for f in frames if name == stamps[0].point]
        return tuple(stamps), first[0], len(first), max(complete or 0, copy.t_ns)

    def _sights(self, point: str, one: Carried, seen: list[tuple[str, Carried]], length: int) -> list[Sight]:
        """Returns the frames at a point that carried the message's last byte, in the order of time."""
        if one.begin is None:
            return [c.sight for name, c in seen if name == point and c.quad == one.quad]
        stream = self._points[point].streams.get(one.quad)
        return stream.with_byte(one.begin + length - 1) if stream else []
