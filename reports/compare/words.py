"""Writes the result of a comparison as sentences, the answer first."""

from __future__ import annotations

import math
from collections.abc import Sequence

from reports.compare.comparison import DIFFERS, FALSE_ALARM, OPEN, SAME, Comparison, Row
from reports.compare.difference import FEWEST_ALIKE, MOST
from reports.compare.figure import figure
from reports.compare.settings import settings
from reports.numbers import plain

MOST_LINES = 12  # largest number of lines with differences in the terminal
MOST_NAMES = 4  # largest number of names of figures in one of these lines


def percent(share: float) -> str:
    """Returns the absolute value of a share as text in percent: two digits, and whole numbers from ten on."""
    value = abs(share) * 100
    return f"{value:.0f}" if value >= 10 or value == 0 else f"{value:.2g}"


def up(share: float) -> str:
    """Returns a positive share as text in percent, rounded up in the second digit, so that it is a safe
    bound; "0" for zero or less.
    """
    value = share * 100
    if value <= 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.ceil(value / unit - 1e-9) * unit:.6g}"


def sentence(row: Row) -> str:
    """Returns the finding of a row as text: "B is 12 % faster (95 %: 9 to 15)", "no difference larger than 2
    % shown", or "cannot tell" with the interval so far and a remedy.
    """
    if row.finding == DIFFERS:
        return _differs(row)
    changes = row.difference.changes()
    if row.finding == SAME and changes is not None:
        widest = max(map(abs, changes))
        if widest == 0:
            return "no difference: the values are equal"
        return f"no difference larger than {up(widest)} % shown"
    return f"cannot tell: {_remedy(row)}"


def _differs(row: Row) -> str:
    words, one = figure(row.key[0]), row.difference
    changes, change = one.changes(), one.change
    word = words.more if one.shift > 0 else words.less
    if changes is None or change is None:  # the value of A is zero, so there is no relative change
        low, high = one.interval() or (one.shift, one.shift)
        return f"{row.b} is {plain(abs(one.shift))} {row.unit} {word} (95 %: {plain(low)} to {plain(high)})"
    ends = sorted(end if change > 0 else -end for end in changes)
    least, most = (f"{'-' if end < 0 else ''}{percent(end)}" for end in ends)
    return f"{row.b} is {percent(change)} % {word} (95 %: {least} to {most})"


def _remedy(row: Row) -> str:
    """Returns the reason why a row is open, and the remedy: the number of further repetitions by the scatter
    so far.
    """
    if not row.difference.known:
        few = "one run of a side shows" if row.difference.single else f"{row.difference.n} repetitions show"
        return f"{few} no scatter; {FEWEST_ALIKE} or more on each side would"
    if row.difference.error == 0:
        return f"{row.difference.n} equal differences of a figure with few values; more repetitions would"
    if row.difference.single:
        return f"{_so_far(row)} of one pair of runs; more repetitions would"
    if row.more is None:
        what = (
            f"the figure is zero in {row.a}"
            if row.difference.a <= 0
            else f"more than {MOST:,} repetitions would"
        )
        return f"{_so_far(row)}; {what}"
    # the interval is narrow enough, but lies at the edge of the margin or of the corrected level
    if row.more == 0:
        return f"{_so_far(row)}; the difference is near the limit, so more repetitions would"
    return f"{_so_far(row)}; {row.more} more repetition{'s' if row.more > 1 else ''} would"


def _so_far(row: Row) -> str:
    changes = row.difference.changes()
    if changes is None:
        return "no relative difference"
    low, high = (f"{'-' if end < 0 else '+'}{percent(end)}" for end in changes)
    return f"95 %: {low} to {high} %"


def first_line(one: Comparison) -> str:
    """Returns the answer in one line: the numbers of figures that differ, that do not, and that are open."""
    differs, same, open_ = (len(one.found(finding)) for finding in (DIFFERS, SAME, OPEN))
    parts = [f"{differs} differ{'s' if differs == 1 else ''}"] if differs else []
    parts += [f"{same} without a difference above {percent(one.margin)} %"] if same else []
    parts += [f"{open_} cannot be told"] if open_ else []
    return f"{len(one.rows)} figure{'s' if len(one.rows) != 1 else ''}: {', '.join(parts)}"


def method(one: Comparison) -> str:
    """Returns one sentence about how the rows were judged: intervals, correction for several figures, single
    runs.
    """
    said = "each interval covers 95 %"
    if one.family:
        said += (
            f"; the chance that any of the differences is false is at most {FALSE_ALARM * 100:g} % "
            f"(Holm's correction for {one.family} figure{'s' if one.family > 1 else ''})"
        )
    if any(row.difference.error and row.difference.single for row in one.rows):
        said += "; one pair of runs shows how these two runs differ, not whether runs with other seeds would"
    return said


def text(one: Comparison) -> list[str]:
    """Returns the lines for the terminal: the sides, the answer, the settings that differ, up to MOST_LINES
    differences, the other findings, and the method.
    """
    lines = [f"{side.letter} = {side.name} ({_runs(len(side.samples))})" for side in one.sides]
    lines += [first_line(one), _settings(one)]
    differs = one.found(DIFFERS)
    lines += [f"  {row.what}: {_values(row)}: {sentence(row)}" for row in differs[:MOST_LINES]]
    if len(differs) > MOST_LINES:
        lines.append(f"  and {len(differs) - MOST_LINES} more differences")
    lines += _alike(one.found(OPEN)) + _same(one.found(SAME))
    return [*lines, method(one)]


def _settings(one: Comparison) -> str:
    """Returns a line with the settings, versions and machines that differ, or that none does. Differences of
    plans appear only if nothing else differs.
    """
    found = settings(one.sides)
    named = [s for s in found if not s.in_plan] or found
    if not named:
        return "  no recorded setting, version or machine differs"
    return f"  the sides differ in: {_names([f'{s.name} ({s.change})' for s in named])}"


def _alike(rows: Sequence[Row]) -> list[str]:
    """Returns a line for each group of rows that are open for the same reason, up to MOST_LINES."""
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(sentence(row), []).append(row.what)
    lines = [f"  {_names(names)}: {said}" for said, names in found.items()]
    more = [f"  and {len(lines) - MOST_LINES} more that cannot be told"] if len(lines) > MOST_LINES else []
    return lines[:MOST_LINES] + more


def _same(rows: Sequence[Row]) -> list[str]:
    """Returns a line for the rows without a difference that have an interval above zero, and one for those
    with equal values; no line without such rows.
    """
    size = {id(row): max(map(abs, row.difference.changes() or (0.0,))) for row in rows}
    equal = [row.what for row in rows if size[id(row)] == 0]
    other = [row.what for row in rows if size[id(row)] > 0]
    lines = (
        [f"  no difference larger than {up(max(size.values()))} % shown: {_names(other)}"] if other else []
    )
    return lines + ([f"  no difference: the values are equal: {_names(equal)}"] if equal else [])


def _names(names: Sequence[str]) -> str:
    """Returns the first MOST_NAMES names, each once, and the number of the others."""
    known = list(dict.fromkeys(names))
    more = f" and {len(known) - MOST_NAMES} more" if len(known) > MOST_NAMES else ""
    return "; ".join(known[:MOST_NAMES]) + more


def _values(row: Row) -> str:
    return f"{plain(row.difference.a)} -> {plain(row.difference.b)} {row.unit}"


def _runs(count: int) -> str:
    return f"{count} run{'s' if count != 1 else ''}"
