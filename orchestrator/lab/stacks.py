"""What the nodes' own network stacks have counted over a scenario: full buffers, repetitions, timeouts."""

from __future__ import annotations

from pathlib import Path

from orchestrator.lab import operations
from orchestrator.lab.driver import Driver

Counted = dict[str, dict[str, int]]  # by node, by counter as `nstat` names it

HEADER = "node,counter,value\n"


def read(driver: Driver) -> Counted:
    """Every counter that is not zero."""
    return driver.call(operations.Stack())["nodes"]


def write(path: Path, before: Counted, after: Counted) -> None:
    """What has changed in between. A node that was not there before had counted nothing."""
    lines = [
        f"{node},{counter},{grown}\n"
        for node, counters in sorted(after.items())
        for counter, value in sorted(counters.items())
        if (grown := _growth(before.get(node, {}).get(counter, 0), value))
    ]
    path.write_text(HEADER + "".join(lines))


def _growth(before: int, after: int) -> int:
    """A machine that was started again began at zero."""
    return after - before if after >= before else after
