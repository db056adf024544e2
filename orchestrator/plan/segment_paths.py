"""Finds paths inside one subnet: through the tree of joined segments, with the nodes' own
links at both ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from contract.plan import Direction, Impairment, Link

from .. import queueing
from .slots import Tables, lone_ns

FULL_FRAME_BYTES = 1514


def one_way_ns(impairment: Impairment, frame_bytes: int, tables: Tables) -> int:
    """Returns the mean delay in ns of a frame without other traffic: the link's delay, the time to send the
    frame and, if the direction has slots, the wait for a slot. Without `tables` for the jitter, the wait is
    left out.
    """
    sending_ns = queueing.sending_ns(impairment, frame_bytes)
    slotted_ns = lone_ns(impairment, sending_ns, tables)
    return impairment.delay_ns + sending_ns if slotted_ns is None else round(slotted_ns)


class SegmentPaths:
    """Finds the directions of links that a frame passes from one node to another in the same subnet.

    The medium of a half-duplex segment counts once for each time that a frame enters the segment. If links
    form a loop, no path is known, since the spanning tree decides at run time.
    """

    def __init__(self, links: Iterable[Link]) -> None:
        links = list(links)
        self._next: dict[str, list[tuple[str, Direction]]] = {}
        self._access: dict[tuple[str, str], Link] = {}
        self._media = {link.a: (link.forward,) for link in links if link.kind == "medium"}
        for link in links:
            if link.kind == "access":
                self._access[link.a, link.b] = link
            for a, b in link.joins:
                self._next.setdefault(a, []).append((b, link.forward))
                self._next.setdefault(b, []).append((a, link.reverse))
        self._between = cache(self._walk)

    def directions(self, a: str, at_a: str, b: str, at_b: str) -> tuple[Direction, ...] | None:
        """Returns the directions from node `a` on segment `at_a` to node `b` on `at_b`, with the nodes' own
        links and the media of half-duplex segments; None if no path is known.
        """
        between = self._between(at_a, at_b)
        if between is None:
            return None
        own, theirs = self._access.get((a, at_a)), self._access.get((b, at_b))
        first = ((own.forward,) if own else ()) + self._media.get(at_a, ())
        return first + between + ((theirs.reverse,) if theirs else ())

    def _loops(self, start: str) -> bool:
        """Returns whether the segments that are connected to this one contain a loop: they have more links
        than a tree.
        """
        reached, waiting = {start}, [start]
        while waiting:
            near = {other for other, _ in self._next.get(waiting.pop(), [])} - reached
            reached |= near
            waiting += near
        return sum(len(self._next.get(one, [])) for one in reached) // 2 >= len(reached)

    def _walk(self, start: str, goal: str) -> tuple[Direction, ...] | None:
        if start != goal and self._loops(start):
            return None
        waiting: list[tuple[str, tuple[Direction, ...]]] = [(start, ())]
        seen = {start}
        while waiting:
            segment, so_far = waiting.pop()
            if segment == goal:
                return so_far
            for other, direction in self._next.get(segment, []):
                if other not in seen:
                    seen.add(other)
                    waiting.append((other, (*so_far, direction, *self._media.get(other, ()))))
        return None
