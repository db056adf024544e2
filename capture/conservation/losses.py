"""Compares the frames that links dropped with the loss that the topology requests."""

from __future__ import annotations

import math
from collections.abc import Iterator

import polars as pl

from capture.conservation.check import WRONG, Compared, Found, Rule
from capture.conservation.counters import link_steps
from capture.conservation.evidence import Evidence
from contract import events
from contract.plan import WAYS, Impairment

LINK_LOSS = Rule("link-loss", "frames that links dropped", "the loss that the file requests", WRONG)
# Probability with which a correct direction fails: one in 10^9, so that none of 700 directions in 1,000 runs
# does.
BEYOND = math.log(1e9)


def links_lose_their_share(e: Evidence) -> Found:
    """Compares the frames that each link direction with independent loss dropped with the frames that its
    requested loss predicts, changes by events included. A correct link exceeds the tolerance once in 10^9
    runs.

    Drops above the prediction count only if no queue of the direction can have been full. Left out are media,
    half-duplex links, traces, and directions with correlated loss or duplication.
    """
    if e.unsuitable:
        return Found(left_out=[e.unsuitable])
    steps = link_steps(e)
    if steps is None:
        return Found(left_out=["no counters of links"])
    compared = list[Compared]()
    changes = list(_changes(e))
    for link in e.plan.links:
        for way in WAYS:
            if link.way(way).shared or link.way(way).trace is not None or link.kind == "medium":
                continue
            asked = [
                (0, link.way(way).impairment),
                *((t, i) for t, n, w, i in changes if (n, w) == (link.name, way)),
            ]
            if any(correlated(one) for _, one in asked) or not any(one.loss for _, one in asked):
                continue
            rows = steps.filter(
                pl.col("whole") & (pl.col("link") == link.name) & (pl.col("direction") == way)
            )
            compared += _of_direction(f"{link.name} {way}", rows, asked)
    return Found(compared, [] if compared else ["no frame crossed a link with independent loss"])


def _of_direction(name: str, rows: pl.DataFrame, asked: list[tuple[int, Impairment]]) -> Iterator[Compared]:
    dropped = expected = 0.0
    room = True
    for end_ns, packets, lost in rows.select("t_ns", "packets", "dropped").iter_rows():
        _, now = max((one for one in asked if one[0] <= end_ns), key=lambda one: one[0])
        dropped += lost
        expected += (packets + lost) * now.loss
        room = room and packets + lost <= (now.limit_packets or 0) and not now.queue
    if expected:
        low, high = (_furthest(expected, side) for side in (-1, 1))
        figure = dropped if room else min(dropped, expected)
        tolerance = math.ceil(high - expected if figure > expected else expected - low)
        yield Compared(name, round(figure), round(expected), "frames", tolerance)


def _furthest(mean: float, side: int) -> float:
    """Returns a limit that a Poisson variable of this mean exceeds (side 1) or falls below (side -1) with a
    probability of at most 1 in 10^9. The limit is computed by Chernoff's bound (Mitzenmacher and Upfal,
    section 4.2), which also holds for the binomial distribution. The limit is at least 0.
    """
    near, far = mean, 0.0 if side < 0 else mean + 2 * BEYOND + 4 * math.sqrt(mean * BEYOND)
    if side < 0 and mean < BEYOND:
        return 0.0
    for _ in range(60):
        middle = (near + far) / 2
        beyond = middle * math.log(middle / mean) - middle + mean if middle > 0 else mean
        near, far = (near, middle) if beyond > BEYOND else (middle, far)
    return far


def _changes(e: Evidence) -> Iterator[tuple[int, str, str, Impairment]]:
    """Yields time, link, direction and new impairment of each successful `impair` event of the run."""
    if e.events is None:
        return
    rows = e.events.filter((pl.col("action") == "impair") & pl.col("ok")).sort("t_ns")
    for at_ns, targets, args in rows.select("t_ns", "targets", "args").iter_rows():
        for way, one in events.impairments(args):
            yield from ((at_ns, target, way, one) for target in targets)


def correlated(one: Impairment) -> bool:
    return bool(one.loss_correlation or one.gemodel or one.duplicate)
