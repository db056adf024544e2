"""Judges whether the settings of a campaign were repeated often enough, by the rule of `campaign.until`.

The campaign calls it after each look to decide whether a setting continues; its page shows the state of the
last look.
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

MOST_NAMED = 5  # largest number of wide intervals that the terminal names


@dataclass(frozen=True)
class Known:
    """The precision of one value's mean after a look: `n` of `runs` repetitions measured it; `half` is half
    its interval, None without one.

    A value that some run did not measure, such as the latency of a class that lost all its messages, is never
    precise enough, because the values of the other runs alone are too favourable.
    """

    of: str
    unit: str
    n: int
    mean: float
    half: float | None
    enough: bool
    runs: int

    @property
    def text(self) -> str:
        """The mean with its interval: `170 ± 11 ms (6.5 %) after 8 repetitions`."""
        said = f"{plain(self.mean)} {self.unit}"
        if self.half is not None:
            share = f" ({plain(100 * self.half / self.mean)} %)" if self.mean > 0 else ""
            said = f"{plain(self.mean)} ± {plain(self.half)} {self.unit}{share}"
        if self.n < self.runs:
            return f"{said} after {self.n} of {self.runs} repetitions, since the others did not measure it"
        return f"{said} after {self.n} repetition{'s' if self.n != 1 else ''}"


def known(cells: Sequence[Cell], rule: Enough) -> list[Known]:
    """Returns the precision of each value that the rule chooses, from the runs of one setting; empty if no
    run measured one.
    """
    found: dict[tuple[str, str], list[float]] = {}
    for cell in cells:
        measured = values(cell.run, cell.metrics, rule.metric, intervals=False)
        for value in [] if isinstance(measured, str) else measured:
            found.setdefault((value.of, value.unit), []).append(value.value)
    count = is_count(name_of(rule.metric), rule.metric.unit)
    return [known_mean(of, unit, several, rule, count, len(cells)) for (of, unit), several in found.items()]


def known_mean(
    of: str, unit: str, measured: Sequence[float], rule: Enough, count: bool, runs: int | None = None
) -> Known:
    """Returns the mean of independent repetitions with Student's interval, at the confidence of one look.
    runs: the number of all repetitions, including those that measured no value; by default all measured one.

    Counts have at least the scatter of a Poisson distribution; otherwise a few equal counts would have an
    interval of zero width.
    """
    n, mean = len(measured), math.fsum(measured) / len(measured)
    runs = n if runs is None else runs
    if n < 2 or not math.isfinite(mean):
        return Known(of, unit, n, mean, None, False, runs)
    deviation = float(np.std(measured, ddof=1))
    if count:
        deviation = max(deviation, math.sqrt(max(mean, 0.0)))
    half = t_quantile(0.5 + rule.confidence / 2, n - 1) * deviation / math.sqrt(n)
    narrow = mean > 0 and half <= rule.interval * mean
    return Known(of, unit, n, mean, half, narrow and rule.at_least <= n == runs, runs)


def rule_of(study: Study) -> Enough | None:
    """Returns the rule of `until` of a campaign; None for one without. Raises RunDirectoryError if the rule
    was changed and is no longer valid.
    """
    written = study.about.get("until")
    try:
        return None if written is None else codec.build(Enough, written)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        place = f"{study.root / 'campaign.json'}: until"
        raise RunDirectoryError(f"{place}: was changed ({error}); undo the change") from error


def by_setting(study: Study, rule: Enough) -> list[tuple[str, int, list[Known]]]:
    """Returns the name of each setting, the number of its complete runs, and the precision of its values;
    settings without a complete run come last, by the names of their cells.
    """
    conditions: dict[tuple[str, str], list[Cell]] = {}
    for cell in study.cells:
        conditions.setdefault((cell.scenario, cell.series), []).append(cell)
    found = [(study.named(*one), len(cells), known(cells, rule)) for one, cells in conditions.items()]
    ran = {_setting(cell.name) for cell in study.cells}
    never = dict.fromkeys(_setting(name) for name in study.absent)
    return [*found, *((name, 0, list[Known]()) for name in never if name not in ran)]


def _setting(cell: str) -> str:
    """Returns the name of a cell without its repetition."""
    return cell.rpartition(".r")[0]


def summed_up(study: Study) -> list[str]:
    """Returns lines for the terminal: how many settings are known precisely enough, and which are not; empty
    without a rule.
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
