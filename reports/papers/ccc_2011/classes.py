"""Calculates the consequences of figure 4.1's application classes, and judges the flows of runs by them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import polars as pl

from reports.numbers import plain
from reports.papers.ccc_2011.intervals import sent, works
from reports.papers.paper import Table
from reports.papers.published import reference
from reports.study import Study

ROOM = Path(__file__).parent
YEAR_S = 365.25 * 86400
CONFIDENCE = 0.95
SPANS = {"until 40 s": (0.0, 40.0), "40 to 100 s": (40.0, 100.0)}
FLOWS = ("a-hrt", "b-hrt", "a-lrt", "b-lrt", "a-be", "b-be")


@dataclass(frozen=True, slots=True)
class Application:
    """A class of figure 4.1; a limit that the figure leaves open is None."""

    name: str
    use: str
    rates: tuple[int, ...]  # samples per second
    availability: float  # share of the time, 0 to 1
    interruption_ms: float | None  # "max interruption" of the figure; the interruption must be shorter
    latency_ms: float | None  # the latency must be lower

    @property
    def down_s(self) -> float:
        """The seconds of a year in which the class may lack its data."""
        return (1 - self.availability) * YEAR_S

    @property
    def bridged(self) -> int | None:
        """The number of consecutive samples that may be missing at the highest rate: those due within an
        interruption that is shorter than the limit.
        """
        if self.interruption_ms is None:
            return None
        return max(0, math.ceil(self.interruption_ms * max(self.rates) / 1000) - 1)

    @property
    def needed(self) -> int:
        """The number of samples that must all arrive in time to show the availability with CONFIDENCE."""
        return math.ceil(math.log(1 - CONFIDENCE) / math.log(self.availability))


@dataclass(frozen=True, slots=True)
class Delivery:
    """The delivery of one flow in a part of a run."""

    samples: int
    in_time: int
    # The longest: from the due time of the first missing sample to that of the next sample in time.
    interruption_ms: float


def applications() -> tuple[Application, ...]:
    """Returns the classes of figure 4.1 in their order."""
    return tuple(
        Application(
            name,
            one["use"],
            tuple(one["hz"]),
            one["availability_percent"] / 100,
            one["interruption_ms"],
            one["latency_ms"],
        )
        for name, one in reference(ROOM)["figure_4_1"].items()
    )


def delivery(rows: pl.DataFrame, latency_ms: float | None, end_s: float) -> Delivery:
    """Returns the delivery of one flow's messages. rows: `at`, the scheduled time in s, and `latency_ns`,
    null if the message was lost. latency_ms: a sample with a smaller latency is in time; None: with any
    latency. end_s: the end of the observation, at which an interruption ends if no later sample ended it.
    """
    within = pl.col("latency_ns").is_not_null()
    if latency_ms is not None:
        within &= pl.col("latency_ns") < latency_ms * 1e6
    ordered = rows.sort("at").select("at", ok=within.fill_null(False))
    longest, since, good = 0.0, None, 0
    for at, ok in ordered.iter_rows():
        good += ok
        if not ok and since is None:
            since = at
        elif ok and since is not None:
            longest, since = max(longest, at - since), None
    if since is not None:
        longest = max(longest, end_s - since)
    return Delivery(ordered.height, good, 1000 * longest)


def meets(found: Delivery, of: Application) -> bool | None:
    """Returns whether a delivery meets the class: False if its availability is below the class's or its
    longest interruption not below the limit; None if nothing contradicts the class, but the samples are too
    few to show its availability.
    """
    if found.in_time < of.availability * found.samples:
        return False
    if of.interruption_ms is not None and found.interruption_ms >= of.interruption_ms:
        return False
    whole = found.in_time == found.samples
    return True if whole and found.samples >= of.needed else None


def tables(study: Study) -> tuple[Table, ...]:
    """Returns figure 4.1 with the values that follow from it, and the classes that the flows of the study's
    runs meet; nothing for a study without the paper's flows.
    """
    judged = tuple(_judged(study))
    return (_calculated(), Table("", JUDGED, JUDGED_HEAD, judged)) if judged else ()


JUDGED = (
    "The flows, judged by figure 4.1, all runs together: the share of the samples in time, and the longest "
    "interruption. A run has too few samples to show an availability; *not contradicted* means that none was "
    "late or lost."
)
JUDGED_HEAD = ("flow, cooperation", "of the run", "samples", "class A", "class B", "class C")


def _calculated() -> Table:
    rows = []
    for one in applications():
        highest = max(one.rates)
        limits = (one.interruption_ms, one.latency_ms)
        rows.append((
            f"{one.name}: {one.use}",
            ", ".join(map(str, one.rates)),
            f"{100 * one.availability:g}",
            f"{one.down_s:.3g}",
            *(plain(limit) if limit is not None else "" for limit in limits),
            "" if one.bridged is None else str(one.bridged),
            f"{one.needed:,}",
            f"{one.needed / highest / 3600:.3g}",
        ))  # fmt: skip
    head = (
        "class", "samples a second", "availability, %", "without data in a year, s", "interruption below, ms",
        "latency below, ms", "samples in it at the highest rate", "samples to show it", "hours of them",
    )  # fmt: skip
    caption = (
        "Figure 4.1, and what follows from it: the seconds of a year, the samples that an interruption may "
        "take, and the samples without any loss that show the availability with 95 % confidence."
    )
    return Table("", caption, head, tuple(rows), printed=(1, 2, 4, 5))


def _judged(study: Study) -> Iterator[tuple[str, ...]]:
    held = [(works(cell), rows) for cell in study.cells if (rows := sent(cell.run)) is not None]
    judged = [one for one in applications() if one.latency_ms is not None]
    for flow, cooperates, (title, (start, end)) in product(FLOWS, (True, False), SPANS.items()):
        parts = [_part(rows, flow, start, end) for of, rows in held if of == cooperates]
        number = sum(part.height for part in parts)
        if number:
            verdicts = [
                _word(_together([delivery(part, one.latency_ms, end) for part in parts]), one)
                for one in judged
            ]
            name = f"{flow.upper()}, {'with' if cooperates else 'without'}"
            yield name, title, f"{number:,}", *verdicts


def _part(rows: pl.DataFrame, flow: str, start: float, end: float) -> pl.DataFrame:
    return rows.filter((pl.col("class") == flow) & pl.col("at").is_between(start, end, closed="left"))


def _together(each: list[Delivery]) -> Delivery:
    longest = max(one.interruption_ms for one in each)
    return Delivery(sum(one.samples for one in each), sum(one.in_time for one in each), longest)


def _word(found: Delivery, of: Application) -> str:
    met = meets(found, of)
    if met is None:
        return "not contradicted"
    share = 100 * found.in_time / found.samples
    return "yes" if met else f"no: {share:.4g} % in time, {plain(round(found.interruption_ms, 1))} ms"
