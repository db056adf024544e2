"""Frames that prove links, on the hosts where the links are."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.operations import Operation, Probe, Probed, Prove
from orchestrator.lab.spread.hostpart import HostPart
from orchestrator.lab.spread.places import Places


def split(request: Prove, places: Places, parts: Sequence[HostPart]) -> list[tuple[HostPart, Operation[Any]]]:
    """Each probe goes to the host of its link; one of no link (the reference wire) to every host."""
    of: dict[str, list[Probe]] = {part.name: [] for part in parts}
    for probe in request.probes:
        at = places.direction(probe["link"], probe["direction"])
        if at is not None and at[0] != at[1]:
            raise LabError(f"links.{probe['link']}: leads from host {at[0]} to {at[1]}; no host can prove it alone")
        for name in of if at is None else [at[0]]:
            if name not in of:
                raise LabError(f"links.{probe['link']}: host {name} is gone")
            of[name].append(probe)
    return [(part, Prove(of[part.name])) for part in parts if of[part.name]]


def joined(request: Prove, answers: Sequence[Message]) -> Message:
    """In the order of the request; of what several hosts were asked, the slowest's."""
    found: dict[tuple[str, str], Probed] = {}
    for answer in answers:
        if not answer.get("ok"):
            return answer
        for probed in answer["probes"]:
            key = probed["link"], probed["direction"]
            if key not in found or _slowness(probed) > _slowness(found[key]):
                found[key] = probed
    return {"ok": True, "probes": [found[p["link"], p["direction"]] for p in request.probes]}


def _slowness(probed: Mapping[str, object]) -> float:
    delays = probed["delays_ns"]
    return statistics.median(delays) if isinstance(delays, list) and delays else float("inf")
