"""Plans both sides of a middleware exchange: connections, flows, and the settings of the Java program."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from contract.plan import Delivery, File, Flow, Guarantee, Note, Payload, Probe, Process, Session, Software

from ...project import PROJECT
from ..accounting import to_send, told
from ..kind import Planned, SoftwareError
from ..programs import READY
from ..scene import Placed, Scene
from ..sending import Sending, expected_messages, make_flow
from . import known
from .file import LONGEST_SCHEDULE, Greedy, MiddlewareOptions

JAR = PROJECT / "target" / "middleware" / "middleware.jar"
ENVELOPE_BYTES = 12  # bytes before each object: its flow and number; a request consists of these only
HERE = Path(__file__).parent


def plan(scene: Scene, all_of_it: Sequence[Placed]) -> Iterator[Planned]:
    """Plans every middleware side of the lab, in the order given; raises SoftwareError if a flow has more
    than LONGEST_SCHEDULE messages.
    """
    for placed in all_of_it:
        yield _side(scene, placed, all_of_it)


def _side(scene: Scene, placed: Placed, all_of_it: Sequence[Placed]) -> Planned:
    options: MiddlewareOptions = placed.model.middleware
    listens = options.listen is not None
    at = placed if listens else _listening(options, all_of_it)
    sent = _sent(scene, placed, at, all_of_it)
    spec = {
        "use": at.model.middleware.use,
        "serialiser": at.model.middleware.serialiser,
        "listen": options.listen,
        "memory_bytes": options.memory,
        "servers_bytes": _servers_bytes(placed, all_of_it) if listens else 0,
        "accounts": told(placed, (to_send(scene, placed, flow, to) for flow, to in sent)),
    }
    software = Software(
        placed.name,
        "server" if listens else "client",
        placed.kind,
        _process(scene, placed, at, all_of_it),
        Session(placed.endpoint, 0, scene.end_ns, listens=listens),
        spec,
    )
    sets = {flow.deliveries[0].receivers: tuple(one.endpoint for one in to) for flow, to in sent}
    notes = () if not listens or _connected(placed, all_of_it) else (_alone(placed),)
    return Planned(software, tuple(flow for flow, _ in sent), sets, notes)


def _alone(placed: Placed) -> Note:
    asks = f"{{middleware: {{to: {placed.node}, request: {{rate: 10 /s}}}}}}"
    remedy = f"write `software: {{ask: {asks}}}` somewhere"
    return Note(f"nodes.{placed.node}.{placed.name}", "no client connects, so nothing is sent", remedy)


def _listening(options: MiddlewareOptions, all_of_it: Sequence[Placed]) -> Placed:
    """Returns the listening side that `options.to` names; the checks ensure that there is one."""
    there = (one for one in all_of_it if one.node == options.to)
    return next(one for one in there if one.model.middleware.listen is not None)


def _connected(at: Placed, all_of_it: Sequence[Placed]) -> list[Placed]:
    return [one for one in all_of_it if one.model.middleware.to == at.node]


def pattern(options: MiddlewareOptions) -> str:
    """Returns the pattern of a connecting side: "request", "push" or "publish"."""
    return "request" if options.request is not None else "push" if options.push is not None else "publish"


def _patterns(placed: Placed, all_of_it: Sequence[Placed]) -> list[str]:
    options: MiddlewareOptions = placed.model.middleware
    if options.to is not None:
        return [pattern(options)]
    return sorted({pattern(one.model.middleware) for one in _connected(placed, all_of_it)})


def _servers_bytes(placed: Placed, all_of_it: Sequence[Placed]) -> int:
    """Returns the memory of the servers that a listening side starts: one for requests and pushes, one for
    subscribers.
    """
    servers = {pattern == "publish" for pattern in _patterns(placed, all_of_it)}
    return known.middleware()[str(placed.model.middleware.use)].server_bytes * len(servers)


def _sent(
    scene: Scene, placed: Placed, at: Placed, all_of_it: Sequence[Placed]
) -> list[tuple[Flow, list[Placed]]]:
    """Returns the flows that a side sends, with their receivers: none, one, or two if the side has a greedy
    phase. Raises SoftwareError if the first flow has more than LONGEST_SCHEDULE messages.
    """
    options: MiddlewareOptions = placed.model.middleware
    wanted = options.request or options.push or options.publish
    if wanted is None:
        return []
    to, name = [at], f"{at.node} by {placed.kind}"
    if options.publish is not None:
        to = [one for one in _connected(placed, all_of_it) if one.model.middleware.subscribe]
        name = f"{placed.node}'s {placed.name} by {placed.kind}"
    flow = _flow(scene, placed, at, wanted, name)
    count = expected_messages(flow)
    if count > LONGEST_SCHEDULE:
        rule = f"sends about {count:.0f} messages, and {LONGEST_SCHEDULE} are the most"
        raise SoftwareError(placed.node, f"{placed.name} {rule}", "shorten the hold, or lower the rate")
    flows = [flow] if wanted.greedy is None else [flow, _greedy(scene, placed, flow, wanted.greedy)]
    return [(one, to) for one in flows]


def _greedy(scene: Scene, placed: Placed, flow: Flow, wanted: Greedy) -> Flow:
    """Returns a copy of the flow for its greedy phase, without a schedule."""
    start_ns = scene.at_ns(wanted.start)
    return dataclasses.replace(
        flow,
        name=f"{flow.name}.greedy",
        traffic_class=wanted.traffic_class or f"{scene.group_of[placed.node]}.{placed.name}.greedy",
        schedule=None,
        start_ns=start_ns,
        stop_ns=start_ns + wanted.duration,
        deadline_ns=0,
    )


def _flow(scene: Scene, placed: Placed, at: Placed, wanted: Sending, to: str) -> Flow:
    options: MiddlewareOptions = placed.model.middleware
    listening: MiddlewareOptions = at.model.middleware
    title = known.middleware()[str(listening.use)].title
    guarantee = Guarantee(title, f"{title}: no message is delivered twice", single=True)
    size_bytes = ENVELOPE_BYTES + known.serialisers()[str(listening.serialiser)].size_bytes
    asks = options.request is not None
    return make_flow(
        scene,
        placed,
        wanted,
        Payload("own", ENVELOPE_BYTES if asks else size_bytes),
        pattern="request" if asks else "push" if options.push is not None else "publish",
        deliveries=(Delivery(to, guarantee),),
        reply=Payload("own", size_bytes) if asks else None,
    )


def _address(scene: Scene, at: Placed, all_of_it: Sequence[Placed]) -> str:
    """Returns the address at which all clients reach the listening side. It is the address that the first
    client uses, because some libraries announce only one; without clients, it is the node's first address.
    """
    mine = _connected(at, all_of_it)
    return scene.address(at.node, mine[0].node) if mine else scene.interfaces[at.node][0].address


def _give_up_ns(options: MiddlewareOptions) -> int | None:
    wanted = options.request or options.push or options.publish
    return None if wanted is None else wanted.give_up


def _process(scene: Scene, placed: Placed, at: Placed, all_of_it: Sequence[Placed]) -> Process:
    options: MiddlewareOptions = placed.model.middleware
    listening: MiddlewareOptions = at.model.middleware
    address = _address(scene, at, all_of_it)
    own = address if placed is at else scene.address(placed.node, at.node)
    settings = {
        "middleware": listening.use,
        "serialiser": listening.serialiser,
        "side": "listen" if placed is at else "connect",
        "patterns": _patterns(placed, all_of_it),
        "address": {"host": address, "port": listening.listen},
        "own": {"host": own, "port": options.call_back},
        "give_up_ns": _give_up_ns(options),
        "seed": scene.seed_for("object", placed.node, placed.name),
        "warm_up_ns": options.warm_up,
    }
    files = {
        "settings.json": json.dumps(settings, indent=1) + "\n",
        "start.sh": (HERE / "start.sh").read_text(),
    }
    return Process(
        argv=("sh", f"{placed.name}/start.sh"),
        env={"JAR": str(JAR), "HEAP": str(options.memory), "SETTINGS": f"{placed.name}/settings.json"},
        files=tuple(File(f"{placed.name}/{path}", content) for path, content in files.items()),
        ready=Probe(log=READY, deadline_ns=options.ready_within),
    )
