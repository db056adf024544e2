"""Previews a campaign: its cells in the order of running, how many cells there may be, and their expected
time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.topology import Campaign, Cell


@dataclass(frozen=True)
class Expected:
    """One cell: its place in the order of running, and the expected seconds of its run. In virtual time,
    `lab_s` are seconds on the lab's clock, which is faster or slower than the machine's.
    """

    number: int
    cell: Cell
    lab_s: float  # duration of ramp and hold
    around_s: float  # duration of the rest: the lab is made, proven and removed, and its tables are computed

    @property
    def wall_s(self) -> float:
        """The expected seconds in real time."""
        return self.lab_s + self.around_s


@dataclass(frozen=True)
class Preview:
    """The cells that are known before the first run, the largest possible number of runs, and the rules that
    add runs.
    """

    cells: tuple[Expected, ...]
    most: int | None  # None: unknown, because a search adds runs depending on results
    adds: tuple[str, ...]  # sentences on the rules that add runs

    @property
    def wall_s(self) -> float:
        """The expected seconds in real time of the known cells, if they run one after another."""
        return sum(one.wall_s for one in self.cells)

    @property
    def lab_s(self) -> float:
        """The expected seconds on all labs' clocks, added up."""
        return sum(one.lab_s for one in self.cells)


Around = Callable[[Plan], float]


def preview(campaign: Campaign, lab: str | None, around_s: Around) -> Preview:
    """Returns what a campaign will run; `around_s` estimates the seconds of a run that are not ramp or hold.

    Raises TopologyError if a cell has no plan.
    """
    times: dict[int, tuple[float, float]] = {}
    found = []
    for number, cell in enumerate(campaign.cells, 1):
        if id(cell.loaded) not in times:  # repetitions differ only in their seeds
            plan = make_plan(cell.loaded, lab, cell.seed)
            times[id(cell.loaded)] = (plan.ramp_ns + plan.hold_ns) / 1e9, around_s(plan)
        found.append(Expected(number, cell, *times[id(cell.loaded)]))
    return Preview(tuple(found), _most(campaign), tuple(_adds(campaign)))


def _most(campaign: Campaign) -> int | None:
    """Returns the largest number of runs; None if it is unbounded or unknown."""
    if campaign.searches:
        return None
    repetitions = campaign.until.at_most if campaign.until else campaign.repetitions
    return campaign.settings * repetitions * (1 + campaign.rerun_suspect)


def _adds(campaign: Campaign) -> list[str]:
    """Returns a sentence for each rule that adds runs to those that are known."""
    found = []
    if campaign.searches:
        found.append(f"the search for {', '.join(campaign.searches)} adds runs until it has found the values")
    if (until := campaign.until) is not None:
        found.append(
            f"each of {campaign.settings} settings continues, up to {until.at_most} repetitions, until half "
            f"the interval of {until.metric} is at most {100 * until.interval:g} % of its mean"
        )
    if campaign.rerun_suspect:
        times = f"{campaign.rerun_suspect} more time{'s' if campaign.rerun_suspect > 1 else ''}"
        found.append(f"a run that the machine disturbed is made again, at most {times}")
    return found


def as_data(one: Expected) -> dict[str, Any]:
    """Returns a cell as JSON data."""
    cell = one.cell
    return {
        "number": one.number,
        "cell": cell.name,
        "topology": cell.topology,
        "levels": cell.levels,
        "repetition": cell.repetition,
        "seed": cell.seed,
        "lab_s": round(one.lab_s, 3),
        "around_s": round(one.around_s, 3),
    }
