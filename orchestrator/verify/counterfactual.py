"""Repeats a run in virtual time without one cause, and measures how much faster its messages are."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

from capture.why.answer import Run
from capture.why.causes import Named, slowest
from contract.verdict import FAILS, HOLDS, OPEN
from orchestrator.run.identity import inputs_of
from orchestrator.run.run import execute
from orchestrator.verify.verify import VerifyError, again, differing_inputs, recorded
from orchestrator.verify.without import without
from reports.metrics.stats import Estimate, t_interval

KEYS = ["flow", "seq", "receiver"]
BLOCKS = (
    # Number of blocks of messages in order of time; neighbouring messages wait in the same queue, so they are
    # not independent.
    20
)
FORETOLD = 0.5  # share of the predicted fall of the latency that must come true


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect on messages of running without a cause. A fall is the latency with the cause minus the
    latency without it.
    """

    cause: str
    # holds: the cause is confirmed; fails: the messages are not faster without the cause; or cannot tell
    verdict: str
    messages: int
    # The predicted fall of each of the slowest messages, from their parts; None if the cause was not named.
    foretold_ns: float | None
    slow_before_ns: float | None  # mean latency of the slowest messages that arrived in both runs
    slow_after_ns: float | None
    fall: Estimate | None  # mean (ns) over all messages that arrived in both runs
    lost_before: int
    lost_after: int
    differing: tuple[str, ...]  # inputs (programs, kernel) that differ from those of the recorded run
    text: str


def counterfactual(
    run_dir: Path,
    rows: pl.DataFrame,
    cause: str,
    named: Named | None,
    observe: Callable[[dict[str, Any]], None],
) -> Effect:
    """Runs the plan in `run_dir` without a cause KIND:NAME and compares `rows` of the run's messages with the
    same messages there. Makes a temporary directory beside `run_dir` and removes it. Raises VerifyError if
    `run_dir` is no complete run in virtual time, or if the changed run does not complete; WithoutError if the
    plan has no such cause; and the errors of `execute`.
    """  # fmt: skip
    manifest = recorded(run_dir)
    plan = without(Run(run_dir).plan, cause)
    prepared = again(run_dir, manifest, plan)
    with tempfile.TemporaryDirectory(prefix=".without-", dir=run_dir.resolve().parent) as place:
        fresh = Path(place) / run_dir.resolve().name
        fresh.mkdir()
        outcome = execute(prepared, fresh, observe, page=False)
        if outcome.state != "complete":
            raise VerifyError(f"the run without {cause} is {outcome.state}: {outcome.error}")
        other = tuple(differing_inputs(manifest, inputs_of(prepared)))
        return compared(rows, Run(fresh).messages, cause, named, other)


def compared(
    before: pl.DataFrame, after: pl.DataFrame, cause: str, named: Named | None, other: tuple[str, ...] = ()
) -> Effect:
    """Returns the effect, from the messages of both runs; messages that only one of them has do not count."""
    owed = before.filter(pl.col("receiver").is_not_null())
    without_ = after.select(*KEYS, pl.col("total_ns").alias("after_ns"))
    both = owed.join(without_, on=KEYS, how="inner").sort("scheduled_ns", "flow", "seq")
    lost = both["total_ns"].is_null().sum(), both["after_ns"].is_null().sum()
    arrived = both.drop_nulls(["total_ns", "after_ns"])
    slow = slowest(arrived)
    means = tuple(_mean(slow[name]) for name in ("total_ns", "after_ns"))
    fall = _fall(arrived)
    verdict, text = _verdict(named, means, (int(lost[0]), int(lost[1])))
    return Effect(
        cause, verdict, both.height, named.foretold_ns if named else None, means[0], means[1], fall,
        int(lost[0]), int(lost[1]), other, text,
    )  # fmt: skip


def _mean(values: pl.Series) -> float | None:
    return float(values.sum()) / len(values) if len(values) else None


def _fall(arrived: pl.DataFrame) -> Estimate | None:
    """Returns the mean fall with an interval over blocks of messages; None without messages."""
    falls = (arrived["total_ns"] - arrived["after_ns"]).to_list()
    if not falls:
        return None
    count = min(BLOCKS, len(falls))
    edges = [len(falls) * n // count for n in range(count + 1)]
    blocks = [falls[a:b] for a, b in pairwise(edges)]
    return t_interval([sum(one) / len(one) for one in blocks], "block of messages")


def _verdict(
    named: Named | None, means: tuple[float | None, ...], lost: tuple[int, int]
) -> tuple[str, str]:  # fmt: skip
    """Returns the verdict and the reason: whether the prediction came true, in time and in losses."""
    before, after = means
    if named is not None and named.lost:
        gone = lost[0] - lost[1]
        fine = gone >= FORETOLD * named.lost
        return HOLDS if fine else FAILS, f"{named.lost} losses foretold to go, {gone} went"
    if before is None or after is None:
        return OPEN, "no message arrived in both runs"
    fall = before - after
    if named is not None and named.foretold_ns:
        fine = fall >= FORETOLD * named.foretold_ns
        foretold = f"{named.foretold_ns / 1e6:,.3f} ms"
        return HOLDS if fine else FAILS, f"foretold {foretold} for the slowest, measured {fall / 1e6:,.3f} ms"
    if lost[0] > lost[1] or fall > 0.1 * before:
        return HOLDS, f"the slowest are {fall / 1e6:,.3f} ms faster, {lost[0] - lost[1]} fewer are lost"
    return FAILS, f"the slowest are {fall / 1e6:,.3f} ms faster, less than a tenth of their time"
