"""Counters of the nodes' network stacks over a scenario: full buffers, retransmissions, timeouts."""

from __future__ import annotations

from pathlib import Path

from orchestrator.lab import operations
from orchestrator.lab.driver import Driver

Counted = dict[str, dict[str, int]]  # by node, by counter as `nstat` names it

HEADER = "node,counter,value\n"


def read(driver: Driver) -> Counted:
    """Reads every counter that is not zero."""
    return driver.call(operations.Stack())["nodes"]


def write(path: Path, before: Counted, after: Counted) -> None:
    """Writes the growth of the counters. An added node starts at zero."""
    lines = [
        f"{node},{counter},{grown}\n"
        for node, counters in sorted(after.items())
        for counter, value in sorted(counters.items())
        if (grown := _growth(before.get(node, {}).get(counter, 0), value))
    ]
    path.write_text(HEADER + "".join(lines))


def _growth(before: int, after: int) -> int:
    """Growth of one counter; a machine that was restarted begins at zero."""
    return after - before if after >= before else after
