"""Makes sides of comparisons with simulated figures from a seed, without run directories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from reports.compare.side import Sample, Side
from reports.metrics.metric import Metric, Of

CLASSES = ("control", "meter", "video")
TIMES = ("latency_mean", "latency_p50", "latency_p99", "round_trip_p99")
SCATTER = 0.04  # relative scatter of a figure between repetitions


def sample(
    seed: int,
    values: Mapping[tuple[str, str], float],
    levels: Mapping[str, str] | None = None,
    schedule: str = "the same",
) -> Sample:
    """Returns a sample with a value for each (figure, class); counts are numbers of messages, the other
    values ms.
    """
    metrics = {
        (name, of): Metric(
            name, of, value, "messages" if "messages" in name else "ms", 100, None, None, "made"
        )
        for (name, one), value in values.items()
        for of in [Of(traffic_class=one)]
    }
    return Sample(f"r{seed}", dict(levels or {}), str(seed), schedule, {"topology": "made.yaml"}, metrics)


def side(letter: str, samples: Sequence[Sample]) -> Side:
    return Side(letter, f"study-{letter}", tuple(samples))


def drawn(rng: np.random.Generator, seed: int, factor: float = 1.0) -> Sample:
    """Returns the figures of one run: twelve latencies, which vary together and each by itself, and three
    counts of losses. `factor` multiplies p99 of the class control.
    """
    together = rng.normal(0, SCATTER / 2)
    values: dict[tuple[str, str], float] = {}
    for place, one in enumerate(CLASSES):
        for name in TIMES:
            size = 20.0 * (place + 1) * (factor if (name, one) == ("latency_p99", "control") else 1.0)
            values[name, one] = size * float(np.exp(together + rng.normal(0, SCATTER)))
        values["messages_lost", one] = float(rng.poisson(3.0 * place))
    return sample(seed, values)
