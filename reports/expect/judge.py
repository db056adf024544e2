"""Judges expectations on one run, and on the repetitions of a condition."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

from contract.metrics import PERCENTILES
from contract.plan import DELIVERED, Bounds, Expectation
from contract.verdict import FAILS, HOLDS, OPEN, Verdict
from reports.cell import Cell
from reports.claims.verdict import Judgement
from reports.expect.series import Moments, series
from reports.expect.span import first_ns, narrowed, span_of, whole_ns
from reports.expect.values import Value, values
from reports.metrics.stats import t_interval
from reports.numbers import plain
from reports.rundir import Run

LOGS = "raw/logs"
MOST_REASONS = 5  # of the parts of an expectation
SHOWN = 100  # characters of a line of a log
LONGEST_LINE = 10_000  # characters of a log's line that are searched


def of_run(cell: Cell, one: Expectation) -> Judgement:
    """The verdict on one expectation in one run; `cannot tell` if the run did not come to its end."""
    state = cell.run.manifest.get("state")
    if state != "complete":
        return Judgement(OPEN, f"the run is not complete ({state or 'no end is recorded'})")
    if one.subject == "delivered":
        return _delivered(cell.run, one)
    if one.subject == "log":
        return _log(cell.run, one)
    if one.subject == "event":
        return _event(cell.run, one)
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
    """The verdict over the repetitions (seeds) of one condition: estimated values by the t interval over
    them, all else in each of them.
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
    """The verdict on the values of one subject, by the number of the repetition."""
    (first, *_), several = found.values(), found.values()
    if any(value.exact for value in several):
        return together([(f"repetition {n}", of_value(value, one.bounds)) for n, value in found.items()])
    mean = t_interval([value.value for value in several], "repetition")
    low, high, method = mean.low, mean.high, mean.method
    if one.name.rpartition("_")[2] in PERCENTILES:  # of few messages it is the largest, so always too small
        low = None if any(value.low is None for value in several) else low
        high = None if any(value.high is None for value in several) else high
        if (mean.low, mean.high) != (low, high):
            method += f"; a repetition of {min(value.n for value in several):,} messages does not bound it"
    return of_value(Value(first.of, mean.value, low, high, first.unit, False, mean.n, method), one.bounds)


def of_value(value: Value, bounds: Bounds) -> Judgement:
    """Holds if the whole interval of a value is within the bounds, fails if none of it is."""
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
    """The value with its interval and, where that leaves the verdict open, what would tell."""
    if value.exact:
        return "has not recovered" if value.value == math.inf else _amount(value)
    if not value.n and not value.exact:
        return value.method
    if value.low is None and value.high is None:
        text = f"{_amount(value)}, without an interval ({value.method})"
        return f"{text}; a longer hold would tell"
    low, high = ("unknown" if border is None else plain(border) for border in (value.low, value.high))
    text = f"{_amount(value)} (95 %: {low} to {high}; {value.method}; n = {value.n:,})"
    return f"{text}; more messages or repetitions would tell" if word == OPEN else text


def _amount(value: Value) -> str:
    """The value with its unit; a unit such as "1 is even" explains the value and is left out."""
    return plain(value.value) + ("" if value.unit[:1].isdigit() else f" {value.unit}")


def within(value: float, bounds: Bounds) -> bool:
    """Whether an exact value is within all bounds."""
    return not (
        (bounds.above is not None and value <= bounds.above)
        or (bounds.at_least is not None and value < bounds.at_least)
        or (bounds.below is not None and value >= bounds.below)
        or (bounds.at_most is not None and value > bounds.at_most)
    )


def _of_series(found: Moments, one: Expectation) -> Judgement:
    """The verdict on a series, which was observed and needs no interval."""
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
    if reached:
        return Judgement(FAILS, f"too late: {_moment(found, reached[0], one.unit)}")
    return Judgement(FAILS, f"never; at the end {_moment(found, len(places) - 1, one.unit)}")


def _moment(found: Moments, index: int, unit: str) -> str:
    seconds = (found.ends_ns[index] - found.span.start_ns) / 1e9
    return f"{plain(found.values[index])} {unit} after {plain(seconds)} s"


