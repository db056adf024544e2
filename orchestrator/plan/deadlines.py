"""Finds deadlines of flows that are shorter than the delay of the links on the messages' path."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from contract.plan import Flow, Node, Note, Plan

from ..language.units import text_ns
from .paths import Paths


def late(plan: Plan, relays: dict[str, str]) -> Iterator[Note]:
    """Yields one note for each traffic class and deadline that a flow cannot meet; for requests the delay is
    that of both ways. Flows without a known path are left out.

    The comparison uses the delays of the links alone, without the time to send a frame. relays: flow name ->
    node that relays its messages.
    """
    paths = Paths.of(plan)
    nodes = {node.name: node for node in plan.nodes}
    at = {s.session.endpoint: n for n in plan.nodes for s in n.software if s.session is not None}
    told: set[tuple[str, int]] = set()
    for flow in plan.flows:
        key = (flow.traffic_class, flow.deadline_ns)
        if not flow.deadline_ns or key in told or flow.sender not in at:
            continue
        relay = nodes.get(relays.get(flow.name, ""))
        for name in (name for delivery in flow.deliveries for name in plan.receivers[delivery.receivers]):
            way_ns = _way_ns(paths, flow, at[flow.sender], relay, at[name]) if name in at else None
            if way_ns is not None and way_ns > flow.deadline_ns:
                told.add(key)
                yield _note(flow, name, way_ns)
                break


def _note(flow: Flow, receiver: str, way_ns: int) -> Note:
    way = "the way there and back" if flow.pattern == "request" else "the way"
    text = (
        f"deadline of {text_ns(flow.deadline_ns)}, and {way} from {flow.sender} to {receiver} "
        f"takes {text_ns(way_ns)}: they come too late"
    )
    return Note(f"class {flow.traffic_class}", text, "allow more time, or shorten the links' delays")


def _way_ns(paths: Paths, flow: Flow, sender: Node, relay: Node | None, receiver: Node) -> int | None:
    """Returns the delay (ns) of the links from sender to receiver, by way of the relay, and back for
    requests; None if a path is unknown.
    """
    stops = [sender, relay, receiver] if relay is not None else [sender, receiver]
    there = _sum(paths, stops)
    if flow.pattern != "request":
        return there
    back = _sum(paths, stops[::-1])
    return None if there is None or back is None else there + back


def _sum(paths: Paths, stops: list[Node]) -> int | None:
    parts = [paths.between(a.name, b.name) for a, b in itertools.pairwise(stops) if a.name != b.name]
    known = [part.delay_ns(frame_bytes=0) for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None
