"""Plans stations: the settings of each program, and the tc lines that divert frames to it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from contract.plan import Direction, File, Probe, Process, Software

from ...language.units import text_bps
from ..kind import Planned, SoftwareError
from ..programs import READY
from ..scene import Placed, Scene
from .file import StationOptions

PROGRAM = "/proc/self/exe"  # starts the agent's own program from any path
STATION = "station"  # name of the kind, and of the agent's role for it
READY_WITHIN_NS = 10 * 10**9
MARK = 0x5354  # mark of packets that have passed the station
INGRESS, EGRESS = "ffff:fff2", "ffff:fff3"  # parents of a clsact qdisc's filters


def plan_stations(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    """Plans every station of the lab, in the order given. Raises SoftwareError if its link does not end at
    the node, or carries less than its hardware queue sends.
    """
    for placed in all_of_it:
        options: StationOptions = placed.model.station
        direction = _direction(scene, placed)
        settings = _settings(options, direction.device)
        file = File(f"{placed.name}/settings.json", json.dumps(settings, indent=1) + "\n")
        process = Process(
            argv=(PROGRAM, STATION, file.path),
            files=(file,),
            ready=Probe(log=READY, deadline_ns=READY_WITHIN_NS),
        )
        spec = {
            "link": options.link,
            "receive": options.receive.algorithm if options.receive is not None else None,
            "transmit": options.transmit.policy if options.transmit is not None else None,
        }
        yield Planned(Software(placed.name, "utility", placed.kind, process, spec=spec))


def _settings(options: StationOptions, device: str) -> dict[str, Any]:
    receive, transmit = options.receive, options.transmit
    into, out = f"rx-{device}", f"tx-{device}"
    lines = [f"qdisc replace dev {device} clsact"]
    found: dict[str, Any] = {"device": device, "mark": MARK, "receive": None, "transmit": None}
    if receive is not None:
        lines += _diverted(device, INGRESS, into)
        lines += [
            f"qdisc replace dev {into} clsact",
            f"filter add dev {into} parent {INGRESS} protocol all pref 1 matchall "
            f"action skbedit mark {MARK:#x} pipe action mirred ingress redirect dev {device}",
        ]
        found["receive"] = {
            "tap": into,
            "algorithm": receive.algorithm,
            "promote_after": receive.promote_after,
            "limit": receive.limit,
            "rate_bps": receive.rate,
            "queues": receive.queues,
        }
    if transmit is not None:
        lines += _diverted(device, EGRESS, out)
        found["transmit"] = {
            "tap": out,
            "policy": transmit.policy,
            "limit": transmit.limit,
            "rate_bps": transmit.rate,
            "high": transmit.high,
        }
    return {**found, "filters": lines}


def _diverted(device: str, parent: str, tap: str) -> list[str]:
    """Returns the tc lines that send frames without the mark to a TAP device; the other frames pass."""
    at = f"dev {device} parent {parent}"
    return [
        f"filter del {at}",
        f"filter add {at} protocol all pref 1 handle {MARK:#x} fw action pass",
        f"filter add {at} protocol all pref 2 matchall action mirred egress redirect dev {tap}",
    ]


def _direction(scene: Scene, placed: Placed) -> Direction:
    """Returns the direction of the station's link that leaves its node; raises SoftwareError if the node has
    no such link, or the direction has a lower rate than the hardware queue.
    """
    options: StationOptions = placed.model.station
    link = next((one for one in scene.links if one.name == options.link), None)
    if link is None or placed.node not in (link.a, link.b):
        own = [one.name for one in scene.links if placed.node in (one.a, one.b)]
        remedy = f"write one of {', '.join(own)}" if own else "add a link from this node"
        raise _wrong(placed, f"link {options.link} does not end at this node", remedy)
    found = link.forward if placed.node == link.a else link.reverse
    rate, sent = found.impairment.rate_bps, options.transmit.rate if options.transmit is not None else 0
    if rate and sent > rate:
        rule = f"its hardware queue sends at {text_bps(sent)}, and link {options.link} has {text_bps(rate)}"
        raise _wrong(placed, rule, "lower `transmit.rate`, so that frames wait in the station")
    return found


def _wrong(placed: Placed, rule: str, remedy: str) -> SoftwareError:
    return SoftwareError(placed.node, f"{placed.name}: {rule}", remedy)
