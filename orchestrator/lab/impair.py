"""Merges changes of single fields into the present impairment."""

from __future__ import annotations

import dataclasses
from typing import Any

from contract.codec import build
from contract.plan import Impairment
from contract.plan.network import REACH
from orchestrator.lab.errors import LabError
from orchestrator.language.units import text_ns
from orchestrator.plan.queues import impossible

FIELDS = {f.name for f in dataclasses.fields(Impairment)}


def merged(current: Impairment, changes: dict[str, Any], place: str) -> Impairment:
    """`current` with some fields replaced; LabError for an unknown field or a value out of range."""
    if unknown := changes.keys() - FIELDS:
        raise LabError(
            f"{place}: no such quantity: {', '.join(sorted(unknown))}; known: {', '.join(sorted(FIELDS))}"
        )
    changed = build(Impairment, {**dataclasses.asdict(current), **changes})
    for name in FIELDS - {"distribution", "gemodel", "queue", "slot", "netem_stays", "backpressure"}:
        value = getattr(changed, name)
        highest = 1.0 if isinstance(value, float) else float("inf")
        if not 0 <= value <= highest:
            raise LabError(f"{place}.{name}: {value}: not between 0 and {highest:g}")
    if (reach := changed.jitter_ns * REACH.get(changed.distribution, 0)) > changed.delay_ns:
        raise LabError(
            f"{place}.jitter: {text_ns(changed.jitter_ns)} {changed.distribution} needs a delay of at least "
            f"{text_ns(round(reach))}, has {text_ns(changed.delay_ns)}; a packet cannot leave before it came"
        )
    if changed.present and not changed.limit_packets:
        raise LabError(f"{place}.limit: 0 packets: a queue that drops everything; give a limit")
    if (wrong := impossible(changed)) is not None:
        raise LabError(f"{place}: {wrong}")
    return changed
