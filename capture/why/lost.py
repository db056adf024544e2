"""Finds where a message that never arrived was seen last, and what dropped it, with the counter that shows
it.

The owner of a loss is the link, queue, socket or program that dropped the message. The verdict is *holds* if
nothing else between the last place and the next capture point can have dropped it; otherwise all candidates
are owners.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from capture.why.frames import Frames
from capture.why.legs import Leg
from capture.why.parts import links_between
from capture.why.places import Element, Places
from capture.why.settings import Settings
from contract.verdict import HOLDS, OPEN

SENDS = ("UdpSndbufErrors", "IpOutDiscards", "IpOutNoRoutes", "UdpMemErrors")
RECEIVES = (
    "UdpRcvbufErrors", "UdpInErrors", "UdpInCsumErrors", "UdpNoPorts", "TcpInCsumErrs", "TcpExtTCPRcvQDrop",
    "TcpExtListenOverflows", "TcpExtListenDrops", "IpInDiscards", "IpInAddrErrors", "IpReasmFails",
)  # fmt: skip
LOOKUP_NS = 3_000_000_000  # ns; the kernel gives up after three requests, one second apart
# shares of a queue's limit: a queue is full from the first on, and has room up to the second
FULL, EMPTY = 0.95, 0.8


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter that grew: its place, its growth over the run, and for links also its growth near the
    message's time.
    """

    where: str
    name: str
    value: int
    near: int | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """The findings about a message that never arrived."""

    last_seen: str
    last_ns: int
    verdict: str  # holds: the owner is certain; cannot tell: several owners are possible, or none is known
    owners: tuple[str, ...]
    counters: tuple[Counter, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Finder:
    """Finds the owners of lost messages from captures, the settings of links, and counters."""

    points: Mapping[str, Frames]
    places: Places
    settings: Settings
    links: pl.DataFrame | None
    stacks: pl.DataFrame | None
    entries: dict[tuple[str, str, str], list[tuple[int, int]]] = field(default_factory=dict)

    def unseen(self, node: str, sent_ns: int | None, scheduled_ns: int, near: str | None) -> Lost:
        """Returns the finding about a message that no frame carried. near: the capture point that sees all
        frames that leave the sender's node.
        """
        program, stack = f"program on node {node}", f"network stack of node {node}"
        if sent_ns is None:
            text = "its program never handed it over: the connection was down, or its own queue was full"
            return Lost(program, scheduled_ns, HOLDS, (program,), (), text)
        if near is None:
            text = "its program handed it over, and no capture point saw a frame that carries it"
            return Lost(program, sent_ns, OPEN, (), self._stack(node, SENDS), text)
        text = "its program handed it over, but no frame with it left the node"
        if asked := self._unanswered(node, near, sent_ns):
            return Lost(stack, sent_ns, HOLDS, (f"address lookup of node {node}",), (asked,), text)
        return Lost(stack, sent_ns, HOLDS, (stack,), self._stack(node, SENDS), text)

    def unplaced(self, seen: Mapping[str, int]) -> Lost:
        """Returns that the owner is unknown. This is for a message that capture points recorded on a path
        that the plan does not give; `seen` has the time (ns) at which each point recorded it last.
        """
        last = max(seen, key=lambda name: seen[name])
        text = f"it passed {', '.join(f'capture {name}' for name in seen)}; the plan does not give its path"
        return Lost(f"capture {last}", seen[last], OPEN, (), (), text)

    def _unanswered(self, node: str, point: str, sent_ns: int) -> Counter | None:
        """Returns the number of a node's ARP requests around a time, as a counter; None if it sent none, or
        if one was answered.
        """
        around = range(sent_ns - LOOKUP_NS, sent_ns + LOOKUP_NS)
        near = [one for one in self.points[point].lookups if one.t_ns in around]
        asked = [one for one in near if not one.answer and self.places.owner(one.sender) == node]
        if not asked or any(one.answer and self.places.owner(one.target) == node for one in near):
            return None
        to = ", ".join(sorted({one.target for one in asked}))
        return Counter(f"node {node}", f"ARP requests for {to} without an answer", len(asked))

    def after(self, leg: Leg, target: str | None) -> Lost:
        """Returns the owner of a message that was recorded on a leg, and at no later capture point."""
        last = leg.last
        later = [
            (place, name)
            for name, place in self.places.positions(leg.way).items()
            if name in self.points and place > last.position
        ]
        place, point = min(later, default=(len(leg.way) - 1, ""))
        links = links_between(leg, last.position, place)
        seen = f"capture {last.point}"
        if not links and not point:
            return self._in_node(leg, target, seen)
        entered = last.t_ns
        found = [(link, self._drops(link, entered)) for link in links]
        counters = tuple(drops for _, drops in found if drops and drops.value)
        # A link whose drop counter did not change dropped nothing, unless the timeline cut it, since its
        # queue does not count those drops. A link without a counter may have dropped the message.
        some = [
            link
            for link, drops in found
            if drops is None or drops.near or self.settings.down(link.name, entered)
        ]
        owners = [text for link in some for text in self._causes(link, leg, point, entered)]
        if not point:
            counters += self._stack(leg.to, RECEIVES)
            owners += [f"socket of node {leg.to}"] if self._stack(leg.to, RECEIVES) else []
        certain = len(owners) == 1
        until = f"capture {point}" if point else f"node {leg.to}"
        text = f"it passed {seen} and did not reach {until}"
        return Lost(seen, entered, HOLDS if certain else OPEN, tuple(owners), counters, text)

    def passed(self, point: str, begin_ns: int, end_ns: int) -> list[tuple[int, str, int]]:
        """Returns time, source address and bytes of the packets that passed a point in a time span."""
        passed = self.points[point].passed
        first = bisect_right(passed, begin_ns, key=lambda one: one[0])
        return passed[first : bisect_right(passed, end_ns, key=lambda one: one[0])]

    def _in_node(self, leg: Leg, target: str | None, seen: str) -> Lost:
        """Returns the owner of a message whose last frame reached its node."""
        counters, time_ns = self._stack(leg.to, RECEIVES), leg.complete_ns
        if leg.to != target:
            owner = f"program on node {leg.to}"
            text = "its frame reached this node, which should pass it on, and no frame with it left again"
            return Lost(seen, time_ns, OPEN if counters else HOLDS, (owner,), counters, text)
        text = "its frame reached the receiver's node, and no program of it recorded the message"
        socket = f"socket of node {leg.to}"
        owners = (socket,) if counters else (f"program on node {leg.to}",)
        return Lost(seen, time_ns, HOLDS if counters else OPEN, owners, counters, text)

    def _stack(self, node: str, names: tuple[str, ...]) -> tuple[Counter, ...]:
        if self.stacks is None:
            return ()
        own = self.stacks.filter((pl.col("node") == node) & pl.col("counter").is_in(names))
        return tuple(Counter(f"node {node}", *row) for row in own.select("counter", "value").iter_rows())

    def _drops(self, link: Element, t_ns: int) -> Counter | None:
        """Returns the packets that a link's direction dropped in three intervals: the whole run, the time
        from the programs' start, and the time from the sample before `at` to the second sample after it;
        None if they were not counted.
        """
        if self.links is None:
            return None
        own = self.links.filter(
            (pl.col("link") == link.name) & (pl.col("direction") == link.way) & pl.col("class").is_null()
        ).sort("t_ns")
        times, drops = own["t_ns"].to_list(), own["dropped"].to_list()
        if not times or None in drops:
            return None
        place = bisect_right(times, t_ns)
        before, after = max(place - 1, 0), min(place + 1, len(drops) - 1)
        return Counter(str(link), "dropped", drops[-1] - drops[0], drops[after] - drops[before])

    def _causes(self, link: Element, leg: Leg, point: str, t_ns: int) -> list[str]:
        """Returns the possible causes of a drop on a link: a cut, netem's random loss, a full queue."""
        setting = self.settings.at(link, t_ns)
        if self.settings.down(link.name, t_ns):
            return [f"{link}: cut by the timeline"]
        draw = f"{link}: netem's draw of loss"
        if setting.queue is not None:
            full = f"{link}: its queue ({type(setting.queue).__name__})"
        else:
            full = f"{link}: full queue (limit {setting.limit_packets} packets)"
        also = [f"{link}: corrupted by netem"] if setting.corrupt else []
        if not setting.loss and setting.gemodel is None:
            return [full, *also]
        share = self._filled(leg, point, t_ns, setting.limit_packets, setting.jitter_ns > 0)
        if share is not None and share <= EMPTY and setting.queue is None:
            return [draw, *also]
        first = [full, draw] if share is None or share >= FULL or setting.queue else [draw, full]
        return first + also

    def _filled(self, leg: Leg, point: str, t_ns: int, limit: int, reorders: bool) -> float | None:
        """Returns the share of a queue's limit that was in use at a time, as the larger of two measurements.

        Both count the packets that passed the capture point behind the queue from that time on. The first
        count ends with the last message that entered the queue before that time, the second with the first
        message that entered after it. None without such messages, or without a limit. The second message
        suffices if there is no first one and frames keep their order.
        """
        if not point or not limit:
            return None
        key = leg.source, leg.last.point, point
        entered = self.entries.get(key) or self.entries.setdefault(key, self._entries(*key))
        place = bisect_left(entered, (t_ns, 0))
        near = entered[max(place - 1, 0) : place + 1]
        if len(near) < (2 if reorders or place else 1):
            return None
        passed = self.passed(point, t_ns, max(leaves for _, leaves in near))
        return sum(self._over(source, leg) for _, source, _ in passed) / limit

    def _entries(self, node: str, point: str, behind: str) -> list[tuple[int, int]]:
        """Returns for each message of a node the times at which it passed a point and the point behind it."""
        seen: list[dict[tuple[object, ...], int]] = []
        for name in (point, behind):
            carried = [(ident, c) for ident, some in self.points[name].carried.items() for c in some]
            own = ((ident, c) for ident, c in carried if self.places.owner(c.quad.source) == node)
            seen.append({(ident, c.quad, c.begin, c.sight.mark): c.sight.t_ns for ident, c in own})
        return sorted((t_ns, seen[1][key]) for key, t_ns in seen[0].items() if key in seen[1])

    def _over(self, source: str, leg: Leg) -> bool:
        """Returns whether packets from an address pass the same link and the capture point behind it."""
        owner = self.places.owner(source)
        way = self.places.way(owner, leg.to_address) if owner else None
        links = set(links_between(leg, leg.last.position, len(leg.way) - 1))
        return way is not None and any(one in links for one in way)
