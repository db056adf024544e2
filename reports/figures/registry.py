"""Which figures a page has, by the section that shows them, in order."""

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