def _delivered(run: Run, one: Expectation) -> Judgement:
    """Judges all messages that were sent, message by message, whatever their protocol guarantees."""
    if one.during or one.after:
        span = span_of(run, one)
        if span is None:
            return Judgement(OPEN, f"the event {one.during or one.after} did not happen in the hold")
        run = narrowed(run, span)
    table = run.table("messages")
    if table is None:
        return Judgement(OPEN, "no messages were recorded")
    columns = {"traffic_class": "class", "guarantee": "guarantee"}
    rows = table.filter(pl.lit(True), *(pl.col(columns[name]) == value for name, value in one.of.items()))
    here = pl.col("received_ns").is_not_null() | pl.col("replied_ns").is_not_null()
    due = rows.filter(pl.col("receiver").is_not_null() & ((pl.col("sent_ns").fill_null(0) > 0) | here))
    if due.is_empty():
        return Judgement(OPEN, "no message was sent to an expected receiver")
    asked = pl.col("pattern") == "request"
    missing = due.filter(~here | (asked & pl.col("replied_ns").is_null()))
    flying = missing.filter(~pl.col("outcome").is_in(["settled", "sent"])).height
    twice = due.filter((pl.col("copies") > 1) | (pl.col("replies") > 1)).height
    lossless, single = DELIVERED[one.name]
    lost = missing.height - flying
    counts = [f"{lost:,} lost"] * bool(lossless and lost) + [f"{twice:,} twice"] * bool(single and twice)
    of = f"of {due.height:,} deliveries"
    if counts:
        return Judgement(FAILS, f"{', '.join(counts)} {of}")
    if lossless and flying:
        return Judgement(
            OPEN, f"{flying:,} {of} were not settled when the run ended; a longer drain would tell"
        )
    return Judgement(HOLDS, f"all {due.height:,} deliveries")


def _log(run: Run, one: Expectation) -> Judgement:
    nodes = [node.name for node in run.plan.nodes if one.name in (node.name, node.group)]
    files = [file for node in nodes for file in sorted((run.path / LOGS).glob(f"{node}.*.log"))]
    files = [file for file in files if file.is_file() and not file.is_symlink()]
    if not files:
        return Judgement(OPEN, f"there is no log of {one.name} in {LOGS}")
    pattern = re.compile(one.pattern, re.IGNORECASE)
    found = [(file, number, line) for file in files for number, line in _lines(file) if pattern.search(line)]
    if not found:
        word = HOLDS if one.mode == "never" else FAILS
        return Judgement(word, f"no line of {len(files)} log{'s' * (len(files) > 1)} has it")
    file, number, line = found[0]
    word = FAILS if one.mode == "never" else HOLDS
    more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
    return Judgement(word, f"{LOGS}/{file.name}:{number}: {line.strip()[:SHOWN]}{more}")


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    with file.open(encoding="utf-8", errors="replace") as opened:
        for number, line in enumerate(opened, 1):
            yield number, line[:LONGEST_LINE]


def _event(run: Run, one: Expectation) -> Judgement:
    """Judges whether an event of the timeline was applied, or a step of a session happened."""
    span = span_of(run, one) if one.during or one.after else whole_ns(run)
    if span is None:
        return Judgement(OPEN, f"the event {one.during or one.after} did not happen in the hold")
    labels = {event.label for event in run.plan.events}
    times = _labelled(run, one.name) if one.name in labels else _steps(run, one.name)
    if times is None:
        return Judgement(OPEN, "no events were recorded")
    inside = times.filter((times >= span.start_ns) & (times <= span.end_ns)).sort()
    if inside.is_empty():
        short = one.within_ns is not None and span.end_ns < span.start_ns + one.within_ns
        word = HOLDS if one.mode == "never" else OPEN if short else FAILS
        return Judgement(word, "has not happened" + (", but the time ended early" if short else ""))
    after_ns = int(inside[0]) - span.start_ns
    often = "once" if inside.len() == 1 else f"{inside.len():,} times, first"
    said = f"{often} after {plain(after_ns / 1e9)} s"
    if one.mode == "never":
        return Judgement(FAILS, said)
    return Judgement(HOLDS if one.within_ns is None or after_ns <= one.within_ns else FAILS, said)


def _labelled(run: Run, label: str) -> pl.Series | None:
    events = run.table("events")
    if events is None or first_ns(events, label) is None:
        return None if events is None else pl.Series([], dtype=pl.Int64)
    return events.filter((pl.col("label") == label) & pl.col("ok")).get_column("t_ns")


def _steps(run: Run, what: str) -> pl.Series | None:
    sessions = run.table("sessions")
    return None if sessions is None else sessions.filter(pl.col("what") == what).get_column("t_ns")


def together(parts: Sequence[tuple[str, Judgement]]) -> Judgement:
    """One verdict for several parts, of which each must hold; the reasons of those that decide it."""
    words = {judged.verdict for _, judged in parts}
    word: Verdict = FAILS if FAILS in words else OPEN if OPEN in words else HOLDS
    deciding = [(of, judged) for of, judged in parts if judged.verdict == word]
    texts = [f"{of}: {judged.reason}" if of and len(parts) > 1 else judged.reason for of, judged in deciding]
    more = len(texts) - MOST_REASONS
    return Judgement(word, "; ".join(texts[:MOST_REASONS]) + (f"; and {more} more" if more > 0 else ""))
