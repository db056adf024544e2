"""Splits a link proof over the hosts of the links, and merges the results.

For a link between hosts, the proof covers the qdisc on the near host, from the node to its port. The underlay
is measured separately (crossing.py) and is not added to any result.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.multi_host.hostpart import HostPart
from orchestrator.lab.multi_host.places import Places
from orchestrator.lab.operations import Operation, Probe, Probed, Prove


def split(request: Prove, places: Places, parts: Sequence[HostPart]) -> list[tuple[HostPart, Operation[Any]]]:
    """Assigns each probe to the host of its link's direction, or of its device if the plan lacks the link;
    returns one request per part that has probes.

    A probe whose host is unknown (the reference wire) goes to every part. Raises LabError if the host is
    lost, or if the qdisc of a link between hosts is on a tunnel.
    """
    of: dict[str, list[Probe]] = {part.name: [] for part in parts}
    for probe in request.probes:
        way = places.direction(probe["link"], probe["direction"])
        if way is not None and way.host != way.far_host:
            probe = _near(probe, places)
        at = places.device(probe["netns"], probe["device"]) if way is None else way.host
        for name in of if at is None else [at]:
            if name not in of:
                raise LabError(f"links.{probe['link']}: host {name} is gone")
            of[name].append(probe)
    return [(part, Prove(of[part.name])) for part in parts if of[part.name]]


def _near(probe: Probe, places: Places) -> Probe:
    port = places.port_of(probe["netns"], probe["device"])
    if port is None:
        raise LabError(f"links.{probe['link']}: its qdisc is on a tunnel, which no host can prove alone")
    return {**probe, "far_netns": places.core, "far_device": port}


def joined(request: Prove, answers: Sequence[Message]) -> Message:
    """Merges the hosts' answers in the order of the request's probes; returns the first refusal unchanged. If
    several hosts answer one probe, an answer without delays is used if there is one, otherwise the answer
    with the largest median delay.
    """
    found: dict[tuple[str, str], Probed] = {}
    for answer in answers:
        if not answer.get("ok"):
            return answer
        for probed in answer["probes"]:
            key = probed["link"], probed["direction"]
            if key not in found or _slowness(probed) > _slowness(found[key]):
                found[key] = probed
    return {"ok": True, "probes": [found[p["link"], p["direction"]] for p in request.probes]}


def _slowness(probed: Probed) -> float:
    delays = probed["delays_ns"]
    return statistics.median(delays) if delays else float("inf")
