"""Records the peak memory of the control group of each node with software, for comparison with the sampled
memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from orchestrator.lab.cgroup import text_of
from orchestrator.lab.lab import Lab

FILE = "peaks.csv"  # in raw/
HEADER = "t_ns,node,memory_bytes\n"
# Beside memory.usage_in_bytes (version 1) and memory.current (version 2, since Linux 5.19).
PEAKS = ("memory.max_usage_in_bytes", "memory.peak")


def write(lab: Lab) -> None:
    """Writes raw/peaks.csv; writes nothing if no node with software has a memory control group with a peak on
    this machine.
    """
    lines = list(_lines(lab))
    if lines:
        (lab.run_dir / "raw" / FILE).write_text(HEADER + "".join(lines))


def _lines(lab: Lab) -> Iterator[str]:
    """Yields a line for each node with software (such nodes have their own control groups from the start)
    whose peak is known; none in multi-host labs.
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
