"""Converts a lab's network and plan to data for the page: drawing, nodes, links, timeline, flows."""

from __future__ import annotations

import dataclasses
from collections.abc import Container
from typing import Any

from contract.codec import build
from contract.plan import WAYS, Flow, Impairment, Plan
from orchestrator.cli.page.drawing import drawing
from orchestrator.cli.page.flows import Known


def network(found: dict[str, Any], routers: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Converts the answer to `inspect` to {drawing, nodes, links, captures} for the page.

    routers: names of the nodes that forward packets.
    """
    return {
        "drawing": drawn(found, routers),
        "nodes": {name: _node(node) for name, node in found["nodes"].items()},
        "links": {name: _link(link) for name, link in found["links"].items()},
        "captures": found.get("captures", {}),
    }


def drawn(found: dict[str, Any], routers: frozenset[str], unfolded: Container[str] = ()) -> dict[str, Any]:
    """Returns the drawing of the answer to `inspect`, in which the groups `unfolded` show their nodes (see
    `drawing.drawing`).
    """
    nodes = {name: {**node, "forward": name in routers} for name, node in found["nodes"].items()}
    return drawing({**found, "nodes": nodes}, unfolded)


def portless(found: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Returns link -> (a, b) of the links that join two nodes directly, without a port in the core namespace.
    The counters of nodes do not include the traffic of these links; the counters of links do.
    """
    wires = {
        card["segment"]
        for node in found["nodes"].values()
        for card in node["interfaces"]
        if not card.get("port") and not card.get("nic")
    }
    links = found["links"].items()
    return {name: (link["a"], link["b"]) for name, link in links if link["kind"] == "nodes" and name in wires}


def with_wires(
    nodes: dict[str, dict[str, float]], links: dict[str, Any], wires: dict[str, tuple[str, str]]
) -> dict[str, dict[str, float]]:
    """Returns the rates of nodes plus those of their `portless` links (`wires`); does not change `nodes`."""
    found = {name: dict(values) for name, values in nodes.items()} if wires else nodes
    for name, (a, b) in wires.items():
        for side, sender, receiver in (("forward", a, b), ("reverse", b, a)):
            bps = links.get(name, {}).get(side, {}).get("bps", 0.0)
            for node, key in ((sender, "tx_bps"), (receiver, "rx_bps")):
                if node in found:
                    found[node][key] += bps
    return found


INTERFACE_KEYS = ("name", "segment", "address", "prefix", "second", "second_prefix", "mtu", "mac")


def _node(node: dict[str, Any]) -> dict[str, Any]:
    return {
        "state": node["state"], "group": node["group"], "kind": node["kind"],
        "limits": node.get("limits", {}),
        "interfaces": [
            {k: card.get(k) for k in INTERFACE_KEYS}
            for card in node["interfaces"]
        ],
        "software": {name: state.get("state") for name, state in node["software"].items()},
    }  # fmt: skip


def _link(link: dict[str, Any]) -> dict[str, Any]:
    sides = {
        side: {
            "requested": words(link[side]["requested"]), "rate_bps": link[side]["requested"]["rate_bps"],
            "read": words(link[side]["read"]) if link[side].get("read") else "plain wire",
            "delay_ns": link[side]["requested"]["delay_ns"], "loss": link[side]["requested"]["loss"],
            "brief": brief(link[side]["requested"]),
            "classes": [one["name"] for one in (link[side]["requested"].get("queue") or {}).get("bands", ())],
        }
        for side in WAYS
    }  # fmt: skip
    return {"a": link["a"], "b": link["b"], "kind": link["kind"], "down": link["down"], **sides}


def brief(impairment: dict[str, Any]) -> str:
    """Returns delay, rate and loss as text: `20 ms, 10 Mbit/s, loss 1 %`; "" if the impairment has none of
    them.
    """
    from orchestrator.language.units import text_bps, text_ns, text_share

    parts = [text_ns(impairment["delay_ns"])] if impairment["delay_ns"] else []
    parts += [text_bps(impairment["rate_bps"])] if impairment["rate_bps"] else []
    parts += [f"loss {text_share(impairment['loss'])}"] if impairment["loss"] else []
    return ", ".join(parts)


def words(impairment: dict[str, Any]) -> str:
    """Returns an impairment in the notation of topology files; `plain wire` if it is empty."""
    from orchestrator.plan.summary import impairment_words

    return ", ".join(impairment_words(build(Impairment, impairment))) or "plain wire"


def planned(plan: Plan) -> dict[str, Any]:
    """Returns a plan in the form of the answer to `inspect`, for a lab that cannot be queried."""
    nodes = {
        node.name: {
            "state": "planned", "group": node.group, "kind": node.kind,
            "interfaces": [dataclasses.asdict(card) for card in node.interfaces],
            "roles": [one.role for one in node.software],
            "software": {one.name: {"state": one.kind} for one in node.software},
        }
        for node in plan.nodes
    }  # fmt: skip
    links = {
        link.name: {
            "a": link.a, "b": link.b, "kind": link.kind, "down": False,
            **{
                side: dict.fromkeys(("requested", "read"), dataclasses.asdict(link.way(side).impairment))
                for side in WAYS
            },
        }
        for link in plan.links
    }  # fmt: skip
    return {"nodes": nodes, "links": links, "segments": [dataclasses.asdict(one) for one in plan.segments]}


def routers(plan: Plan) -> frozenset[str]:
    """Returns the names of the nodes that forward packets."""
    return frozenset(node.name for node in plan.nodes if node.forward)


def timeline(plan: Plan) -> dict[str, Any]:
    """Returns the lengths of the phases, the events with their times from the start of the scenario, the
    names of captures, and the class of each flow.
    """
    begin = {"ramp": 0, "hold": plan.ramp_ns, "drain": plan.ramp_ns + plan.hold_ns}
    return {
        "ramp_ns": plan.ramp_ns, "hold_ns": plan.hold_ns, "drain_ns": plan.drain_ns,
        "events": [
            {"at_ns": begin[e.phase] + e.at_ns, "action": e.action, "targets": e.targets, "label": e.label}
            for e in plan.events
        ],
        "captures": [capture.name for capture in plan.captures],
        "flows": {one.name: one.traffic_class for one in flows(plan).values()},
    }  # fmt: skip


def flows(plan: Plan) -> dict[str, Known]:
    """Returns the number of each flow in the records, as text -> the flow."""
    return {str(number): _flow(flow, plan) for number, flow in enumerate(plan.flows)}


def _flow(flow: Flow, plan: Plan) -> Known:
    sets = [plan.receivers[delivery.receivers] for delivery in flow.deliveries]
    around = flow.spread == "round-robin"  # each message goes to one receiver of a set
    owed = sum(min(1, len(one)) for one in sets) if around else len({name for one in sets for name in one})
    return Known(flow.name, flow.traffic_class, owed)
