"""Compares the guided search of `vnet hunt` with a random one: the number of trials until one fails in a
given way.

    python bench/hunts.py FILE WAY [--seeds 10] [--most 200] [--jobs 1] [--out DIRECTORY]

WAY is a part of the text by which a hunt names a violation, such as `twice`. Each seed searches twice,
guided and at random; the first two rounds of both are the same trials, which run once. A search without
such a failure after `--most` trials counts as that many. DIRECTORY keeps the outcomes, and the same
command continues from them. Prints the trials of each seed, their median and mean, the probability that so
many of the decided seeds favour one side by chance (two-sided sign test), and the CPU time of a trial.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
from math import comb
from pathlib import Path

from orchestrator.hunt.checking import Settings, checked, faults
from orchestrator.hunt.drawing import Space, draw
from orchestrator.hunt.found import ways
from orchestrator.hunt.guidance import Guidance
from orchestrator.hunt.hunt import ROUND
from orchestrator.hunt.journal import LINES, Journal
from orchestrator.hunt.model import Trial
from orchestrator.hunt.trials import Trials
from orchestrator.topology import Topology
from orchestrator.topology.hunt import HuntBlock


def found_at(topology: Topology, trials: Trials, seed: int, guided: bool, way: str, most: int) -> int | None:
    """Returns the number of the first trial whose failure contains this text; None if the first `most` trials
    have no such failure.
    """
    block = topology.model.hunt or HuntBlock.model_validate({})
    hold_ns = topology.phases.hold_ns
    space = Space(faults(topology), dict(block.vary), block.at_most.events, hold_ns, block.quiet)
    guidance = Guidance(space)
    for begin in range(1, most + 1, ROUND):
        lesson = guidance.lesson() if guided else None
        numbers = range(begin, min(begin + ROUND, most + 1))
        drawn = [draw(space, seed, number, lesson) for number in numbers]
        outcomes = trials.run([_own(trial, topology) for trial in drawn])
        done = list(zip(drawn, outcomes, strict=True))
        for trial, outcome in done:
            if any(way in one for one in ways(outcome)):
                return trial.number
        guidance.learn(done)
    return None


def _own(trial: Trial, topology: Topology) -> Trial:
    return trial.of(dict(topology.document.data))


def sign_test(better: int, worse: int) -> float:
    """Returns the two-sided probability that tosses of a fair coin are at least as uneven as `better` to
    `worse`.
    """
    count, least = better + worse, min(better, worse)
    return float(min(1.0, 2 * sum(comb(count, k) for k in range(least + 1)) / 2**count))


def main() -> int:
    """Runs both searches with each seed, and prints their numbers of trials."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("way")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--most", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("results/bench-hunts"))
    given = parser.parse_args()
    settings = Settings(given.file, {}, given.out, workers=given.jobs)
    topology = checked(settings)
    given.out.mkdir(parents=True, exist_ok=True)
    trials = Trials(given.file, given.out, Journal(given.out / LINES), settings.kernel, given.jobs)
    table: list[tuple[int, int]] = []
    print(f"{given.file.name}: trials until one fails by {given.way!r}\nseed  guided  random")
    try:
        for seed in range(1, given.seeds + 1):
            pair = [
                found_at(topology, trials, seed, guided, given.way, given.most) for guided in (True, False)
            ]
            print(f"{seed:4}  {_shown(pair[0], given.most):>6}  {_shown(pair[1], given.most):>6}", flush=True)
            table.append((pair[0] or given.most, pair[1] or given.most))
    finally:
        trials.close()
    for name, of in (("median", statistics.median), ("mean", statistics.fmean)):
        print(f"{name:6}{of([g for g, _ in table]):6.1f}  {of([r for _, r in table]):6.1f}")
    better, worse = sum(g < r for g, r in table), sum(g > r for g, r in table)
    print(f"guided earlier {better}, later {worse}, equal {len(table) - better - worse}; "
          f"by chance with p = {sign_test(better, worse):.2f}")  # fmt: skip
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    if trials.ran:
        print(
            f"{trials.ran} trials ran, {(used.ru_utime + used.ru_stime) / trials.ran:.2f} s of CPU time each"
        )
    return 0


def _shown(number: int | None, most: int) -> str:
    return f">{most}" if number is None else str(number)


if __name__ == "__main__":
    sys.exit(main())
