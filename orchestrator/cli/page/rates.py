"""Computes CPU shares, bit rates and losses for the page from lines of sampled counters; reads no files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

NODE_FIELDS = 8  # t_ns,node,cpu_ns,rx_bytes,rx_packets,tx_bytes,tx_packets,memory_bytes
LINK_FIELDS = 9  # t_ns,link,direction,bytes,packets,dropped,overlimits,backlog_bytes,backlog_packets
SECOND_NS = 10**9


def _fields(line: str, count: int) -> tuple[int, list[str]] | None:
    """Returns (time in ns, fields) of a line with `count` fields; None for the header and for malformed
    lines.
    """
    fields = line.split(",")
    if len(fields) != count or not fields[0].isdigit():
        return None
    return int(fields[0]), fields


@dataclass
class Nodes:
    """Rates of nodes from lines of nodes.csv.

    now: node -> {cpu (share of one core), memory_bytes, rx_bps, tx_bps} over its last interval. t_ns: time of
    the last sample. last: node -> time and counters of its last sample.
    """

    now: dict[str, dict[str, float]] = field(default_factory=dict)
    t_ns: int = 0
    last: dict[str, tuple[int, list[int]]] = field(default_factory=dict)

    def feed(self, lines: Iterable[str]) -> None:
        """Reads new lines in the order of the file, and updates the rates; the first sample of a node gives
        no rate.
        """
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
    """Rates of links from lines of links.csv.

    now: link -> direction -> {bps, pps, dropped (share of all packets), backlog_bytes} over the last
    interval. t_ns: time of the last sample. last: (link, direction) -> time and counters of its last sample.
    """

    now: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    t_ns: int = 0
    last: dict[tuple[str, str], tuple[int, list[int]]] = field(default_factory=dict)

    def feed(self, lines: Iterable[str]) -> None:
        """Reads new lines in the order of the file, and updates the rates; the first sample of a direction
        gives no rate.
        """
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
