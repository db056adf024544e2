"""Which figures a page has, in order; those of a paper are in its room (reports.papers)."""

from __future__ import annotations

from reports.figures import comparison, latency, proof, time, trials
from reports.figures.spec import Spec

LEVELS: tuple[Spec, ...] = (comparison.SPEC, latency.CDF)
OVER_TIME: tuple[Spec, ...] = (time.SPECS[0], time.SPECS[1], latency.OVER_TIME, *time.SPECS[2:])
PROOF: tuple[Spec, ...] = proof.SPECS
TRIALS: tuple[Spec, ...] = trials.SPECS
MACHINE: tuple[Spec, ...] = tuple(
    spec for spec in time.SPECS if spec.key in ("host-load", "links-backlog", "links-drops")
)
