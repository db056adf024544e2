"""Judges every quantity of every direction: compares what the topology requests with what the probes' records
show.

A quantity holds if its whole interval is within the tolerance of the expected value, and fails if its whole
interval is outside; otherwise the proof cannot tell. With a probability of 99 % all intervals are right at
once (Bonferroni). With 95 % for each interval, 35 of 700 good directions would fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from contract.plan import Direction, Link
from contract.proof import Proven
from orchestrator.lab.intervals import z_for
from orchestrator.lab.judgement import Seen
from orchestrator.lab.pooling import alike, pooled
from orchestrator.lab.probes import directions
from orchestrator.lab.quantities import Quantities, Tables, Within
from orchestrator.lab.tolerance import Noise, Tolerances

Results = dict[tuple[str, str], Seen]
NO_TABLES: Tables = {}


def judge(
    links: Sequence[Link],
    spaced: Results,
    burst: Results,
    tolerances: Tolerances,
    noise: Noise | None = None,
    tables: Tables = NO_TABLES,
    looks: int = 1,
) -> list[Proven]:
    """Returns the judgements of all quantities of all directions; also judges directions with the same
    impairment together.

    spaced, burst: results of single frames and of trains by link and direction. noise: the delay that the
    machine added. looks: the largest number of judgements in one proof; each of them can be wrong, and the
    last one is final.
    """
    within = Within(tolerances, noise, tables)
    tests = sum(1 for _ in _judge(links, spaced, burst, within, z=2.0))
    groups = alike(links)
    together = 1 + any(len(ways) > 1 for ways in groups)  # each quantity is judged by itself, and also pooled
    z = z_for(tests * looks * together)
    found = list(_judge(links, spaced, burst, within, z))

    def again(direction: Direction, seen: Seen) -> list[Proven]:
        return list(Quantities("", "", direction.impairment, seen, z, within.through(direction)).all())

    return pooled(groups, spaced, found, again)


def _judge(
    links: Sequence[Link], spaced: Results, burst: Results, within: Within, z: float
) -> Iterator[Proven]:
    for link, name, direction in directions(links):
        result = spaced.get((link, name))
        if result is None:
            why = "no probe was answered"
            yield Proven(link, name, "reach", 1.0, 1.0, None, None, None, "share", 0, "cannot tell", why)
            continue
        judged = Quantities(link, name, direction.impairment, result, z, within.through(direction))
        yield from judged.all()
        if direction.impairment.rate_bps:
            yield judged.rate(direction, burst.get((link, name)))
