"""One run in its condition: a cell of a campaign, or a run alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reports.metrics.metric import Metric
from reports.rundir import Run


@dataclass(frozen=True)
class Cell:
    """`levels` are those of every factor; `series`, told apart by colour, names those that vary."""

    run: Run
    metrics: list[Metric]
    scenario: str
    levels: dict[str, Any]
    series: str
    repetition: int = 1
    name: str = ""
    machine: str = ""  # that it ran on, where the campaign knows
