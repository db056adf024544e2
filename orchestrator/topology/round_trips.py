"""Reads measured round trips as a trace of delay and loss, in the forms of the LENS dataset (Zhao and Pan,
ACM MMSys 2024): `timestamp,rtt,uplink,downlink` of IRTT with times in ns, and `timestamp,rtt` of ping with
times in s.

Delays are ms. A lost packet has -1 in the column of its direction, or in `rtt` if the direction is unknown,
and 0 in the other columns. The samples are put into bins; a bin has the median of the delays, and the share
of lost packets. Time without a sample is a gap, and is refused.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from contract.plan.traces import State

from .traces import LONGEST_DELAY_NS, LONGEST_NS, Read, TraceError

Column = Literal["rtt", "uplink", "downlink"]
IRTT, PING = ("timestamp", "rtt", "uplink", "downlink"), ("timestamp", "rtt")
LOST = -1.0
MS = 10**6


@dataclass(frozen=True, slots=True)
class Sample:
    """One packet: the line of the file, its time in ns since the first packet, its one-way delay in ns (None:
    unknown), and whether it was lost in this direction.
    """

    line: int
    at_ns: int
    delay_ns: int | None
    lost: bool


def is_one(first: str) -> bool:
    """Returns whether a file with this first line has one of the two forms."""
    return tuple(word.strip() for word in first.split(",")) in (IRTT, PING)


def read(text: str, column: Column, bin_ns: int) -> Read:
    """Returns a direction's trace, with a state for each bin. column: for `rtt`, the delay is half of the
    round trip, and the loss is that of each direction if both have the same. TraceError at the first mistake.
    """
    lines = [(n, line.strip()) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
    names = [word.strip() for word in lines[0][1].split(",")]
    if column not in names:
        rule = f"has no column {column}: ping does not tell the two ways apart"
        raise TraceError(
            lines[0][0], lines[0][1][:40], rule, "leave `column` out, for half of the round trip"
        )
    samples = _samples(lines[1:], names, column)
    if not samples:
        raise TraceError(lines[-1][0], "", "has no line below its columns", "write a line for each packet")
    bins: list[list[Sample]] = [[] for _ in range(samples[-1].at_ns // bin_ns + 1)]
    for sample in samples:
        bins[sample.at_ns // bin_ns].append(sample)
    _insist_whole(bins, samples, bin_ns)
    known = [_median(one) for one in bins]
    delay_ns = next((one for one in known if one is not None), None)
    if delay_ns is None:
        raise TraceError(lines[-1][0], "", "has lost packets only, and no delay", "take another part")
    states = []
    for number, (found, one) in enumerate(zip(known, bins, strict=True)):
        delay_ns = delay_ns if found is None else found
        lost = sum(sample.lost for sample in one) / len(one)
        loss = 1 - math.sqrt(1 - lost) if column == "rtt" else lost
        states.append(State(number * bin_ns, delay_ns=delay_ns, loss=loss))
    return Read(tuple(states), len(bins) * bin_ns, bin_ns)


def _samples(lines: Sequence[tuple[int, str]], names: list[str], column: Column) -> list[Sample]:
    ns = 1 if len(names) == len(IRTT) else 10**9
    found: list[Sample] = []
    begin = before = 0
    for line, text in lines:
        words = [word.strip() for word in text.split(",")]
        if len(words) != len(names):
            rule = f"has {len(words)} values, not {len(names)}"
            raise TraceError(line, text[:40], rule, "write one a column")
        time, *values = words
        at_ns = int(time) if ns == 1 and time.isdigit() else round(_number(line, time, "timestamp") * ns)
        begin = at_ns if not found else begin
        if at_ns < before or at_ns - begin > LONGEST_NS:
            raise TraceError(line, time, "goes back, or is more than a year later", "order the lines by time")
        before = at_ns
        delays = {n: _number(line, v, n) for n, v in zip(names[1:], values, strict=True)}
        found.append(Sample(line, at_ns - begin, *_packet(line, delays, column)))
    return found


def _packet(line: int, delays: dict[str, float], column: Column) -> tuple[int | None, bool]:
    """Returns the one-way delay of a packet in ns, None if it is unknown, and whether the packet was lost in
    this direction.
    """
    if any(delays[name] == LOST for name in (delays if column == "rtt" else (column,))):
        return None, True
    value = delays[column] / 2 if column == "rtt" else delays[column]
    if value < 0 or value * MS > LONGEST_DELAY_NS:
        rule = "is negative, and no lost packet (-1)" if value < 0 else "is more than 274 s"
        raise TraceError(line, f"{column} {delays[column]:g}", rule, "correct it, or leave the line out")
    # 0 means that the packet was lost in the other direction
    return round(value * 1000) * 1000 or None, False


def _median(samples: Sequence[Sample]) -> int | None:
    known = [sample.delay_ns for sample in samples if sample.delay_ns is not None]
    return round(statistics.median(known) / 1000) * 1000 if known else None


def _insist_whole(bins: Sequence[Sequence[Sample]], samples: Sequence[Sample], bin_ns: int) -> None:
    for number, one in enumerate(bins):
        if not one:
            after = next(sample for sample in samples if sample.at_ns >= number * bin_ns)
            rule = (
                f"comes after a gap: nothing was measured from {number * bin_ns / 1e9:g} s on for "
                f"{bin_ns / 1e9:g} s"
            )
            remedy = "cut the file there, or give a longer `bin`"
            raise TraceError(after.line, f"{after.at_ns / 1e9:g} s", rule, remedy)


def _number(line: int, text: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise TraceError(line, f"{name} {text[:40]}", "is not a number", "write for example 52.7, or -1")
    return value
