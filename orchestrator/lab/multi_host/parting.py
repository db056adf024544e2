"""Extracts one host's part from a plan, and makes the first request to the host and the list of its wires."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from contract.plan import Plan
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.multi_host.encoding import fields, silence_s


def of_host(plan: Plan, host: str) -> Plan:
    """Returns the plan with only the nodes, links, steps, captures and tunnels of one host; a link or tunnel
    belongs to every host on which it ends. All other fields of the plan stay.
    """
    return dataclasses.replace(
        plan,
        nodes=tuple(node for node in plan.nodes if node.host == host),
        links=tuple(li for li in plan.links if host in (li.forward.host, li.reverse.host)),
        steps=tuple(step for step in plan.steps if step.host == host),
        captures=tuple(point for point in plan.captures if point.host == host),
        tunnels=tuple(tunnel for tunnel in plan.tunnels if host in tunnel.ends),
    )


def begin_request(plan: Plan, host: str, run_dir: Path) -> Message:
    """Returns the first request to a part. It has the host's part of the plan without steps, flows, events,
    captures, predictions and traces, and the other hosts' nodes without their programs, for name resolution.
    """
    others = (dataclasses.replace(n, software=(), vm=None) for n in plan.nodes if n.host != host)
    kept = dataclasses.replace(
        of_host(plan, host),
        steps=(),
        flows=(),
        receivers={},
        shared={},
        events=(),
        captures=(),
        predictions=(),
        traces={},
    )
    return {
        "plan": dataclasses.asdict(kept), "others": fields(others), "run_dir": str(run_dir),
        "driver": "light", "silence_s": silence_s(),
    }  # fmt: skip


def wires_of(plan: Plan) -> dict[str, dict[str, list[str]]]:
    """Returns the ends of the links between two nodes that bypass the core namespace, by host and namespace;
    omits ends in VM nodes.
    """
    found: dict[str, dict[str, list[str]]] = {}
    guests = {node.netns for node in plan.nodes if node.vm is not None}
    for link in plan.links:
        for way in (link.forward, link.reverse) if link.kind == "nodes" and not link.through_core else ():
            if way.netns not in guests:
                found.setdefault(way.host, {}).setdefault(way.netns, []).append(way.device)
    return found
