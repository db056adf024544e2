"""Defines a cell: a run of a campaign, or a single run, with its metrics and factor levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reports.metrics.metric import Metric
from reports.rundir import Run


@dataclass(frozen=True)
class Cell:
    """A run with its metrics. `scenario` names the measured scenario, `levels` has the level of each factor,
    and `series` is the text of the varying factors: figures draw runs of one series in one colour.
    """

    run: Run
    metrics: list[Metric]
    scenario: str
    levels: dict[str, Any]
    series: str
    repetition: int = 1
    name: str = ""
    machine: str = ""  # the machine of the run, if the campaign recorded it
