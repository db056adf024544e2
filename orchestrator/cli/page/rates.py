"""Counters as they are sampled into what people look at: shares, bits per second, losses; pure."""

from __future__ import annotations

import csv
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

NODE_FIELDS = 8  # t_ns,node,cpu_ns,rx_bytes,rx_packets,tx_bytes,tx_packets,memory_bytes
LINK_FIELDS = 9  # t_ns,link,direction,bytes,packets,dropped,overlimits,backlog_bytes,backlog_packets
SECOND_NS = 10**9
BUCKETS_S = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # of latency


def _fields(line: str, count: int) -> tuple[int, list[str]] | None:
    """Time and fields; None of the header and of a line of another form."""
    fields = line.split(",")
    if len(fields) != count or not fields[0].isdigit():
        return None
    return int(fields[0]), fields


@dataclass
class Nodes:
    """nodes.csv: {node: {cpu: share of one core, memory_bytes, rx_bps, tx_bps}} over the last interval."""

    now: dict[str, dict[str, float]] = field(default_factory=dict)
    t_ns: int = 0
    last: dict[str, tuple[int, list[int]]] = field(default_factory=dict)

    def feed(self, lines: Iterable[str]) -> None:
        """Take lines in the order of the file."""
        for line in lines:
            if (parsed := _fields(line, NODE_FIELDS)) is None:
                continue
            t_ns, (_, node, *rest) = parsed
            numbers = [int(number or 0) for number in rest]
            before = self.last.get(node)
            self.last[node] = (t_ns, numbers)
            if before is None or t_ns <= before[0]:
                continue
            passed = t_ns - before[0]
            grown = [max(0, a - b) for a, b in zip(numbers, before[1], strict=True)]
            self.t_ns = t_ns
            self.now[node] = {
                "cpu": grown[0] / passed, "memory_bytes": numbers[5],
                "rx_bps": grown[1] * 8 * SECOND_NS / passed, "tx_bps": grown[3] * 8 * SECOND_NS / passed,
            }  # fmt: skip


@dataclass
class Links:
    """links.csv: {link: {direction: {bps, pps, dropped (share of what came), backlog_bytes}}}."""

    now: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    t_ns: int = 0
    last: dict[tuple[str, str], tuple[int, list[int]]] = field(default_factory=dict)

    def feed(self, lines: Iterable[str]) -> None:
        """Take lines in the order of the file."""
        for line in lines:
            if (parsed := _fields(line, LINK_FIELDS)) is None:
                continue
            t_ns, (_, link, direction, *rest) = parsed
            numbers = [int(number or 0) for number in rest]
            before = self.last.get((link, direction))
            self.last[link, direction] = (t_ns, numbers)
            if before is None or t_ns <= before[0]:
                continue
            passed = t_ns - before[0]
            grown = [max(0, a - b) for a, b in zip(numbers, before[1], strict=True)]
            came = grown[1] + grown[2]
            self.t_ns = t_ns
            self.now.setdefault(link, {})[direction] = {
                "bps": grown[0] * 8 * SECOND_NS / passed, "pps": grown[1] * SECOND_NS / passed,
                "dropped": grown[2] / came if came else 0.0, "backlog_bytes": numbers[4],
            }  # fmt: skip


@dataclass
class Flows:
    """messages.csv by class of traffic, of the records since the last look: messages, latency, late ones."""

    classes: dict[str, str]  # of a flow by its number, as it stands in records
    totals: dict[str, dict[str, int]] = field(default_factory=dict)  # since the first look
    latencies: dict[str, tuple[list[int], float]] = field(default_factory=dict)  # by BUCKETS_S; their sum, s
    _sent: dict[tuple[str, str], int] = field(default_factory=dict)  # scheduled, until it arrived
    _came: dict[tuple[str, str], int] = field(default_factory=dict)  # arrived before its S record
    _bulk: dict[str, tuple[int, int]] = field(default_factory=dict)

    def feed(self, lines: Iterable[str]) -> dict[str, dict[str, Any]]:
        """{class: {settled, received, unsettled, latency_p50_ns, latency_max_ns, bps}} of these lines."""
        found: dict[str, dict[str, Any]] = {}
        latencies: dict[str, list[int]] = {}
        for line in lines:
            kind, *fields = next(csv.reader([line])) if '"' in line else line.split(",")
            if not fields:
                continue
            name = self.classes.get(fields[0])
            if name is None:
                continue
            of = found.setdefault(name, {"settled": 0, "received": 0, "unsettled": 0})
            if kind == "S" and len(fields) == 8:
                self._settle(of, fields, latencies.setdefault(name, []))
            elif kind == "R" and len(fields) == 6 and fields[3] == "0" and fields[5] == "0":
                of["received"] += 1
                self._arrive(fields, latencies.setdefault(name, []))
            elif kind == "B" and len(fields) == 9 and fields[2] == "1":
                of["bps"] = of.get("bps", 0.0) + self._progress(fields)
        for name, of in found.items():
            total = self.totals.setdefault(name, {"settled": 0, "received": 0, "unsettled": 0})
            for key in total:
                total[key] += of[key]
        for name, values in latencies.items():
            self._count(name, values)
            if values:
                values.sort()
                found[name] |= {"latency_p50_ns": values[len(values) // 2], "latency_max_ns": values[-1]}
        return found

    def _count(self, name: str, values: list[int]) -> None:
        counts, total_s = self.latencies.get(name, ([0] * (len(BUCKETS_S) + 1), 0.0))
        for value in values:
            counts[bisect_left(BUCKETS_S, value / SECOND_NS)] += 1
        self.latencies[name] = (counts, total_s + sum(values) / SECOND_NS)

    def _settle(self, of: dict[str, Any], fields: list[str], latencies: list[int]) -> None:
        key, scheduled = (fields[0], fields[1]), int(fields[3] or 0)
        of["settled" if fields[7] in ("settled", "sent") else "unsettled"] += 1
        came = self._came.pop(key, None)
        if came is not None and scheduled:
            latencies.append(came - scheduled)
        elif scheduled:
            _keep(self._sent, key, scheduled)

    def _arrive(self, fields: list[str], latencies: list[int]) -> None:
        key, received = (fields[0], fields[1]), int(fields[4] or 0)
        scheduled = self._sent.get(key)
        if scheduled is not None and received:
            latencies.append(received - scheduled)
        elif received:
            _keep(self._came, key, received)

    def _progress(self, fields: list[str]) -> float:
        flow, t_ns, carried = fields[0] + fields[1], int(fields[3] or 0), int(fields[4] or 0)
        before = self._bulk.get(flow)
        self._bulk[flow] = (t_ns, carried)
        if before is None or t_ns <= before[0]:
            return 0.0
        return max(0, carried - before[1]) * 8 * SECOND_NS / (t_ns - before[0])


MOST_KEPT = 20_000  # messages on their way; beyond, the oldest is never matched


def _keep(kept: dict[tuple[str, str], int], key: tuple[str, str], value: int) -> None:
    kept[key] = value
    if len(kept) > MOST_KEPT:
        del kept[next(iter(kept))]
