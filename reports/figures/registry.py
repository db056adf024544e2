"""Which figures a page has, in order."""

from __future__ import annotations

from reports.figures import comparison, latency, packets, proof, ramp, time, trials
from reports.figures.spec import Spec

PAPER: tuple[Spec, ...] = (*ramp.SPECS, *packets.SPECS, comparison.SPECS[0])
LEVELS: tuple[Spec, ...] = (comparison.SPECS[1], latency.CDF)
OVER_TIME: tuple[Spec, ...] = (time.SPECS[0], time.SPECS[1], latency.OVER_TIME, *time.SPECS[2:])
PROOF: tuple[Spec, ...] = proof.SPECS
TRIALS: tuple[Spec, ...] = trials.SPECS
MACHINE: tuple[Spec, ...] = tuple(
    spec for spec in time.SPECS if spec.key in ("host-load", "links-backlog", "links-drops")
)
