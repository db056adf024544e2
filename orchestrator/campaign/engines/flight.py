"""Tracks the cells that an engine runs, and finds cells that take much longer than the others."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from orchestrator.campaign.cells import planned
from orchestrator.campaign.engines.task import Result, Task
from orchestrator.topology import Cell

if TYPE_CHECKING:
    from distributed import Future

LATE = 3.0  # a cell is late if it takes this many times the median of the complete cells
FEWEST = 3  # least number of complete cells before another one can be late
LEAST_S = 10.0  # shortest running time of a cell that counts as late


@dataclass
class Flight:
    """One cell that an engine runs. sent: the number of times that its task was submitted. line: its line in
    the journal, empty until it has begun. attempt: identifies the present execution. began: monotonic time in
    seconds. named: True if the cell was reported as late. unfit: for each machine (by boot id) that cannot
    carry the cell, the reason.
    """

    number: int
    cell: Cell
    task: Task
    future: Future[Result] | None = None
    sent: int = 0
    line: dict[str, Any] = field(default_factory=dict)
    attempt: str = ""
    machine: str = ""
    began: float = 0.0
    named: bool = False
    unfit: dict[str, str] = field(default_factory=dict)

    def begins(self, attempt: str, machine: str, run_dir: str) -> None:
        """Records that an execution of the cell, the first or a repeated one, begins on a machine."""
        self.attempt, self.machine, self.began, self.named = attempt, machine, time.monotonic(), False
        self.line = {
            **planned(self.cell),
            "number": self.number,
            "run_dir": run_dir,
            "machine": machine,
            "lab": self.task.state,
            "slot": str(self.number),
        }

    def failed(self, why: str) -> Result:
        """Returns the result `failed` for a cell whose worker could not report one itself."""
        return Result("failed", why, 0.0, self.machine, "", self.attempt)

    def lost(self) -> Result:
        """Returns the result `interrupted` for a cell that lost its worker after the campaign was stopped."""
        return Result("interrupted", "its worker was lost", 0.0, self.machine, "", self.attempt)


class Stragglers:
    """Finds late cells: they run for LATE times the median of the complete cells, and at least LEAST_S.
    Before FEWEST cells are complete, none is late.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._took: list[float] = []

    def took(self, result: Result) -> None:
        """Records the duration of a complete cell; ignores other results."""
        if result.state == "complete":
            self._took.append(result.wall_s)

    def late(self, flight: Flight) -> str | None:
        """Returns a message if the cell is late, once for each execution; None if it is not late, has not
        begun, or was reported before.
        """
        if flight.named or not flight.line or len(self._took) < FEWEST:
            return None
        usual, so_far = statistics.median(self._took), self._clock() - flight.began
        if so_far < max(LATE * usual, LEAST_S):
            return None
        flight.named = True
        return (
            f"straggler: it has run for {so_far:.0f} s on {flight.machine}, where half of the others took "
            f"{usual:.0f} s or less"
        )
