"""Writes the page's statement on virtual time: the meaning of its clock and of its CPU figures."""

from __future__ import annotations

from reports.rundir import Run
from reports.study import Study


def statement(study: Study) -> str | None:
    """Returns the statement as one paragraph; None if all runs were in real time."""
    runs = [cell.run for cell in study.cells if cell.run.virtual]
    if not runs:
        return None
    costs = sorted({syscall_ns(run) for run in runs})
    words = " and ".join(f"{cost / 1000:g} µs" for cost in costs)
    which = "" if len(runs) == len(study.cells) else f"{len(runs)} of {len(study.cells)} runs: "
    return (
        f"{which}The lab's clock jumps to the next event whenever everything waits. The speed and load of "
        "the machine outside therefore do not affect any figure, and the same file, seed and programs give "
        "the same bytes again (vnet verify). CPU figures are modelled, not measured: each system call of a "
        f"node takes {words} of one core, and computing in between takes no time, so a program that computes "
        "much looks lighter than it is. Limits in MHz are relative to a core of 2000 MHz."
    )


def syscall_ns(run: Run) -> int:
    """Returns the modelled CPU time of a system call in ns, the only constant of virtual time's cost model; 0
    if it is not recorded.
    """
    return int(run.manifest.kernel.get("syscall_ns") or 0)
