"""Judges whether the settings of a campaign were repeated often enough, by the rule of `campaign.until`.

The campaign asks after each look whether a setting goes on; its page shows the state of the last look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from contract.enough import Enough
from reports.cell import Cell
from reports.compare.figure import is_count
from reports.expect.values import name_of, values
from reports.metrics.stats import t_quantile
from reports.numbers import plain


@dataclass(frozen=True)
class Known:
    """How well the mean of one value is known after a look at `n` repetitions; `half` is half its interval,
    None without one.
    """

    of: str
    unit: str
    n: int
    mean: float
    half: float | None
    enough: bool

    @property
    def text(self) -> str:
        """The mean with its interval: `170 ± 11 ms (6.5 %) after 8 repetitions`."""
        said = f"{plain(self.mean)} {self.unit}"
        if self.half is not None:
            share = f" ({plain(100 * self.half / self.mean)} %)" if self.mean > 0 else ""
            said = f"{plain(self.mean)} ± {plain(self.half)} {self.unit}{share}"
        return f"{said} after {self.n} repetition{'s' if self.n != 1 else ''}"


def known(cells: Sequence[Cell], rule: Enough) -> list[Known]:
    """How well each value that the rule chooses is known from the runs of one setting; empty if none of the
    runs measured one.
    """
    found: dict[tuple[str, str], list[float]] = {}
    for cell in cells:
        measured = values(cell.run, cell.metrics, rule.metric, intervals=False)
        for value in [] if isinstance(measured, str) else measured:
            found.setdefault((value.of, value.unit), []).append(value.value)
    count = is_count(name_of(rule.metric), rule.metric.unit)
    return [_known(of, unit, several, rule, count) for (of, unit), several in found.items()]


def _known(of: str, unit: str, measured: Sequence[float], rule: Enough, count: bool) -> Known:
    """The mean of independent repetitions with Student's interval, at the confidence of one look.

    Counts scatter at least as a Poisson law does, so that a few equal ones do not seem certain.
    """
    n, mean = len(measured), math.fsum(measured) / len(measured)
    if n < 2 or not math.isfinite(mean):
        return Known(of, unit, n, mean, None, False)
    deviation = float(np.std(measured, ddof=1))
    if count:
        deviation = max(deviation, math.sqrt(max(mean, 0.0)))
    half = t_quantile(0.5 + rule.confidence / 2, n - 1) * deviation / math.sqrt(n)
    return Known(of, unit, n, mean, half, n >= rule.at_least and mean > 0 and half <= rule.interval * mean)
