"""Converts an imported file's tests, that one machine reaches another, to pings and expectations."""

from __future__ import annotations

from contract.plan import Plan

from .network import Network, Probe

SECONDS = 8  # length of a ping, within the hold of an imported lab (writing.HOLD)


def pings_of(network: Network, plan: Plan, machine: str) -> dict[str, object]:
    """Returns name -> software of a node: a ping for each of its probes, which always ends with status 0 (its
    output is judged).
    """
    return {
        probe.name: {
            "command": f"ping -n -i 0.5 -w {SECONDS} {_address(plan, probe)} || true",
            "start": "hold",
            "at_end": "exited",
        }
        for probe in network.probes
        if probe.source == machine
    }


def expectations(network: Network, plan: Plan) -> list[dict[str, object]]:
    """Returns the topology's `expect`: the node's log has an answer to each probe, or never has one."""
    return [
        {
            "log": probe.source,
            "never" if probe.fails else "eventually": f"bytes from {_address(plan, probe)}:",
        }
        for probe in network.probes
    ]


def _address(plan: Plan, probe: Probe) -> str:
    """Returns the planned address of the target's first interface."""
    return next(node.interfaces[0].address for node in plan.nodes if node.name == probe.target)
