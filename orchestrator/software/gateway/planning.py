"""Plans gateways and their brokers: the classes of each device, and the connections between them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from contract.plan import Band, Direction, File, Probe, Process, Software

from ...language.units import text_bps
from ..kind import Planned, SoftwareError
from ..programs import READY
from ..scene import Placed, Scene
from . import overlay
from .file import GatewayOptions, Governed, ReservationsOptions

PROGRAM = "/proc/self/exe"  # starts the agent's own program from any path
GATEWAY, RESERVATIONS = "gateway", "reservations"  # names of the kinds, and of the agent's roles for them
READY_WITHIN_NS = 10 * 10**9


def plan_gateways(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    """Plans every gateway of the lab, in the order given. Raises SoftwareError if a gateway's link, a flow's
    class, upstream node or overlay, or the broker does not fit.
    """
    for placed in all_of_it:
        options: GatewayOptions = placed.model.gateway
        direction = _governed(scene, placed)
        classes = _classes(placed, direction)
        settings = {
            "name": _name(placed),
            "device": direction.device,
            "listen": options.listen,
            "period_ns": options.period,
            "phase_ns": 1 + scene.seed_for("gateway", _name(placed)) % options.period,
            "weight": options.weight,
            "headroom": options.headroom,
            "release_ns": options.release,
            "cooperate": options.cooperate,
            "broker": _broker(scene, placed, options.broker),
            "overlay": overlay.settings(options, direction.device),
            "flows": [
                {
                    "name": name,
                    "place": list(classes).index(name),
                    "class": flow.service,
                    "group": flow.group,
                    "minimum_bps": flow.minimum,
                    **({} if flow.maximum is None else {"maximum_bps": flow.maximum}),
                    "reserved_bps": classes[name].rate_bps,
                    "shared": overlay.shared(
                        flow.overlay, classes[name], scene.seed_for("red", _name(placed), name)
                    ),
                    "upstream": _upstream(scene, placed, name, flow),
                }
                for name, flow in options.flows.items()
            ],
        }
        spec = {
            "link": options.link,
            "flows": list(options.flows),
            "cooperate": options.cooperate,
            "least_bps": {
                name: _least_bps(options, flow, classes[name]) for name, flow in options.flows.items()
            },
            "overlay": [name for name, flow in options.flows.items() if flow.overlay is not None],
        }
        yield _planned(placed, settings, spec)


def plan_reservations(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    """Plans every reservation broker of the lab, with the gateways that report to it; raises SoftwareError if
    a gateway's link, class or overlay does not fit.
    """
    for placed in all_of_it:
        options: ReservationsOptions = placed.model.reservations
        callers = [
            one
            for node in scene.placed
            for one in scene.at(node, GATEWAY)
            if one.model.gateway.broker == placed.node
        ]
        settings = {
            "listen": options.listen,
            "response_ns": options.response,
            "gateways": {_name(one): _reserved(scene, placed, one) for one in callers},
        }
        spec = {"gateways": [one.node for one in callers], "response_ns": options.response}
        yield _planned(placed, settings, spec)


def _planned(placed: Placed, settings: Any, spec: dict[str, Any]) -> Planned:
    file = File(f"{placed.name}/settings.json", json.dumps(settings, indent=1) + "\n")
    process = Process(
        argv=(PROGRAM, placed.kind, file.path),
        files=(file,),
        ready=Probe(log=READY, deadline_ns=READY_WITHIN_NS),
    )
    role: Literal["router", "utility"] = "router" if placed.kind == GATEWAY else "utility"
    return Planned(Software(placed.name, role, placed.kind, process, spec=spec))


def _name(placed: Placed) -> str:
    """Returns the name of the gateway in messages to the broker."""
    return f"{placed.node}-{placed.name}"


def _governed(scene: Scene, placed: Placed) -> Direction:
    """Returns the direction of the gateway's link that leaves its node; raises SoftwareError if the node
    has no such link.
    """
    name = placed.model.gateway.link
    link = next((one for one in scene.links if one.name == name), None)
    if link is None or placed.node not in (link.a, link.b):
        own = [one.name for one in scene.links if placed.node in (one.a, one.b)]
        remedy = f"write one of {', '.join(own)}" if own else "add a link from this node"
        raise _wrong(placed, f"link {name} does not end at this node", remedy)
    return link.forward if placed.node == link.a else link.reverse


def _classes(placed: Placed, direction: Direction) -> dict[str, Band]:
    """Returns the HTB classes of the gateway's direction by name, in the kernel's order. Raises SoftwareError
    if the direction has no HTB, or a flow has no class, a minimum above its class's rate, or an overlay that
    conflicts with its class.
    """
    options: GatewayOptions = placed.model.gateway
    queue = direction.impairment.queue
    if queue is None or queue.kind != "htb":
        remedy = "give it `queue: {htb: {CLASS: {rate: ..., port: ...}}}`"
        raise _wrong(placed, f"link {options.link} has no HTB from this node", remedy)
    classes = {one.name: one for one in queue.bands}
    for name, flow in options.flows.items():
        if name not in classes:
            remedy = f"write one of {', '.join(classes)}, or add the class"
            raise _wrong(placed, f"flow {name} has no class on link {options.link}", remedy)
        if flow.minimum > classes[name].rate_bps:
            least, rate = text_bps(flow.minimum), text_bps(classes[name].rate_bps)
            raise _wrong(
                placed, f"flow {name}: minimum {least} is above its class's rate, {rate}", "lower it"
            )
        if flow.maximum is not None and flow.maximum < classes[name].ceil_bps:
            most, ceil = text_bps(flow.maximum), text_bps(classes[name].ceil_bps)
            raise _wrong(
                placed,
                f"flow {name}: maximum {most} is below its class's ceiling, {ceil}",
                "raise it, or lower the class's `ceil`",
            )
        if flow.overlay is not None and (wrong := overlay.mistake(flow.overlay, classes[name])):
            raise _wrong(placed, f"flow {name}: {wrong[0]}", wrong[1])
    return classes


def _least_bps(options: GatewayOptions, flow: Governed, band: Band) -> int:
    """Returns the least rate of a flow: its minimum, or its class's rate if it is high real-time or the
    gateway does not cooperate.
    """
    victim = options.cooperate and flow.service != "high-real-time"
    return flow.minimum if victim else band.rate_bps


def _upstream(scene: Scene, placed: Placed, name: str, flow: Governed) -> str | None:
    """Returns the address at which the flow's upstream node listens. That node has a gateway with this flow,
    or a UDP sender with `rate_limits_from`; SoftwareError if it has neither. None if the flow names no
    upstream node.
    """
    if flow.upstream is None:
        return None
    for one in scene.at(flow.upstream, GATEWAY):
        if name in one.model.gateway.flows:
            return address(scene, placed, one.node, one.model.gateway.listen)
    for one in scene.at(flow.upstream, "udp"):
        limits = one.model.udp.rate_limits_from
        if limits is not None and limits.flow == name:
            return address(scene, placed, one.node, limits.listen)
    limited = f"`rate_limits_from: {{listen: 7101, flow: {name}}}`"
    remedy = f"give it a gateway with this flow, or a sender with {limited}"
    raise _wrong(placed, f"flow {name}: {flow.upstream} has no gateway or sender for it", remedy)


def _broker(scene: Scene, placed: Placed, node: str | None) -> str | None:
    if node is None:
        return None
    found = scene.at(node, RESERVATIONS)
    if not found:
        remedy = f"write `software: {{broker: {{reservations: {{}}}}}}` at {node}"
        raise _wrong(placed, f"broker {node} keeps no reservations", remedy)
    return address(scene, placed, node, found[0].model.reservations.listen)


def _reserved(scene: Scene, broker: Placed, gateway: Placed) -> dict[str, Any]:
    """Returns the broker's settings for one of its gateways: the gateway's address, the rate that remains for
    the classes that it governs, and for each of its flows the rate of its class.
    """
    direction = _governed(scene, gateway)
    classes = _classes(gateway, direction)
    flows = gateway.model.gateway.flows
    others = sum(one.rate_bps for name, one in classes.items() if name not in flows)
    return {
        "at": address(scene, broker, gateway.node, gateway.model.gateway.listen),
        "rate_bps": direction.impairment.rate_bps - others,
        "reserved_bps": {name: classes[name].rate_bps for name in flows},
    }


def address(scene: Scene, here: Placed, node: str, port: int) -> str:
    """Returns ADDRESS:PORT of a node as seen from the node of `here`."""
    found = scene.address(node, here.node)
    return f"[{found}]:{port}" if ":" in found else f"{found}:{port}"


def _wrong(placed: Placed, rule: str, remedy: str) -> SoftwareError:
    return SoftwareError(placed.node, f"{placed.name}: {rule}", remedy)
