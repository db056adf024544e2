"""What a page says of virtual time: what its clock and its CPU figures are, and what they are not."""

from __future__ import annotations

from reports.rundir import Run
from reports.study import Study


def statement(study: Study) -> str | None:
    """The paragraph below the title; None where all runs were made in real time."""
    runs = [cell.run for cell in study.cells if cell.run.virtual]
    if not runs:
        return None
    costs = sorted({syscall_ns(run) for run in runs})
    words = " and ".join(f"{cost / 1000:g} µs" for cost in costs)
    which = "" if len(runs) == len(study.cells) else f"{len(runs)} of {len(study.cells)} runs: "
    return (
        f"{which}Made in virtual time: the lab's clock jumps to the next event whenever everything waits, so "
        "the speed and the load of the machine outside do not show in any figure, and the same file, seed "
        "and programs give the same bytes again (vnet verify). CPU figures are modelled, not measured: each "
        f"system call of a node takes {words} of one core, and computing in between takes none; a program "
        "that computes much looks lighter than it is. Limits in MHz are parts of a core of 2000 MHz."
    )


def syscall_ns(run: Run) -> int:
    """The cost model's one constant."""
    return int((run.manifest.get("kernel") or {}).get("syscall_ns") or 0)
