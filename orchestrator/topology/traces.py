"""Reads traces of links from files: rate, delay and loss over time.

There are two forms. A CSV file names its columns in the first line: `time_s` and any of `rate_mbps`,
`delay_ms`, `loss_percent` (or other units); each line applies from its time to that of the next. A
packet-delivery trace, as in Mahimahi (Netravali and others, USENIX ATC 2015), has on each line a time in
whole milliseconds at which one packet of 1,500 bytes can pass (an opportunity); an opportunity at t belongs
to the millisecond that ends at t. The opportunities are counted in bins of a stated length. The rate is
12,000 bit for each opportunity, divided by the bin's length.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from contract.plan.traces import State, Trace

from ..language.beside import LineError
from ..language.problem import closest

TIMES_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
RATES_BPS = {"bps": 1, "kbps": 10**3, "mbps": 10**6, "gbps": 10**9}
TIME, RATE, DELAY, LOSS = "time", "rate", "delay", "loss"
# For each column its meaning, and the factor from its unit to the internal unit (ns, bit/s, share).
COLUMNS: dict[str, tuple[str, Fraction]] = {
    **{f"{TIME}_{unit}": (TIME, Fraction(size)) for unit, size in TIMES_NS.items()},
    **{f"{RATE}_{unit}": (RATE, Fraction(size)) for unit, size in RATES_BPS.items()},
    **{f"{DELAY}_{unit}": (DELAY, Fraction(size)) for unit, size in TIMES_NS.items()},
    f"{LOSS}_percent": (LOSS, Fraction(1, 100)),
}
EXAMPLE = "`time_s,rate_mbps,delay_ms,loss_percent`"
OPPORTUNITY_BITS = 1500 * 8
MS = 10**6
CLOSEST_NS = MS  # the resolution of a lab's timer
LONGEST_NS = 365 * 86_400 * 10**9
LONGEST_DELAY_NS = 274 * 10**9  # the same in checks/impairments.py
# The queue counts a frame's time up to 60 s (mbuffer in net/sched/sch_htb.c); a full frame takes 12 s at the
# least rate.
LEAST_BPS, MOST_BPS = 1000, 10**12
MOST_STATES = 100_000


class TraceError(LineError):
    """Raised for a mistake in a line of a trace file."""


@dataclass(frozen=True)
class Read:
    """The content of a trace file; `bin_ns` is 0 for a CSV file."""

    states: tuple[State, ...]
    length_ns: int
    bin_ns: int


class OwnTrace(str):
    """A trace as a text value: the text is a name that no topology file can use, and the trace is an
    attribute.
    """

    trace: Trace

    def __new__(cls, trace: Trace) -> OwnTrace:
        settings = f"{trace.sha256} {trace.repeat} {trace.bin_ns}"
        # The trace is of round trips, in which each direction is a separate trace.
        if trace.bin_ns and trace.states[0].delay_ns is not None:
            settings += f" {trace.states}"
        made = super().__new__(cls, "trace-" + hashlib.sha256(settings.encode()).hexdigest()[:12])
        made.trace = trace
        return made


def read(text: str, repeat: bool, bin_ns: int) -> Read:
    """Parses the text of a trace file; TraceError at the first mistake. repeat: the last line of a CSV file
    only states the end. bin_ns: the length of the bins of a packet-delivery trace.
    """
    lines = [(n, line.strip()) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines:
        raise TraceError(1, "", "is empty", f"begin with a line such as {EXAMPLE}")
    delivery = lines[0][1].isascii() and lines[0][1].lstrip("-").isdigit()
    found = _delivery(lines, bin_ns) if delivery else _csv(lines, repeat)
    if len(found.states) > MOST_STATES:
        rule = f"makes {len(found.states)} changes, more than {MOST_STATES}"
        raise TraceError(lines[-1][0], "", rule, "give a longer `bin`, or a shorter trace")
    return found


def first_that_sends(states: Sequence[State]) -> State:
    """Returns the first state whose rate is not 0; the link proof measures the link in this state before the
    trace begins.
    """
    return next(state for state in states if state.rate_bps != 0)


def _delivery(lines: list[tuple[int, str]], bin_ns: int) -> Read:
    times = [_millisecond(n, line) for n, line in lines]
    for (before, after), (n, line) in zip(pairwise(times), lines[1:], strict=True):
        if after < before:
            raise TraceError(n, line, f"goes back: {before} ms stands before it", "order the lines by time")
    length_ns = times[-1] * MS
    if not length_ns:
        raise TraceError(
            lines[-1][0], lines[-1][1], "ends the trace at 0 ms", "the last line says its length"
        )
    counts = [0] * -(-length_ns // bin_ns)
    for time in times:
        counts[max(0, time - 1) * MS // bin_ns] += 1
    states = []
    for index, count in enumerate(counts):
        begin = index * bin_ns
        lasts = min(length_ns, begin + bin_ns) - begin
        states.append(State(begin, rate_bps=round(Fraction(count * OPPORTUNITY_BITS * 10**9, lasts))))
    return Read(_changes(states), length_ns, bin_ns)


def _millisecond(line: int, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) > LONGEST_NS // MS:
        rule = "is no time in whole milliseconds, as the lines of a packet-delivery trace are"
        raise TraceError(line, text[:40], rule, "write for example 120")
    return int(text)


def _csv(lines: list[tuple[int, str]], repeat: bool) -> Read:
    columns = _columns(*lines[0])
    rows = [(n, _state(n, line, columns)) for n, line in lines[1:]]
    if len(rows) < 1 + repeat:
        rule = (
            "has only one line, which with `repeat` is the end" if rows else "has no line below its columns"
        )
        raise TraceError(lines[-1][0], "", rule, "write a line for each change")
    if rows[0][1].at_ns:
        rule = "is not 0, and nothing says what holds before"
        raise TraceError(rows[0][0], _seconds(rows[0][1]), rule, "subtract the first line's time from all")
    for (_, before), (n, after) in pairwise(rows):
        if after.at_ns <= before.at_ns:
            rule = f"goes back: {_seconds(before)} stands before it"
            raise TraceError(n, _seconds(after), rule, "order the lines by time, each once")
        if after.at_ns - before.at_ns < CLOSEST_NS:
            rule = "comes less than 1 ms after the line before, sooner than a link can be changed"
            raise TraceError(n, _seconds(after), rule, "leave lines out")
    length_ns = rows[-1][1].at_ns
    kept = rows[:-1] if repeat else rows
    if (kept[-1][1].rate_bps == 0 and not repeat) or all(state.rate_bps == 0 for _, state in kept):
        rule = "is a rate of zero for ever: nothing after it sends"
        raise TraceError(kept[-1][0], "0", rule, "end with a rate, or write `repeat: true`; or use link-down")
    return Read(_changes([state for _, state in kept]), length_ns, 0)


def _columns(line: int, text: str) -> list[tuple[str, Fraction, str]]:
    found: list[tuple[str, Fraction, str]] = []
    for name in (word.strip() for word in text.split(",")):
        if name not in COLUMNS:
            rule = "is no column of a trace"
            raise TraceError(line, name[:40], rule, f"{closest(name, COLUMNS, what='columns')}: {EXAMPLE}")
        kind, size = COLUMNS[name]
        if any(kind == other for other, *_ in found):
            raise TraceError(line, name, f"is a second column of {kind}", "keep one of them")
        found.append((kind, size, name))
    kinds = {kind for kind, *_ in found}
    if TIME not in kinds or len(kinds) < 2:
        rule = "has no column of time" if TIME not in kinds else "has nothing but times"
        raise TraceError(line, text[:40], rule, f"begin with a line such as {EXAMPLE}")
    return found


def _state(line: int, text: str, columns: list[tuple[str, Fraction, str]]) -> State:
    words = [word.strip() for word in text.split(",")]
    if len(words) != len(columns):
        rule = f"has {len(words)} values, not {len(columns)}"
        raise TraceError(line, text[:40], rule, "write one a column")
    found: dict[str, Fraction] = {}
    for word, (kind, size, name) in zip(words, columns, strict=True):
        value = _number(line, word, name)
        if value < 0:
            raise TraceError(line, f"{name} {word}", "is negative", "write 0 or more")
        found[kind] = value * size
    rate, delay, loss = (found.get(kind) for kind in (RATE, DELAY, LOSS))
    if found[TIME] > LONGEST_NS:
        raise TraceError(line, words[0], "is more than a year", "write a shorter trace")
    if rate is not None and rate and not LEAST_BPS <= rate <= MOST_BPS:
        rule = "is less than 1 kbit/s, the least that a queue keeps in time" if rate < LEAST_BPS else (
            "is more than 1000 Gbit/s")  # fmt: skip
        raise TraceError(line, f"{float(rate):g} bit/s", rule, "write 0, or a rate between them")
    if delay is not None and delay > LONGEST_DELAY_NS:
        rule = "is more than 274 s, the longest that tc can set"
        raise TraceError(line, f"{float(delay) / 1e9:g} s", rule, "write less")
    if loss is not None and loss > 1:
        raise TraceError(line, f"{float(loss * 100):g} %", "is more than 100 %", "write a share of packets")
    return State(
        round(found[TIME]),
        rate_bps=None if rate is None else round(rate),
        delay_ns=None if delay is None else round(delay / 1000) * 1000,
        loss=None if loss is None else float(loss),
    )


def _number(line: int, text: str, name: str) -> Fraction:
    if not text:
        rule = "is empty: a gap, in which nothing says what the link does"
        raise TraceError(
            line, name, rule, "write a value, or leave the line out, and the one before it holds"
        )
    try:
        value = float(text)
    except ValueError:
        raise TraceError(line, f"{name} {text[:40]}", "is not a number", "write for example 12.5") from None
    if not math.isfinite(value):
        raise TraceError(line, f"{name} {text[:40]}", "is not a finite number", "write for example 12.5")
    return Fraction(repr(value))


def _changes(states: Sequence[State]) -> tuple[State, ...]:
    """Returns the states that differ from the one before."""
    found: list[State] = []
    for state in states:
        last = found[-1] if found else None
        same = last is not None and (last.rate_bps, last.delay_ns, last.loss) == (
            state.rate_bps, state.delay_ns, state.loss)  # fmt: skip
        if not same:
            found.append(state)
    return tuple(found)


def _seconds(state: State) -> str:
    return f"{state.at_ns / 1e9:g} s"
