"""The most memory that each node's control group ever had, as the kernel kept it: a second count beside the
samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from orchestrator.lab.lab import Lab

FILE = "peaks.csv"  # in raw/
HEADER = "t_ns,node,memory_bytes\n"
# Beside memory.usage_in_bytes (version 1) and memory.current (version 2, since Linux 5.19).
PEAKS = ("memory.max_usage_in_bytes", "memory.peak")


def write(lab: Lab) -> None:
    """raw/peaks.csv; nothing where no node has a control group of memory here."""
    lines = list(_lines(lab))
    if lines:
        (lab.run_dir / "raw" / FILE).write_text(HEADER + "".join(lines))


def _lines(lab: Lab) -> Iterator[str]:
    """Of nodes that run something: these have a control group of their own from the beginning."""
    for node in lab.nodes.values() if not lab.plan.hosts else ():
        file = lab.driver.counters(node)["memory"] if node.software else None
        if file is not None and (peak := of_group(Path(file).parent)) is not None:
            yield f"{lab.loop.clock.now_ns()},{node.name},{peak}\n"


def of_group(group: Path) -> int | None:
    """None where the kernel keeps none, or the group is gone."""
    for name in PEAKS:
        try:
            return int((group / name).read_text())
        except (OSError, ValueError):
            continue
    return None
