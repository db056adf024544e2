"""Answers where the time of a run's messages went, and what happened to messages that never arrived."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from capture.errors import CaptureError
from capture.why.frames import Frames, Ident, Lookup, read
from capture.why.legs import Follower, Leg
from capture.why.lost import Finder, Lost
from capture.why.parts import (
    LATE,
    PROGRAM,
    RECEIVER,
    SOCKET,
    TURN_NS,
    UNEXPLAINED,
    Behind,
    Divider,
    Line,
    Part,
)
from capture.why.places import Element, Places
from capture.why.settings import Settings
from contract import manifest, retired, rundir
from contract.plan import Plan
from contract.verdict import HOLDS, OPEN

READ = ("bytes", "metering-xml")  # kinds of payloads whose messages are found in frames
POWER = ("start", "stop", "kill", "restart", "run", "limit")  # actions of events that affect nodes
NO_CAPTURE = (
    "the run kept no capture, so only its records divide the time; give the topology `captures:` at the "
    "nodes and links on the way (keep: true) and run it again"
)
NO_PATH = (
    "its frames passed {points}, but the plan does not give their path (a routing daemon, several paths or a "
    "half-duplex medium), so only records divide the time"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The parts of the latency of one message to one receiver. For a request they cover the time until its
    reply arrived.
    """

    name: str
    seq: int
    traffic_class: str
    sender: str
    receiver: str | None
    scheduled_ns: int
    latency_ns: int | None  # None: the message, or the reply to a request, never arrived
    parts: tuple[Part, ...]
    lost: Lost | None
    notes: tuple[str, ...]
    received: bool = True  # whether the message arrived; a request that arrived may still lack its reply

    @property
    def message(self) -> str:
        return f"{self.name}:{self.seq}"


