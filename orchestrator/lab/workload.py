"""Builds the workload of a scenario: the roles of the nodes' agents, each with the flows that it sends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from contract.codec import plain
from contract.plan import Plan, Software
from orchestrator.lab.operations import Item, Role


def items(plan: Plan) -> list[Item]:
    """Returns one item per role that an agent plays, in the order of the plan, with the flows that it sends
    and their numbers in the plan.
    """
    sent: dict[str, list[dict[str, Any]]] = {}
    for number, flow in enumerate(plan.flows):
        sent.setdefault(flow.sender, []).append({"number": number, **plain(flow)})
    return [
        {"node": node.name, "software": _role(software), "flows": sent.get(software.session.endpoint, [])}
        for node in plan.nodes
        for software in node.software
        if software.session is not None and software.process is None
    ]


def connecting(armed: Sequence[Item]) -> int:
    """Returns the number of sessions that connect; the others listen."""
    return sum(not item["software"]["session"]["listens"] for item in armed)


def endpoint(item: Item) -> str:
    """Returns the name of the role's session in records."""
    return str(item["software"]["session"]["endpoint"])


def _role(software: Software) -> Role:
    whole = plain(software)
    return {"name": software.name, "kind": software.kind, "session": whole["session"], "spec": whole["spec"]}
