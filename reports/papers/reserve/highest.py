"""Makes the table of test 3: the highest rate of each protocol, and the limit that the lowest
higher rate broke.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from reports.cell import Cell
from reports.metrics.messages import held_messages
from reports.papers.paper import Table
from reports.papers.reserve.boxes import MS, PROTOCOLS, SYSTEMS
from reports.series import parameters
from reports.study import Study

BOUND_MS = 100.0  # highest 99th percentile that holds, as in reserve-3-highest-rate.yaml
WAYS = ("uplink", "downlink")


@dataclass(frozen=True)
class Tried:
    """The result of a protocol at a rate: the share of messages that never arrived (0 to 1), and the 99th
    percentile of the latency.
    """

    system: str
    protocol: str
    rate: int
    lost: float
    p99_ms: float

    @property
    def held(self) -> bool:
        return not self.lost and self.p99_ms <= BOUND_MS

    @property
    def failing(self) -> str:
        """The limits that the protocol broke at this rate, as text; empty if it broke none."""
        lost = f"{100 * self.lost:.3g} % never arrived" if self.lost else ""
        slow = f"99th percentile {self.p99_ms:.0f} ms" if self.p99_ms > BOUND_MS else ""
        return ", ".join(part for part in (lost, slow) if part)


def tried(cell: Cell) -> Iterator[Tried]:
    """Yields the result of a run of test 3 for each protocol with messages in both directions: the larger
    loss and the larger latency of the two. It yields nothing for other runs.
    """
    said, messages = parameters(cell.run) | cell.levels, held_messages(cell.run)
    if messages is None or not {f"{protocol}_rate" for protocol in PROTOCOLS} <= said.keys():
        return
    expected = messages.filter(pl.col("receiver").is_not_null())
    for protocol in PROTOCOLS:
        ways = [expected.filter(pl.col("class") == f"{way}-{protocol}") for way in WAYS]
        if any(rows.is_empty() for rows in ways):
            continue
        lost = max(rows["received_ns"].null_count() / rows.height for rows in ways)
        slow = [rows["latency_ns"].quantile(0.99) for rows in ways]
        p99_ms = max((MS * value for value in slow if value is not None), default=0.0)
        yield Tried(str(said["system"]), protocol, int(said[f"{protocol}_rate"]), lost, p99_ms)


def tables(study: Study) -> tuple[Table, ...]:
    """Returns the table with one row for each protocol and, for each system, the highest rate below all
    failures and the limits that the lowest failing rate broke; empty without runs of the test.
    """
    found = [one for cell in study.cells for one in tried(cell)]
    if not found:
        return ()
    systems = [system for system in SYSTEMS if any(one.system == system for one in found)]
    head = ["", *(text for system in systems for text in (SYSTEMS[system], "what failed above"))]
    body = []
    for protocol, title in PROTOCOLS.items():
        row = [title]
        for system in systems:
            row += _found([one for one in found if (one.system, one.protocol) == (system, protocol)])
        body.append(tuple(row))
    caption = (
        "Test 3. The highest rate, messages a second in both directions at once, at which every message "
        f"arrived and 99 % within {BOUND_MS:g} ms, as the search found it; and the least that failed."
    )
    return (Table("", caption, tuple(head), tuple(body)),)


def _found(runs: list[Tried]) -> tuple[str, str]:
    failed = min((one for one in runs if not one.held), key=lambda one: one.rate, default=None)
    held = [one.rate for one in runs if one.held and (failed is None or one.rate < failed.rate)]
    if failed is None:
        return (f"at least {max(held):,}" if held else "", "")
    why = f"{failed.rate:,}: {failed.failing}"
    return (f"{max(held):,}" if held else f"below {failed.rate:,}", why)