@dataclass
class Run:
    """A run directory with the tables, plan and captures from which questions about its messages are
    answered.
    """

    path: Path
    plan: Plan = field(init=False)
    messages: pl.DataFrame = field(init=False)

    def __post_init__(self) -> None:
        """Raises CaptureError if plan or messages are missing or of another version."""
        try:
            self.plan = rundir.read_plan(self.path)
        except rundir.UnreadableError as error:
            raise CaptureError(str(error)) from error
        table = self._table("messages")
        if table is None:
            remedy = "`vnet report` makes it from a complete run whose flows have messages"
            raise CaptureError(f"{self.path / 'messages.parquet'}: does not exist; {remedy}")
        self.messages = table.with_columns(
            total_ns=pl.when(pl.col("pattern") == "request").then("round_trip_ns").otherwise("latency_ns")
        )

    @cached_property
    def points(self) -> dict[str, Frames]:
        """The frames of each kept capture, by capture point."""
        files = {one.name: self.path / "pcap" / f"{one.name}.pcap" for one in self.plan.captures}
        return {name: read(file) for name, file in files.items() if file.is_file()}

    @cached_property
    def places(self) -> Places:
        return Places(self.plan)

    @cached_property
    def settings(self) -> Settings:
        return Settings(self.plan, self._table("events"), self._table("impairments"))

    @cached_property
    def dropped(self) -> dict[str, int]:
        """The number of packets that each link dropped in the run, in both directions together, from its
        samples; empty without samples.
        """
        table = self._table("links")
        if table is None:
            return {}
        ways = table.filter(pl.col("class").is_null()).sort("t_ns").group_by("link", "direction")
        sums = ways.agg((pl.col("dropped").last() - pl.col("dropped").first()).fill_null(0).alias("n"))
        return dict(sums.group_by("link").agg(pl.col("n").sum()).iter_rows())

    @cached_property
    def resent(self) -> frozenset[str]:
        """The nodes whose stacks retransmitted TCP segments; empty if the run has no such counters."""
        table = self._table("stacks")
        if table is None:
            return frozenset()
        own = table.filter((pl.col("counter") == "TcpRetransSegs") & (pl.col("value") > 0))
        return frozenset(own["node"])

    @cached_property
    def power(self) -> list[tuple[int, list[str]]]:
        """Time and nodes of each event of the timeline that acted on nodes, in order."""
        table = self._table("events")
        if table is None:
            return []
        acted = table.filter(pl.col("ok") & pl.col("action").is_in(POWER)).sort("t_ns")
        return list(acted.select("t_ns", "targets").iter_rows())

    @cached_property
    def _follower(self) -> Follower:
        return Follower(self.points, self.places)

    @cached_property
    def _finder(self) -> Finder:
        tables = self._table("links"), self._table("stacks")
        return Finder(self.points, self.places, self.settings, *tables)

    @cached_property
    def _homes(self) -> dict[str, str]:
        return self.plan.homes()

    def _table(self, name: str) -> pl.DataFrame | None:
        file = self.path / f"{name}.parquet"
        if not file.exists():
            return None
        try:
            found = pl.read_parquet(file)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise CaptureError(f"{file}: cannot be read: {error}; reduce the run again") from error
        return found.rename(dict(retired.NAMES.get(name, {})), strict=False)

    def answers(self, rows: pl.DataFrame, *, behind: bool = False) -> Iterator[Answer]:
        """Yields an answer for each row of `messages`. behind: also lists, for each time that a message
        waited, the frames that passed meanwhile; this takes time.
        """
        for row in rows.iter_rows(named=True):
            yield self._answer(row, behind)

    def _answer(self, row: dict[str, Any], behind: bool) -> Answer:
        home, target = self._homes.get(row["sender"], ""), self._homes.get(row["receiver"] or "")
        there = self._legs(row, home, target, reply=False)
        request = row["pattern"] == "request"
        back = self._legs(row, target, home, reply=True) if request and target else ()
        lost, line = None, None
        if row["total_ns"] is None:
            lost = self._sure(self._lost(row, there, back, (home, target)))
        else:
            passed = self._behind if behind else self._turn
            line = self._divide(row, there, back, (home, target), passed)
        return Answer(
            name=row["name"], seq=row["seq"], traffic_class=row["class"], sender=row["sender"],
            receiver=row["receiver"], scheduled_ns=row["scheduled_ns"], latency_ns=row["total_ns"],
            parts=tuple(line.parts) if line else (), lost=lost,
            notes=tuple(self._notes(row, there, line, lost)), received=row["received_ns"] is not None,
        )  # fmt: skip

    def _legs(self, row: dict[str, Any], source: str, to: str | None, *, reply: bool) -> tuple[Leg, ...]:
        flow = self.plan.flows[row["flow"]]
        length = flow.reply.bytes if reply and flow.reply else row["bytes"]
        if not source:
            return ()
        return self._follower.legs(Ident(row["flow"], row["seq"], reply), length, source, to)

    def _divide(
        self, row: dict[str, Any], there: tuple[Leg, ...], back: tuple[Leg, ...],
        ends: tuple[str, str | None], behind: Behind,
    ) -> Line:  # fmt: skip
        """Returns the parts of the time of a message that arrived; `ends` are the sender's and the receiver's
        nodes.
        """
        home, target = ends
        begin, end = row["scheduled_ns"], row["scheduled_ns"] + row["total_ns"]
        line = Line(begin, end)
        handed = min(row["sent_ns"] or end, there[0].first_ns if there else end)
        line.until(max(begin, handed), LATE, f"node {home}")
        reached = there and there[-1].to == target
        if not reached:  # the captured frames do not show the whole path
            line.until(end, UNEXPLAINED, "between the sender's program and the receiver's")
            return line
        divider = Divider(line, self.settings, behind, self._asked)
        divider.along(there, SOCKET)
        if row["pattern"] == "request":
            if row["received_ns"] is not None:
                divider.arrive(row["received_ns"], RECEIVER, str(target))
            if back and back[-1].to == home:
                divider.along(back, PROGRAM)
                divider.arrive(end, RECEIVER, home)
            else:
                line.until(end, UNEXPLAINED, "between the server's program and the client's")
        else:
            divider.arrive(end, RECEIVER, str(target))
        return line

    def _behind(self, leg: Leg, link: Element, point: str, begin_ns: int, end_ns: int) -> dict[str, int]:
        """Returns how many bytes of each sending node passed the end of a link in a time span, the most
        first.
        """
        found: dict[str, int] = {}
        for _, source, size in self._finder.passed(point, begin_ns, end_ns):
            owner = self.places.owner(source)
            way = self.places.way(owner, leg.to_address) if owner else None
            if owner and way and link in way:
                found[owner] = found.get(owner, 0) + size
        return dict(sorted(found.items(), key=lambda one: -one[1]))

    def _turn(self, leg: Leg, link: Element, point: str, begin_ns: int, end_ns: int) -> dict[str, int]:
        """Returns the result of `_behind`; empty if the time span is longer than the sending of one frame."""
        return self._behind(leg, link, point, begin_ns, end_ns) if end_ns - begin_ns <= 2 * TURN_NS else {}

    def _asked(self, leg: Leg, begin_ns: int, end_ns: int) -> Lookup | None:
        """Returns the answer to the ARP request for which the message waited at the first node of a leg."""
        own = [one for one in self.points[leg.stamps[0].point].lookups if one.t_ns <= end_ns]
        mine = [one for one in own if leg.source in map(self.places.owner, (one.sender, one.target))]
        answers = [one for one in mine if one.answer and one.t_ns > begin_ns]
        asked = {one.target for one in mine if not one.answer}
        fits = [one for one in answers if one.sender in asked]
        return fits[-1] if fits else None

    def _lost(
        self, row: dict[str, Any], there: tuple[Leg, ...], back: tuple[Leg, ...], ends: tuple[str, str | None]
    ) -> Lost | None:  # fmt: skip
        """Returns the findings about a message that never arrived; None if it had no expected receiver."""
        home, target = ends
        if row["receiver"] is None:
            return None
        arrived = row["received_ns"] is not None
        legs, source, to = (back, target, home) if arrived else (there, home, target)
        if legs:
            return self._finder.after(legs[-1], to)
        if points := self._follower.unplaced(Ident(row["flow"], row["seq"], arrived)):
            return self._finder.unplaced(points)
        since = row["received_ns"] if arrived else row["sent_ns"]
        return self._finder.unseen(source or "", since, row["scheduled_ns"], self._sees(source or ""))

    def _sure(self, lost: Lost | None) -> Lost | None:
        """Returns the findings about a loss, with the verdict `cannot tell` if a capture may have missed
        frames.
        """
        if lost is None or not self._blind:
            return lost
        text = f"{lost.text}; but a capture may have missed it: {', '.join(self._blind)}"
        return replace(lost, verdict=OPEN, text=text)

    @cached_property
    def _blind(self) -> tuple[str, ...]:
        """The capture points that have a filter, or that lost frames, with the reason."""
        filtered = [f"{one.name} has a filter" for one in self.plan.captures if one.filter]
        counts = self._manifest.get("captures") or {}
        lossy = [f"{name} lost frames" for name, of in counts.items() if of and of.get("dropped_kernel")]
        return (*filtered, *lossy)

    @cached_property
    def _manifest(self) -> dict[str, Any]:
        try:
            return manifest.read(self.path)
        except (OSError, ValueError) as error:
            raise CaptureError(f"{self.path}: its manifest.json cannot be read: {error}") from error

    def _sees(self, node: str) -> str | None:
        """Returns the name of a kept capture at the node itself, with no link between it and the node; None
        if there is none.
        """
        if any(link.a == node or link.b == node for link in self.plan.links):
            return None
        fits = (one.name for one in self.plan.captures if one.at == f"node {node}")
        return next((name for name in fits if name in self.points), None)

    def _notes(
        self, row: dict[str, Any], there: tuple[Leg, ...], line: Line | None, lost: Lost | None
    ) -> Iterable[str]:
        kind = self.plan.flows[row["flow"]].payload.kind
        if not self.points:
            yield NO_CAPTURE
        elif kind not in READ:
            yield f"payloads of kind {kind} are not found in frames, so only records divide the time"
        elif not there and (points := self._follower.unplaced(Ident(row["flow"], row["seq"], False))):
            yield NO_PATH.format(points=", ".join(points))
        elif not there and not (lost and lost.verdict == HOLDS):
            yield "no capture saw a frame that carries it (TLS, a filter or the snaplen may hide it)"
        if self.plan.hosts:
            yield "the lab ran on several hosts: times on different ones carry their clocks' error"
        if line and line.back_ns > TURN_NS:
            yield f"its times contradict each other by up to {line.back_ns / 1e3:,.1f} us"
        if row["receiver"] is None:
            yield "no receiver was expected"
