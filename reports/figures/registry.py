"""Lists the figures of the report page for each section that shows them, in order."""

from __future__ import annotations

from reports.figures import (
    bounds,
    captured,
    comparison,
    connections,
    groups,
    latency,
    links,
    proof,
    time,
    traces,
    transfers,
    trials,
)
from reports.figures.spec import Spec
from reports.metrics.interruptions import events
from reports.study import Study

PROOF: tuple[Spec, ...] = proof.SPECS
TRIALS: tuple[Spec, ...] = trials.SPECS
MESSAGES: tuple[Spec, ...] = latency.SPECS
BOUNDS: tuple[Spec, ...] = bounds.SPECS
TRANSFERS: tuple[Spec, ...] = transfers.SPECS
LINKS: tuple[Spec, ...] = (*links.SPECS, *traces.SPECS)
NODES: tuple[Spec, ...] = groups.SPECS
CONNECTIONS: tuple[Spec, ...] = connections.SPECS
PACKETS: tuple[Spec, ...] = captured.SPECS
LEVELS: tuple[Spec, ...] = (comparison.SPEC,)
OVER_TIME: tuple[Spec, ...] = (captured.THROUGHPUT, latency.OVER_TIME, *time.SPECS)
MACHINE: tuple[Spec, ...] = tuple(
    spec for spec in time.SPECS if spec.key in ("host-load", "links-backlog", "links-drops")
)


def first(study: Study) -> tuple[Spec, ...]:
    """Returns the candidates for the picture beside the key figures, the best first; the page shows the first
    that can be drawn.

    Several runs: the comparison of levels, or none with a single level. One run: figures over time if its
    timeline has events, then distributions of latency, then transfers, throughput and further figures over
    time.
    """
    if not study.single:
        return LEVELS if len(study.series) > 1 else ()
    run = study.cells[0].run
    changed = (latency.OVER_TIME, transfers.SPECS[0], captured.THROUGHPUT) if events(run) else ()
    return (*changed, latency.TRIPS, latency.ECDF, transfers.SPECS[0], captured.THROUGHPUT, *time.SPECS[:1])
