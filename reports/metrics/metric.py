"""One headline figure: name, scope, value, unit, n, interval and how it was computed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from reports.metrics.stats import Estimate


@dataclass(frozen=True)
class Metric:
    """`low` and `high` bound the 95 % interval; None where the method gives none and says so."""

    name: str
    scope: str
    value: float
    unit: str
    n: int
    low: float | None
    high: float | None
    method: str


def metric(name: str, scope: str, unit: str, estimate: Estimate, times: float = 1.0) -> Metric:
    """The estimate as a metric; `times` converts its unit."""
    low = None if estimate.low is None else estimate.low * times
    high = None if estimate.high is None else estimate.high * times
    return Metric(name, scope, estimate.value * times, unit, estimate.n, low, high, estimate.method)


def count(name: str, scope: str, value: float, unit: str, n: int, method: str) -> Metric:
    """A counted or extreme value, which has no interval."""
    return Metric(name, scope, float(value), unit, n, None, None, method)


def find(metrics: Iterable[Metric], name: str, scope: str) -> Metric | None:
    """The metric of that name and scope, or None."""
    return next((m for m in metrics if m.name == name and m.scope == scope), None)


def write(metrics: list[Metric], path: Path) -> None:
    """Write summary.json."""
    path.write_text(json.dumps([asdict(m) for m in metrics], indent=1) + "\n", encoding="utf-8")
