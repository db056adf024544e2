"""Plays the plan's traces on the running lab: changes each direction's queue at the times of its trace."""

from __future__ import annotations

import dataclasses
import heapq
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from contract.events import Applied
from contract.plan import Direction, Impairment, Link, Step
from orchestrator import queueing
from orchestrator.lab import readback
from orchestrator.lab.events import Warning
from orchestrator.lab.judgement import shown
from orchestrator.lab.lab import Lab
from orchestrator.lab.probes import BOTH
from orchestrator.plan import replay
from orchestrator.plan.replay import Moment
from orchestrator.queueing.kind import Entry

HEADER = "t_ns,planned_ns,link,direction,rate_bps,delay_ns,loss\n"


@dataclass(slots=True)
class _Player:
    """Plays the trace of one direction, or of both directions of a half-duplex link.

    ways: the directions whose impairment it sets.
    """

    link: str
    direction: str
    ways: tuple[str, ...]
    at: Direction
    moments: Iterator[Moment]
    next: Moment | None
    filters: list[Entry]  # filters of the direction's bands as read at the start; no trace changes them
    from_ns: int  # when the player was added; changes that were due before do not count as late


class Replay:
    """Plays the plan's traces from `t0_ns` on (lab's clock) until `end`; does nothing if the plan has no
    trace.

    raw/impairments.csv gets a line for each change: the time when it was made, the time when it was due, and
    the values from then on. The rate is 0 in an outage, and empty if the direction has no rate.
    """

    def __init__(self, lab: Lab, t0_ns: int) -> None:
        self._lab, self._t0_ns, self._ended = lab, t0_ns, False
        self._players = list[_Player]()
        self._due = list[tuple[int, int]]()
        self._wakes_ns: int | None = None
        self._changes = self._late = self._skipped = 0
        self._file = lab.run_dir / "raw" / "impairments.csv"
        self._take(lab.links.values(), t0_ns)
        lab.on_added = self._join

    def end(self) -> None:
        """Ends the changes; warns if some were later than the plan's `trace_late`, or left out."""
        self._ended = True
        most = shown("ns", self._lab.plan.trace_late_ns)
        if self._late or self._skipped:
            self._lab.events.warn(Warning(
                "trace-late",
                f"traces: {self._late} of {self._changes} changes came more than {most} late, "
                f"{self._skipped} were left out since the next one was due",
                "the links did not follow their traces: repeat the run when the machine is idle, use "
                "`--time virtual`, a trace with fewer changes, or `run: {trace_late: 50 ms}`",
            ))  # fmt: skip

    def _join(self, links: Iterable[Link]) -> None:
        """Adds the links of an added node, unless `end` was called; each starts at the present state of its
        trace.
        """
        if not self._ended:
            self._take(links, max(self._t0_ns, self._lab.loop.clock.now_ns()))

    def _take(self, links: Iterable[Link], from_ns: int) -> None:
        """Begins to play the traces of these links, from their state at lab time `from_ns`."""
        found = _players(self._lab, links, from_ns)
        if not found:
            return
        if not self._players:
            self._file.write_text(HEADER)
        for n, player in enumerate(found, len(self._players)):
            self._forward(player)
            heapq.heappush(self._due, (player.next.at_ns if player.next is not None else 0, n))
        self._players += found
        self._lab.loop.at(from_ns, lambda: self._begin(found))

    def _forward(self, player: _Player) -> None:
        """Advances a trace to the state that applies at the time `from_ns` of its player."""
        for after in player.moments:
            if self._t0_ns + after.at_ns > player.from_ns:
                player.moments = itertools.chain([after], player.moments)
                return
            player.next = after

    def _begin(self, players: Iterable[_Player]) -> None:
        """Records the start of each trace as an event, and makes the first changes."""
        lab, now = self._lab, self._lab.loop.clock.now_ns()
        for player in players:
            trace = lab.plan.traces[str(player.at.trace)]
            args = {
                "direction": player.direction, "file": trace.file, "sha256": trace.sha256,
                "states": len(trace.states), "length_ns": trace.length_ns, "repeat": trace.repeat,
            }  # fmt: skip
            applied = Applied(
                now, player.from_ns, lab.events.phase_name, "trace", [player.link], args,
                label=f"trace {trace.file}: {player.link} {player.direction}",
            )  # fmt: skip
            lab.events.emit("event", **applied.write(lab.run_dir))
        self._turn()

    def _turn(self) -> None:
        """Makes all changes that are due, writes their lines and schedules the next turn."""
        if self._ended:
            return
        lines, now = list[str](), self._lab.loop.clock.now_ns()
        while self._due and self._t0_ns + self._due[0][0] <= now:
            _, n = heapq.heappop(self._due)
            if (line := self._play(n, now)) is not None:
                lines.append(line)
        if lines:
            with self._file.open("a") as out:
                out.writelines(lines)
        if self._wakes_ns is not None and self._wakes_ns <= now:
            self._wakes_ns = None
        next_ns = self._t0_ns + self._due[0][0] if self._due else None
        if next_ns is not None and (self._wakes_ns is None or next_ns < self._wakes_ns):
            self._wakes_ns = next_ns
            self._lab.loop.at(next_ns, self._turn)

    def _play(self, n: int, now: int) -> str | None:
        """Applies the last due state of a direction and counts skipped and late states; returns its line of
        raw/impairments.csv, None for a removed link or an unchanged state.
        """
        player = self._players[n]
        moment = player.next
        assert moment is not None
        player.next = next(player.moments, None)
        while player.next is not None and self._t0_ns + player.next.at_ns <= now:
            self._skipped += not player.next.again
            moment, player.next = player.next, next(player.moments, None)
        if player.next is not None:
            heapq.heappush(self._due, (player.next.at_ns, n))
        if player.link not in self._lab.links:
            return None  # the link's node has been removed
        # the longest frame may have grown with an MTU
        longest = self._lab.impairments[player.link, player.ways[0]].frame_bytes
        base = dataclasses.replace(player.at.impairment, frame_bytes=longest)
        wanted = replay.impairment(base, moment)
        _change(self._lab, player, wanted)
        if moment.again:
            return None
        made, due = self._lab.loop.clock.now_ns(), max(player.from_ns, self._t0_ns + moment.at_ns)
        self._changes += 1
        self._late += made - due > self._lab.plan.trace_late_ns
        rate = moment.state.rate_bps if moment.state.rate_bps is not None else wanted.rate_bps or ""
        return f"{made},{due},{player.link},{player.direction},{rate},{wanted.delay_ns},{wanted.loss:.9g}\n"


