"""Judges expectations on one run, and on the repetitions of a condition."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from contract.metrics import PERCENTILES
from contract.plan import Bounds, Expectation
from contract.verdict import FAILS, HOLDS, OPEN, Verdict
from reports.cell import Cell
from reports.claims.verdict import Judgement
from reports.expect import observed
from reports.expect.series import Moments, series
from reports.expect.values import Value, values
from reports.metrics.stats import t_interval
from reports.numbers import plain

UNBOUNDED = "does not bound it"  # text about a repetition whose percentile has no upper end of its interval
MOST_REASONS = 5  # largest number of reasons of an expectation's parts that the text lists


def of_run(cell: Cell, one: Expectation) -> Judgement:
    """Returns the verdict on one expectation in one run; `cannot tell` if the run is not complete or what the
    expectation needs was not measured.
    """
    state = cell.run.manifest.state
    if state != "complete":
        return Judgement(OPEN, f"the run is not complete ({state or 'no end is recorded'})")
    if one.subject == "delivered":
        return observed.delivered(cell.run, one)
    if one.subject == "log":
        return observed.log(cell.run, one)
    if one.subject == "event":
        return observed.event(cell.run, one)
    if one.mode != "value":
        found = series(cell.run, one)
        if isinstance(found, str):
            return Judgement(OPEN, found)
        return together([(moments.of, _of_series(moments, one)) for moments in found])
    measured = values(cell.run, cell.metrics, one)
    if isinstance(measured, str):
        return Judgement(OPEN, measured)
    return together([(value.of, of_value(value, one.bounds)) for value in measured])


def of_repetitions(cells: Sequence[Cell], one: Expectation) -> Judgement:
    """Returns the verdict over the repetitions (seeds) of one condition. Estimated values of metrics are
    judged by their t interval over the repetitions, everything else in each repetition.

    The verdict is at best `cannot tell` if a repetition lacks a value.
    """
    if len(cells) == 1:
        return of_run(cells[0], one)
    if one.subject != "metric" or one.mode != "value":
        return together([(f"repetition {cell.repetition}", of_run(cell, one)) for cell in cells])
    by_subject: dict[str, dict[int, Value]] = {}
    absent = []
    for cell in cells:
        measured = values(cell.run, cell.metrics, one, intervals=False)
        if isinstance(measured, str):
            absent.append(f"repetition {cell.repetition}: {measured}")
            continue
        for value in measured:
            by_subject.setdefault(value.of, {})[cell.repetition] = value
    there = len(cells) - len(absent)
    for of, found in by_subject.items():
        if len(found) < there:
            absent.append(f"{of}: measured in {len(found)} of {len(cells)} repetitions")
    parts = [(of, _over_seeds(found, one)) for of, found in by_subject.items()]
    return together([*parts, *(("", Judgement(OPEN, reason)) for reason in absent)])


def _over_seeds(found: Mapping[int, Value], one: Expectation) -> Judgement:
    """Returns the verdict on the values of one subject, which have the numbers of their repetitions as keys.

    If any value is exact, each is judged by itself. Else the t interval over the repetitions is judged; a
    percentile has no lower or upper end if a repetition has none, because with few messages the percentile is
    the largest value and so always too small.
    """
    (first, *_), several = found.values(), found.values()
    if any(value.exact for value in several):
        return together([(f"repetition {n}", of_value(value, one.bounds)) for n, value in found.items()])
    if silent := [f"repetition {n}: {value.method}" for n, value in found.items() if not value.n]:
        return together([("", Judgement(OPEN, reason)) for reason in silent])
    mean = t_interval([value.value for value in several], "repetition")
    low, high, method = mean.low, mean.high, mean.method
    # The percentile of few messages is the largest value, which is always too small.
    if one.name.rpartition("_")[2] in PERCENTILES:
        low = None if any(value.low is None for value in several) else low
        high = None if any(value.high is None for value in several) else high
        if (mean.low, mean.high) != (low, high):
            method += f"; a repetition of {min(value.n for value in several):,} messages {UNBOUNDED}"
    return of_value(Value(first.of, mean.value, low, high, first.unit, False, mean.n, method), one.bounds)


def of_value(value: Value, bounds: Bounds) -> Judgement:
    """Returns the verdict on a value: holds if its whole interval is within the bounds, fails if none of it
    is within one of them, else `cannot tell`.
    """
    verdicts = [*_least(bounds, value.low, value.high), *_most(bounds, value.low, value.high)]
    word: Verdict = FAILS if FAILS in verdicts else OPEN if OPEN in verdicts else HOLDS
    return Judgement(word, _said(value, word))


def _least(bounds: Bounds, low: float | None, high: float | None) -> Iterator[Verdict]:
    if bounds.above is not None:
        yield _side(low is not None and low > bounds.above, high is not None and high <= bounds.above)
    if bounds.at_least is not None:
        yield _side(low is not None and low >= bounds.at_least, high is not None and high < bounds.at_least)


def _most(bounds: Bounds, low: float | None, high: float | None) -> Iterator[Verdict]:
    if bounds.below is not None:
        yield _side(high is not None and high < bounds.below, low is not None and low >= bounds.below)
    if bounds.at_most is not None:
        yield _side(high is not None and high <= bounds.at_most, low is not None and low > bounds.at_most)


def _side(inside: bool, outside: bool) -> Verdict:
    return HOLDS if inside else FAILS if outside else OPEN


def _said(value: Value, word: Verdict) -> str:
    """Returns the value with its interval as text and, if the verdict is open, the means to decide it."""
    if value.exact:
        return "has not recovered" if value.value == math.inf else _amount(value)
    if not value.n:
        return value.method
    if value.low is None and value.high is None:
        text = f"{_amount(value)}, without an interval ({value.method})"
        return f"{text}; a longer hold would tell"
    low, high = ("unknown" if border is None else plain(border) for border in (value.low, value.high))
    text = f"{_amount(value)} (95 %: {low} to {high}; {value.method}; n = {value.n:,})"
    more = "a longer hold" if UNBOUNDED in value.method else "a longer hold or more repetitions"
    return f"{text}; {more} would tell" if word == OPEN else text


def _amount(value: Value) -> str:
    """Returns the value with its unit; a unit that begins with a digit, such as "1 is even", explains the
    value and is left out.
    """
    return plain(value.value) + ("" if value.unit[:1].isdigit() else f" {value.unit}")


def within(value: float, bounds: Bounds) -> bool:
    """Returns whether an exact value is within all bounds; bounds that are None do not count."""
    return bounds.hold(value)


def _of_series(found: Moments, one: Expectation) -> Judgement:
    """Returns the verdict on a series for `always`, `eventually` or `never`; the values were observed and
    need no interval. Intervals without a value make `always` and `never` `cannot tell` unless another value
    fails.
    """
    places = [within(value, one.bounds) for value in found.values]
    if one.mode == "eventually":
        return _eventually(found, places, one)
    wrong = [index for index, inside in enumerate(places) if inside == (one.mode == "never")]
    if not wrong and found.unknown:
        return Judgement(OPEN, found.unknown)
    if not wrong:
        least, most = min(found.values), max(found.values)
        return Judgement(HOLDS, f"{len(places)} intervals, from {plain(least)} to {plain(most)} {one.unit}")
    return Judgement(
        FAILS, f"in {len(wrong)} of {len(places)} intervals, first {_moment(found, wrong[0], one.unit)}"
    )


def _eventually(found: Moments, places: list[bool], one: Expectation) -> Judgement:
    limit = None if one.within_ns is None else found.span.start_ns + one.within_ns
    reached = [index for index, inside in enumerate(places) if inside]
    in_time = [index for index in reached if limit is None or found.ends_ns[index] <= limit]
    if in_time:
        return Judgement(HOLDS, _moment(found, in_time[0], one.unit))
    if limit is not None and found.span.end_ns < limit:
        seconds = (found.span.end_ns - found.span.start_ns) / 1e9
        return Judgement(OPEN, f"not yet when the time ended, after {plain(seconds)} s")
    if found.unknown:
        return Judgement(OPEN, found.unknown)
    if reached:
        return Judgement(FAILS, f"too late: {_moment(found, reached[0], one.unit)}")
    return Judgement(FAILS, f"never; at the end {_moment(found, len(places) - 1, one.unit)}")


def _moment(found: Moments, index: int, unit: str) -> str:
    seconds = (found.ends_ns[index] - found.span.start_ns) / 1e9
    return f"{plain(found.values[index])} {unit} after {plain(seconds)} s"


def together(parts: Sequence[tuple[str, Judgement]]) -> Judgement:
    """Returns one verdict for several parts: fails if a part fails, else `cannot tell` if a part is, else
    holds. The reason has those of up to MOST_REASONS parts with that verdict.
    """
    words = {judged.verdict for _, judged in parts}
    word: Verdict = FAILS if FAILS in words else OPEN if OPEN in words else HOLDS
    deciding = [(of, judged) for of, judged in parts if judged.verdict == word]
    texts = [f"{of}: {judged.reason}" if of and len(parts) > 1 else judged.reason for of, judged in deciding]
    more = len(texts) - MOST_REASONS
    return Judgement(word, "; ".join(texts[:MOST_REASONS]) + (f"; and {more} more" if more > 0 else ""))
