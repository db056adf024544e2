"""Judges whether the settings of a campaign were repeated often enough, by the rule of `campaign.until`.

The campaign asks after each look whether a setting goes on; its page shows the state of the last look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from contract import codec
from contract.enough import Enough
from reports.cell import Cell
from reports.compare.figure import is_count
from reports.errors import RunDirectoryError
from reports.expect.values import name_of, values
from reports.metrics.stats import t_quantile
from reports.numbers import plain
from reports.study import Study

MOST_NAMED = 5  # of wide intervals in the terminal


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
    return [known_mean(of, unit, several, rule, count) for (of, unit), several in found.items()]


def known_mean(of: str, unit: str, measured: Sequence[float], rule: Enough, count: bool) -> Known:
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


def rule_of(study: Study) -> Enough | None:
    """The rule of `until` of a campaign; None for one without. RunDirectoryError if somebody changed it."""
    written = study.about.get("until")
    try:
        return None if written is None else codec.build(Enough, written)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        place = f"{study.root / 'campaign.json'}: until"
        raise RunDirectoryError(f"{place}: was changed ({error}); undo the change") from error


def by_setting(study: Study, rule: Enough) -> list[tuple[str, int, list[Known]]]:
    """The name of each setting, the number of its complete runs, and how well its values are known; last the
    settings without a complete run, by the names of their cells.
    """
    conditions: dict[tuple[str, str], list[Cell]] = {}
    for cell in study.cells:
        conditions.setdefault((cell.scenario, cell.series), []).append(cell)
    found = [(study.named(*one), len(cells), known(cells, rule)) for one, cells in conditions.items()]
    ran = {_setting(cell.name) for cell in study.cells}
    never = dict.fromkeys(_setting(name) for name in study.absent)
    return [*found, *((name, 0, list[Known]()) for name in never if name not in ran)]


def _setting(cell: str) -> str:
    """The name of a cell without its repetition."""
    return cell.rpartition(".r")[0]


def summed_up(study: Study) -> list[str]:
    """Lines for the terminal: how many settings are known well enough, and which are not; empty without a
    rule.
    """
    if (rule := rule_of(study)) is None:
        return []
    settings = by_setting(study, rule)
    wide = [
        f"  {name}, {one.of}: {one.text}" for name, _, found in settings for one in found if not one.enough
    ]
    wide += [f"  {name}: no run measured it" for name, _, found in settings if not found]
    good = sum(bool(found) and all(one.enough for one in found) for _, _, found in settings)
    share = plain(100 * rule.interval)
    first = f"{rule.metric.text} known within {share} % of its mean: {good} of {len(settings)} settings"
    more = [f"  and {len(wide) - MOST_NAMED} more"] if len(wide) > MOST_NAMED else []
    return [first, *wide[:MOST_NAMED], *more]
