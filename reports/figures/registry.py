"""Which figures over time a page has, in order."""

from __future__ import annotations

from reports.figures import captured, latency, time
from reports.figures.spec import Spec

OVER_TIME: tuple[Spec, ...] = (captured.THROUGHPUT, latency.OVER_TIME, *time.SPECS)
MACHINE: tuple[Spec, ...] = tuple(
    spec for spec in time.SPECS if spec.key in ("host-load", "links-backlog", "links-drops")
)
