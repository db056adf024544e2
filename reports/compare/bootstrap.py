"""Compares the latency of two single runs by a bootstrap over blocks of time.

Messages that follow each other are correlated, so blocks of the hold are drawn, not messages (Künsch, Annals
of Statistics 17, 1989). Both runs get the same blocks. The interval covers the scatter from the messages that
were sent in these two runs, not the scatter between seeds.
"""

from __future__ import annotations

import math
import re

import numpy as np
import polars as pl

from reports.compare.difference import Difference
from reports.compare.figure import Key
from reports.compare.side import Sample
from reports.metrics.messages import PERCENTILES, held_messages
from reports.roles import origin_ns
from reports.rundir import Run

NAME = re.compile(r"(latency|round_trip)_(mean|p\d+(?:\.\d+)?)")
BLOCKS = 30  # number of blocks of a hold; the standard error is then known within 13 % (1 / sqrt(2 x 29))
# number of draws; the standard error is then within 4 % (1 / sqrt(600)) of that of infinitely many
DRAWS = 300
# least number of messages beyond a percentile in each run; with fewer, it depends on single messages
FEWEST_BEYOND = 10
FEWEST = 300  # least number of messages of each run: ten in each block
SEED = 20  # the draws are the same each time, so that a comparison repeats
Times = np.ndarray[tuple[int], np.dtype[np.float64]]
Places = np.ndarray[tuple[int], np.dtype[np.int64]]


def bootstrapped(key: Key, a: Sample, b: Sample) -> Difference | None:
    """Returns the difference of one latency or round trip between two runs; None if the figure is another
    one, a side is a baseline, the messages are too few or fill too few blocks, or times are zero.
    """
    named = NAME.fullmatch(key[0])
    if named is None or a.cell is None or b.cell is None or named[2] not in ("mean", *PERCENTILES):
        return None
    sides = [_blocks(one.cell.run, named[1], key) for one in (a, b) if one.cell is not None]
    share = PERCENTILES.get(named[2])
    if any(len(times) < _fewest(share) for times, _ in sides):
        return None
    values = [_value(times, share) for times, _ in sides]
    error = _error(sides, share) if min(values) > 0 else None
    if error is None:
        return None
    method = f"one pair of runs, bootstrap of {DRAWS} draws over {BLOCKS} blocks"
    return Difference(
        values[0], values[1], 1, math.log(values[1] / values[0]), error, BLOCKS - 1, True, method
    )


def _fewest(share: float | None) -> int:
    return FEWEST if share is None else max(FEWEST, math.ceil(FEWEST_BEYOND / min(share, 1 - share)))


def _error(sides: list[tuple[Times, Places]], share: float | None) -> float | None:
    """Returns the standard error of the logarithm of the ratio, over draws of blocks; None if a draw has a
    value of zero, which has no logarithm, or no message of a side, because the messages then fill too few
    blocks.
    """
    rng = np.random.default_rng(SEED)
    cut = [[times[places == block] for block in range(BLOCKS)] for times, places in sides]
    found = []
    for _ in range(DRAWS):
        drawn = rng.integers(0, BLOCKS, BLOCKS)
        pair = [np.concatenate([parts[block] for block in drawn]) for parts in cut]
        if not all(len(times) for times in pair):
            return None
        first, second = (_value(times, share) for times in pair)
        if min(first, second) <= 0:
            return None
        found.append(math.log(second / first))
    return float(np.std(found, ddof=1))


def _value(times: Times, share: float | None) -> float:
    """Returns the mean of the times, or their percentile by nearest rank, in ms. A `share` of None means the
    mean.
    """
    if share is None:
        return float(times.mean())
    rank = max(0, math.ceil(share * len(times)) - 1)
    return float(np.partition(times, rank)[rank])


def _blocks(run: Run, name: str, key: Key) -> tuple[Times, Places]:
    """Returns the times of the class in ms, and for each the number of the hold's block in which it was
    scheduled. Both are empty if no message of the hold has such a time.
    """
    held = held_messages(run)
    empty = np.zeros(0), np.zeros(0, dtype=np.int64)
    if held is None:
        return empty
    rows = held.filter(pl.col("class") == key[1].traffic_class).drop_nulls(f"{name}_ns")
    if key[1].guarantee is not None:
        rows = rows.filter(pl.col("guarantee") == key[1].guarantee)
    if rows.is_empty():
        return empty
    since = held.get_column("scheduled_ns").to_numpy().astype(np.int64) - (origin_ns(run) or 0)
    at = rows.get_column("scheduled_ns").to_numpy().astype(np.int64) - (origin_ns(run) or 0)
    first, span = int(since.min()), int(since.max() - since.min()) + 1
    places = ((at - first) * BLOCKS // span).astype(np.int64)
    return rows.get_column(f"{name}_ns").to_numpy().astype(np.float64) / 1e6, places
