"""Writes the result of a comparison as sentences, the answer first."""

from __future__ import annotations

import math

from reports.compare.comparison import DIFFERS, FALSE_ALARM, OPEN, SAME, Comparison, Row
from reports.compare.difference import FEWEST_ALIKE, MOST
from reports.compare.figure import figure
from reports.numbers import plain

MOST_LINES = 12  # of differences, in the terminal


def percent(share: float) -> str:
    """A share as a number of percent: two digits, and whole numbers from ten on."""
    value = abs(share) * 100
    return f"{value:.0f}" if value >= 10 or value == 0 else f"{value:.2g}"


def up(share: float) -> str:
    """A positive share in percent, rounded up in the second digit: a bound that is safe to state."""
    value = share * 100
    if value <= 0:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{math.ceil(value / unit - 1e-9) * unit:.6g}"


def sentence(row: Row) -> str:
    """What a row says: "B is 12 % faster (95 %: 9 to 15)", "no difference larger than 2 % shown" or "cannot
    tell".
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
    if changes is None or change is None:  # A is zero: there is no relative change
        low, high = one.interval() or (one.shift, one.shift)
        return f"{row.b} is {plain(abs(one.shift))} {row.unit} {word} (95 %: {plain(low)} to {plain(high)})"
    ends = sorted(end if change > 0 else -end for end in changes)
    least, most = (f"{'-' if end < 0 else ''}{percent(end)}" for end in ends)
    return f"{row.b} is {percent(change)} % {word} (95 %: {least} to {most})"


def _remedy(row: Row) -> str:
    """What it takes to tell: more repetitions, as many as the scatter so far suggests."""
    if not row.difference.known:
        return f"{row.difference.n} of each side are too few to show scatter; {FEWEST_ALIKE} or more would"
    if row.difference.error == 0:
        return f"{row.difference.n} equal differences of a figure with few values; more repetitions would"
    if row.difference.single:
        return f"{_so_far(row)} of one pair of runs; more repetitions would"
    if row.more is None:
        what = "the figure is zero in A" if row.difference.a <= 0 else f"more than {MOST:,} repetitions would"
        return f"{_so_far(row)}; {what}"
    if row.more == 0:  # narrow enough, but on the edge of the margin or of the corrected level
        return f"{_so_far(row)}; the difference is near the limit, so more repetitions would"
    return f"{_so_far(row)}; {row.more} more repetition{'s' if row.more > 1 else ''} would"


def _so_far(row: Row) -> str:
    changes = row.difference.changes()
    if changes is None:
        return "no relative difference"
    low, high = (f"{'-' if end < 0 else '+'}{percent(end)}" for end in changes)
    return f"95 %: {low} to {high} %"


def first_line(one: Comparison) -> str:
    """The answer in one line."""
    differs, same, open_ = (len(one.found(finding)) for finding in (DIFFERS, SAME, OPEN))
    parts = [f"{differs} differ{'s' if differs == 1 else ''}"] if differs else []
    parts += [f"{same} without a difference above {percent(one.margin)} %"] if same else []
    parts += [f"{open_} cannot be told"] if open_ else []
    return f"{len(one.rows)} figures: {', '.join(parts)}"


def method(one: Comparison) -> str:
    """How the rows were judged, in one sentence."""
    said = (
        f"each interval covers 95 %; the chance that any of the differences is false is at most "
        f"{FALSE_ALARM * 100:g} % (Holm's correction for {one.family} figures)"
    )
    if any(row.difference.known and row.difference.single for row in one.rows):
        said += "; one pair of runs shows how these two runs differ, not whether runs with other seeds would"
    return said


def text(one: Comparison) -> list[str]:
    """The lines for the terminal: the answer, the differences, the rest in short."""
    lines = [f"{side.letter} = {side.name} ({_runs(len(side.samples))})" for side in one.sides]
    lines.append(first_line(one))
    differs = one.found(DIFFERS)
    lines += [f"  {row.what}: {_values(row)}: {sentence(row)}" for row in differs[:MOST_LINES]]
    if len(differs) > MOST_LINES:
        lines.append(f"  and {len(differs) - MOST_LINES} more differences")
    lines += [f"  {row.what}: {sentence(row)}" for row in one.found(OPEN)[:MOST_LINES]]
    if same := one.found(SAME):
        widest = max(max(map(abs, row.difference.changes() or (0.0,))) for row in same)
        names = list(dict.fromkeys(row.what for row in same))
        more = f" and {len(names) - 4} more" if len(names) > 4 else ""
        lines.append(f"  no difference larger than {up(widest)} % shown: {'; '.join(names[:4])}{more}")
    return [*lines, method(one)]


def _values(row: Row) -> str:
    return f"{plain(row.difference.a)} -> {plain(row.difference.b)} {row.unit}"


def _runs(count: int) -> str:
    return f"{count} run{'s' if count != 1 else ''}"
