"""Tests the effects of sampled parameters: a range with many values is ranked beside factors with few
levels.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from scipy.stats import qmc

from reports.cell import Cell
from reports.compare.levels import effect_data, moved
from reports.metrics.metric import Metric, Of
from reports.rundir import Run
from reports.study import Study

P99 = "latency_p99"


def sampled(points: int, repetitions: int = 1, slope: float = 2.0, seed: int = 3) -> Study:
    """Returns a Latin hypercube sample of delay, loss and rate: p99 grows with the delay, a little with the
    loss, and falls from one kind to the other; the rate has no effect.
    """
    rng = np.random.default_rng(seed)
    unit = qmc.LatinHypercube(3, rng=seed).random(points)
    cells = []
    for number, (delay, loss, rate) in enumerate(unit):
        kind = ("udp", "tcp")[number % 2]
        levels = {
            "delay": f"{1 + 99 * delay:.3g} ms",
            "loss": f"{10 * loss:.3g} %",
            "rate": f"{1 + 9 * rate:.3g} Mbit/s",
            "kind": kind,
        }
        for repetition in range(1, repetitions + 1):
            scatter = rng.normal(0, 0.1)
            value = 20 * float(np.exp(slope * delay + 0.5 * loss - 0.3 * (kind == "tcp") + scatter))
            found = Metric(P99, Of(traffic_class="up"), value, "ms", 99, None, None, "made")
            cells.append(Cell(cast(Run, None), [found], "made", levels, "", repetition, f"p{number}"))
    return cast(Study, SimpleNamespace(cells=tuple(cells), single=False))


def test_ranges_are_ranked_by_what_they_explain() -> None:
    found = moved(sampled(60))
    assert [one.factor for one in found] == ["delay", "loss", "kind", "rate"]
    delay, loss, kind, rate = found
    assert delay.share > 0.7 and delay.p < 0.001 and loss.p < 0.001 and kind.p < 0.001
    assert rate.p > 0.05 and rate.share < 0.02
    assert delay.low.startswith("1.") and delay.high.endswith(" ms") and 2 < delay.span < 4.5
    assert (kind.low, kind.high) == ("tcp", "udp")


def test_what_does_nothing_is_not_said_to_move_a_figure() -> None:
    alarms = sum(
        one.p < 0.05
        for seed in range(12)
        for one in moved(sampled(20, slope=0.0, seed=seed))
        if one.factor == "rate"
    )
    assert alarms <= 1, "Holm's correction for the four factors leaves about one in eighty"


def test_repetitions_of_a_point_share_its_rank() -> None:
    (first, *_) = moved(sampled(20, repetitions=3))
    assert first.factor == "delay" and first.share > 0.7
    row: dict[str, Any] = effect_data(first)
    assert row["metric"] == P99 and row["traffic_class"] == "up" and row["factor"] == "delay"
