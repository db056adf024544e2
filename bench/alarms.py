"""Counts false alarms: of 200 A/A comparisons, and of the intervals at which settings with `until` end.

    alarms.py                    of invented, seeded figures: seconds
    alarms.py --runs CAMPAIGN    A/A comparisons of a campaign's runs, five seeds against five others

Both sides of an A/A comparison are of one setting with disjoint seeds, so each difference that is found is
a false alarm. Prints rows of bench.json; status 1 if there are more alarms than ALLOWED, or if an interval
with the correction misses the mean more often than MISSED. The rows `uncorrected` show the alarms without
the correction.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from contract.enough import Enough
from contract.plan import Expectation
from reports.compare.comparison import DIFFERS, compare
from reports.compare.reading import read_side
from reports.compare.side import Sample, Side
from reports.enough import known_mean
from reports.metrics.metric import Metric, Of

COMPARISONS, ALLOWED = 200, 16  # 10 are expected at 5 %; more than 16 come in 2 of 100 such series
MISSED = 5  # % of the intervals of one law that may miss the mean
CLASSES = ("control", "meter", "video")
TIMES = ("latency_mean", "latency_p50", "latency_p99", "round_trip_p99")
SCATTER = 0.04  # scatter of a figure between repetitions
SETTINGS = 3000  # number of simulated settings with `until` for each law
RULE = Enough(Expectation("latency_p99", "metric", "latency_p99", unit="ms"), 0.05, 3, 20)


class Plain(Enough):
    """The same rule without a correction for the number of looks."""

    confidence = 0.95  # the same for every number of looks; in Enough it depends on that number


Draw = Callable[[np.random.Generator, int], np.ndarray]
# Laws of a figure over the repetitions, with a mean of 100.
LAWS: dict[str, Draw] = {
    "normal, scatter 3 %": lambda rng, n: rng.normal(100, 3, n),
    "normal, scatter 8 %": lambda rng, n: rng.normal(100, 8, n),
    "normal, scatter 20 %": lambda rng, n: rng.normal(100, 20, n),
    "p99 of 1,000 exponential times": lambda rng, n: _p99(rng, n),
    "lognormal, scatter 20 %": lambda rng, n: 100 * np.exp(rng.normal(-0.0196, 0.198, n)),
}


def _p99(rng: np.random.Generator, n: int) -> np.ndarray:
    """Returns the p99 of n runs, scaled to a mean of 100."""
    # mean of the 990th smallest of 1,000 exponential times of mean 1
    expected = sum(1 / k for k in range(11, 1001))
    return np.sort(rng.exponential(1, (n, 1000)), axis=1)[:, 989] * 100 / expected


def invented(rng: np.random.Generator, seed: int) -> Sample:
    """Returns a simulated run of three counts of losses and twelve latencies; the scatter of each latency has
    a common and an individual part.
    """
    together = rng.normal(0, SCATTER / 2)
    metrics = {}
    for place, one in enumerate(CLASSES):
        of = Of(traffic_class=one)
        values = [
            (name, 20 * (place + 1) * float(np.exp(together + rng.normal(0, SCATTER)))) for name in TIMES
        ]
        for name, value in (*values, ("messages_lost", float(rng.poisson(3 * place)))):
            unit = "messages" if name == "messages_lost" else "ms"
            metrics[name, of] = Metric(name, of, value, unit, 100, None, None, "invented")
    return Sample(f"r{seed}", {}, str(seed), "the same", {}, metrics)


def alarms(pick: Callable[[], tuple[Sequence[Sample], Sequence[Sample]]]) -> int:
    """Returns how many comparisons of equal studies find a difference."""
    found = 0
    for _ in range(COMPARISONS):
        a, b = pick()
        found += bool(compare([Side("A", "a", tuple(a)), Side("B", "b", tuple(b))]).found(DIFFERS))
    return found


def of_invented() -> int:
    rng = np.random.default_rng(40)

    def pick() -> tuple[list[Sample], list[Sample]]:
        runs = [invented(rng, seed) for seed in range(10)]
        return runs[:5], runs[5:]

    return alarms(pick)


def of_runs(campaign: Path) -> int:
    rng = np.random.default_rng(40)
    runs = read_side("A", campaign).samples
    if len(runs) < 10:
        raise SystemExit(
            f"alarms: {campaign} has {len(runs)} complete runs; ten or more with own seeds are needed"
        )

    def pick() -> tuple[list[Sample], list[Sample]]:
        chosen = [runs[int(place)] for place in rng.choice(len(runs), 10, replace=False)]
        return chosen[:5], chosen[5:]

    return alarms(pick)


def missed(law: Draw, rule: Enough) -> float:
    """Returns the share of simulated settings whose interval misses the true mean at the look that ends
    them.
    """
    rng, wrong = np.random.default_rng(7), 0
    for _ in range(SETTINGS):
        drawn = law(rng, rule.at_most)
        for look in rule.looks:
            found = known_mean("", "ms", list(drawn[:look]), rule, False)
            if found.enough:
                break
        wrong += abs(found.mean - 100) > (found.half or 0)
    return wrong / SETTINGS


def missing(title: str, rule: Enough) -> list[dict[str, Any]]:
    """Returns one row for each law, with the share of its settings whose interval misses the mean."""
    return [
        row(f"{title}, {name}", 100 * missed(law, rule), "% missed", MISSED) for name, law in LAWS.items()
    ]


def row(name: str, value: float, unit: str, allowed: float) -> dict[str, Any]:
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "peer": f"{allowed:g} allowed",
        "ratio": value / allowed,
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, metavar="CAMPAIGN")
    options = parser.parse_args()
    if options.runs:
        rows = [row(f"false alarms of {COMPARISONS}, runs", of_runs(options.runs), "alarms", ALLOWED)]
    else:
        rows = [row(f"false alarms of {COMPARISONS}, invented", of_invented(), "alarms", ALLOWED)]
        rows += missing("until", RULE)
    wrong = any(one["ratio"] > 1 for one in rows)
    if not options.runs:
        rows += missing("uncorrected", Plain(RULE.metric, RULE.interval, RULE.at_least, RULE.at_most))
    json.dump(rows, sys.stdout, indent=1)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
