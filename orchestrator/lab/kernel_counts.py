"""Records counts of the kernel for the nodes over a scenario: the peak memory of their control groups, and
the growth of their network stacks' counters (full buffers, retransmissions, timeouts).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from contract import regular
from orchestrator.lab import operations
from orchestrator.lab.cgroup import text_of
from orchestrator.lab.driver import Driver
from orchestrator.lab.lab import Lab

Counted = dict[str, dict[str, int]]  # by node, by counter as `nstat` names it

STACKS_HEADER = "node,counter,value\n"
PEAKS_FILE = "peaks.csv"  # in raw/
PEAKS_HEADER = "t_ns,node,memory_bytes\n"
# Names of the peak's file in version 1 and version 2 (since Linux 5.19), beside memory.usage_in_bytes and
# memory.current.
PEAKS = ("memory.max_usage_in_bytes", "memory.peak")


def read_stacks(driver: Driver) -> Counted:
    """Returns the counters of each node's network stack that are not zero, by node."""
    return driver.call(operations.Stack())["nodes"]


def write_stacks(path: Path, before: Counted, after: Counted) -> None:
    """Writes the growth of the counters to `path` as CSV; omits counters that did not grow. An added node
    starts at zero, and a removed node is left out.
    """
    lines = [
        f"{node},{counter},{grown}\n"
        for node, counters in sorted(after.items())
        for counter, value in sorted(counters.items())
        if (grown := _growth(before.get(node, {}).get(counter, 0), value))
    ]
    with regular.named(path):
        path.write_text(STACKS_HEADER + "".join(lines))


def _growth(before: int, after: int) -> int:
    """Returns the growth of one counter; if it fell, because a machine restarted, its value."""
    return after - before if after >= before else after


def write_peaks(lab: Lab) -> None:
    """Writes raw/peaks.csv; writes nothing if no node with software has a memory control group with a peak on
    this machine.
    """
    lines = list(_lines(lab))
    if lines:
        path = lab.run_dir / "raw" / PEAKS_FILE
        with regular.named(path):
            path.write_text(PEAKS_HEADER + "".join(lines))


def _lines(lab: Lab) -> Iterator[str]:
    """Yields a line for each node with software whose peak is known; such nodes have their own control groups
    from the start. Yields none in multi-host labs.
    """
    for node in lab.nodes.values() if not lab.plan.hosts else ():
        file = lab.driver.counters(node)["memory"] if node.software else None
        if file is not None and (peak := of_group(file.rpartition("/")[0])) is not None:
            yield f"{lab.loop.clock.now_ns()},{node.name},{peak}\n"


def of_group(group: Path | str) -> int | None:
    """Returns the group's peak memory in bytes; None if the kernel records none or the file cannot
    be read.
    """
    for name in PEAKS:
        try:
            return int(text_of(f"{group}/{name}"))
        except (OSError, ValueError):
            continue
    return None
