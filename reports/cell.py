"""One run in its condition: a cell of a campaign, or a run alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reports.metrics.metric import Metric
from reports.rundir import Run


@dataclass(frozen=True)
class Cell:
    """A run with its metrics. `levels` has every factor; `series` names those that vary, one colour each."""

    run: Run
    metrics: list[Metric]
    scenario: str
    levels: dict[str, Any]
    series: str
    repetition: int = 1
    name: str = ""
    machine: str = ""  # the machine of the run, if the campaign recorded it
