"""Compares the messages of two runs one by one: in virtual time and with the same schedule, a message of one
run has the same flow, number and receiver in the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from reports.compare.pairing import Match
from reports.compare.side import Sample
from reports.roles import origin_ns
from reports.rundir import Run

KEYS = ("flow", "seq", "receiver")


@dataclass(frozen=True)
class Partners:
    """The result of comparing the messages of two runs: how many arrived in both, with the same latency to
    the ns, slower or faster in B; how many arrived in only one run; and when the first one differed.
    """

    letters: tuple[str, str]
    seed: str
    both: int
    same: int
    slower: int
    faster: int
    only_a: int
    only_b: int
    median_ms: float | None  # median of the differences that are not zero
    first_s: float | None  # scheduled time of the first message that differs, from the run's start

    @property
    def words(self) -> str:
        """The result as a sentence."""
        a, b = self.letters
        text = f"seed {self.seed}: {self.both:,} messages arrived in both: {self.same:,} equally fast to the "
        text += f"nanosecond, {self.slower:,} slower and {self.faster:,} faster in {b}"
        text += f" (median {self.median_ms:+.3g} ms)" if self.median_ms is not None else ""
        text += f"; {self.only_a:,} arrived only in {a}, {self.only_b:,} only in {b}"
        return text + (f"; the first differs at {self.first_s:.3f} s" if self.first_s is not None else "")


def partners(found: Match) -> list[Partners]:
    """Returns the result for each pair of runs in virtual time. Pairs in real time, whose latencies never
    agree to the nanosecond, and pairs without tables of messages are left out.
    """
    rows = (_partners(found.letters, a, b) for a, b in found.pairs if a.virtual and b.virtual)
    return [row for row in rows if row is not None]


def _partners(letters: tuple[str, str], a: Sample, b: Sample) -> Partners | None:
    if a.cell is None or b.cell is None:
        return None
    sides = [_messages(one.cell.run) for one in (a, b) if one.cell is not None]
    if any(side is None for side in sides):
        return None
    first, second = (side for side in sides if side is not None)
    joined = first.join(second, on=KEYS, how="full", suffix="_b", coalesce=True)
    ours, theirs = pl.col("latency_ns"), pl.col("latency_ns_b")
    both = joined.filter(ours.is_not_null() & theirs.is_not_null()).with_columns(gap=theirs - ours)
    gaps = both.filter(pl.col("gap") != 0).get_column("gap")
    median = gaps.median()
    other = joined.filter(ours.ne_missing(theirs)).select(pl.coalesce("since_ns", "since_ns_b").min()).item()
    return Partners(
        letters, a.seed, both.height, both.height - gaps.len(),
        gaps.filter(gaps > 0).len(), gaps.filter(gaps < 0).len(),
        joined.filter(ours.is_not_null() & theirs.is_null()).height,
        joined.filter(ours.is_null() & theirs.is_not_null()).height,
        None if median is None else float(median) / 1e6,  # type: ignore[arg-type]  # of an integer column
        None if other is None else other / 1e9,
    )  # fmt: skip


def _messages(run: Run) -> pl.DataFrame | None:
    """Returns the latency of each message and receiver, and its scheduled time from the run's start, both in
    ns; messages without a receiver are left out. None if the run has no messages.
    """
    table = run.table("messages")
    if table is None:
        return None
    since = (pl.col("scheduled_ns") - (origin_ns(run) or 0)).alias("since_ns")
    return table.filter(pl.col("receiver").is_not_null()).select(*KEYS, since, "latency_ns")
