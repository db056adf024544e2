"""Computes arrivals, losses and latency for the page from new message records; reads and writes no files."""

from __future__ import annotations

import csv
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

SECOND_NS = 10**9
# Upper bounds (ns) of the buckets of the latency histogram.
BUCKETS_S = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
LOST_NS = 3 * SECOND_NS  # time after its schedule from which a missing message counts as lost
# largest number of messages that wait for their other record; further ones replace the oldest
MOST_KEPT = 20_000
COUNTED = ("settled", "received", "unsettled", "judged", "lost")
Key = tuple[str, str]  # (flow, number of the message)


class Known(NamedTuple):
    """A flow of the plan, with its class and the number of receivers of each message."""

    name: str
    traffic_class: str
    owed: int = 1  # number of receivers of each message


@dataclass
class Look:
    """Counts and latencies of a flow or class in the records of one `feed`.

    latencies: in ns. bps: bit/s of a bulk transfer; None for other flows.
    """

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0))
    latencies: list[int] = field(default_factory=list)
    bps: float | None = None

    def add(self, other: Look) -> None:
        """Adds the findings of another flow of the same class."""
        for name in COUNTED:
            self.counts[name] += other.counts[name]
        self.latencies += other.latencies
        if other.bps is not None:
            self.bps = (self.bps or 0.0) + other.bps

    def shown(self) -> dict[str, Any]:
        """Returns {settled, received, unsettled, judged, lost, latency_p50_ns?, latency_max_ns?, bps?}; the
        latencies only if there are any, `bps` only for a bulk transfer.
        """
        found: dict[str, Any] = dict(self.counts)
        if self.latencies:
            values = sorted(self.latencies)
            found |= {"latency_p50_ns": values[len(values) // 2], "latency_max_ns": values[-1]}
        return found if self.bps is None else found | {"bps": self.bps}


@dataclass
class Flows:
    """Computes counts and latencies by flow and class from records of messages.csv, which `feed` gets."""

    known: dict[str, Known]  # number of a flow in the records -> the flow
    totals: dict[str, dict[str, int]] = field(default_factory=dict)  # class -> counts since the beginning
    # class -> counts of the histogram, sum of the latencies in s
    latencies: dict[str, tuple[list[int], float]] = field(default_factory=dict)
    each: dict[str, dict[str, Any]] = field(default_factory=dict)  # flow -> its results from the last `feed`
    _looks: dict[str, Look] = field(default_factory=dict)
    _sent: dict[Key, int] = field(default_factory=dict)  # message -> its scheduled time (ns)
    # message -> its arrival time (ns), if it has no S record yet
    _came: dict[Key, int] = field(default_factory=dict)
    _bulk: dict[str, tuple[int, int]] = field(default_factory=dict)
    _there: dict[Key, set[str]] = field(default_factory=dict)  # message -> the receivers that have it
    # messages without a fate so far, with their times
    _open: deque[tuple[int, Key]] = field(default_factory=lambda: deque(maxlen=MOST_KEPT))
    _newest_ns: int = 0
    _since_ns: int | None = None  # for messages scheduled earlier, arrivals may be missing

    def skipped(self) -> None:
        """Records that lines were skipped. Messages that were scheduled before get no verdict, so that none
        of them counts as lost.
        """
        self._since_ns = None

    def feed(self, lines: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Reads new lines of messages.csv. Returns for each class the findings in these lines (`Look.shown`),
        and sets `each`. Ignores malformed lines and flows that are not in `known`.
        """
        self._looks = {}
        for line in lines:
            kind, *fields = next(csv.reader([line])) if '"' in line else line.split(",")
            if not fields or fields[0] not in self.known:
                continue
            of = self._looks.setdefault(fields[0], Look())
            if kind == "S" and len(fields) == 8:
                self._settle(of, fields)
            elif kind == "R" and len(fields) == 6 and fields[3] == "0":
                self._arrive(of, fields)
            elif kind == "B" and len(fields) == 9 and fields[2] == "1":
                of.bps = (of.bps or 0.0) + self._progress(fields)
        self._judge()
        classes: dict[str, Look] = {}
        for number, look in self._looks.items():
            classes.setdefault(self.known[number].traffic_class, Look()).add(look)
        for name, look in classes.items():
            self._count(name, look)
        self.each = {self.known[number].name: look.shown() for number, look in self._looks.items()}
        return {name: look.shown() for name, look in classes.items()}

    def _count(self, name: str, look: Look) -> None:
        total = self.totals.setdefault(name, dict.fromkeys(COUNTED, 0))
        for key in COUNTED:
            total[key] += look.counts[key]
        counts, total_s = self.latencies.get(name, ([0] * (len(BUCKETS_S) + 1), 0.0))
        for value in look.latencies:
            counts[bisect_left(BUCKETS_S, value / SECOND_NS)] += 1
        self.latencies[name] = (counts, total_s + sum(look.latencies) / SECOND_NS)

    def _settle(self, of: Look, fields: list[str]) -> None:
        key, scheduled = (fields[0], fields[1]), int(fields[3] or 0)
        good = fields[7] in ("settled", "sent")
        of.counts["settled" if good else "unsettled"] += 1
        self._newest_ns = max(self._newest_ns, scheduled, int(fields[5] or 0))
        if good and scheduled:
            self._open.append((scheduled, key))
        came = self._came.pop(key, None)
        if came is not None and scheduled:
            of.latencies.append(came - scheduled)
        elif scheduled:
            _keep(self._sent, key, scheduled)

    def _arrive(self, of: Look, fields: list[str]) -> None:
        key, received = (fields[0], fields[1]), int(fields[4] or 0)
        self._newest_ns = max(self._newest_ns, received)
        there = self._there.get(key) or set()
        _keep(self._there, key, there | {fields[2]})
        if fields[5] != "0":
            return  # a repetition
        of.counts["received"] += 1
        scheduled = self._sent.get(key)
        if scheduled is not None and received:
            of.latencies.append(received - scheduled)
        elif received:
            _keep(self._came, key, received)

    def _judge(self) -> None:
        """Judges messages LOST_NS after their scheduled time: counts each receiver that does not have the
        message as a loss. Messages before a skip of records get no verdict.
        """
        if self._since_ns is None:
            self._since_ns = self._newest_ns
            self._open.clear()
        while self._open and self._open[0][0] + LOST_NS <= self._newest_ns:
            scheduled, key = self._open.popleft()
            there, owed = self._there.pop(key, set()), self.known[key[0]].owed
            if scheduled > self._since_ns:
                counts = self._looks.setdefault(key[0], Look()).counts
                counts["judged"] += owed
                counts["lost"] += max(0, owed - len(there))

    def _progress(self, fields: list[str]) -> float:
        flow, t_ns, carried = fields[0] + fields[1], int(fields[3] or 0), int(fields[4] or 0)
        before = self._bulk.get(flow)
        self._bulk[flow] = (t_ns, carried)
        if before is None or t_ns <= before[0]:
            return 0.0
        return max(0, carried - before[1]) * 8 * SECOND_NS / (t_ns - before[0])


def _keep(kept: dict[Key, Any], key: Key, value: Any) -> None:
    kept[key] = value
    if len(kept) > MOST_KEPT:
        del kept[next(iter(kept))]
