"""Reads counters of the nodes' network stacks before and after a scenario (full buffers, retransmissions,
timeouts), and writes their growth.
"""

from __future__ import annotations

from pathlib import Path

from orchestrator.lab import operations
from orchestrator.lab.driver import Driver

Counted = dict[str, dict[str, int]]  # by node, by counter as `nstat` names it

HEADER = "node,counter,value\n"


def read(driver: Driver) -> Counted:
    """Returns the counters of each node's network stack that are not zero, by node."""
    return driver.call(operations.Stack())["nodes"]


def write(path: Path, before: Counted, after: Counted) -> None:
    """Writes the growth of the counters to `path` as CSV, without counters that did not grow; an added node
    starts at zero, a removed one is left out.
    """
    lines = [
        f"{node},{counter},{grown}\n"
        for node, counters in sorted(after.items())
        for counter, value in sorted(counters.items())
        if (grown := _growth(before.get(node, {}).get(counter, 0), value))
    ]
    path.write_text(HEADER + "".join(lines))


def _growth(before: int, after: int) -> int:
    """Returns the growth of one counter; for a counter that fell (a restarted machine), its value."""
    return after - before if after >= before else after