def _players(lab: Lab, links: Iterable[Link], from_ns: int) -> list[_Player]:
    """Returns the players of these links' traces; a half-duplex link has one for both directions."""
    found = []
    for link in links:
        both = (("forward", link.forward), ("reverse", link.reverse))
        for name, at in both[:1] if link.half_duplex else both:
            if at.trace is not None:
                moments = replay.moments(lab.plan.traces[at.trace])
                ways = ("forward", "reverse") if link.half_duplex else (name,)
                shown = BOTH if link.half_duplex else name
                first = next(moments)
                filters = _filters(lab, at)
                found.append(_Player(link.name, shown, ways, at, moments, first, filters, from_ns))
    return found


def _filters(lab: Lab, at: Direction) -> list[Entry]:
    """Returns the filters that assign packets to the direction's bands, read from the kernel; empty without
    bands.
    """
    queue = at.impairment.queue
    read = lab.driver.qdiscs(at.netns) if queue is not None and queue.bands else []
    return [one for one in read if "filter" in one and one.get("dev") == at.carrier]


def _change(lab: Lab, player: _Player, wanted: Impairment) -> None:
    """Sets an impairment, seeds its generator again and reads it back; raises LabError if the read-back
    differs. Does nothing if the impairment already applies.
    """
    at, before = player.at, lab.impairments[player.link, player.ways[0]]
    if wanted == before:
        return
    text = queueing.change_text(at.carrier, before, wanted)
    reason = f"trace of link {player.link} {player.direction}"
    read = lab.driver.change(Step("tc", at.netns, text, reason, at.host), at.carrier)
    entries = [one for one in read if "filter" not in one] + player.filters
    lab.impairments.update(dict.fromkeys(itertools.product([player.link], player.ways), wanted))
    # a kernel before April 2026 draws a new seed at each change
    lab.after_change(player.link, player.ways[0])
    place = f"links.{player.link}.{player.direction}"
    readback.insist(readback.impairment(place, wanted, entries, at.carrier))
