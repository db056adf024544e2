"""Extracts one host's part from a plan."""

from __future__ import annotations

import dataclasses

from contract.plan import Plan


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
