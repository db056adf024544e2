"""Compares the load that a plan needs with the load that the machine carried in its calibration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from contract.plan import Flow, Note, Plan
from orchestrator.calibrate.store import Calibration
from orchestrator.plan.predict import costs_of
from orchestrator.software.sending import expected_messages

REMEDY = "use --time virtual, which does not depend on the machine's speed, or less load"


@dataclass(frozen=True, slots=True)
class Demand:
    """The highest load that the flows of a plan offer at once, as upper estimates. It excludes greedy
    transfers, and traffic that programs send without a flow.
    """

    packets_per_s: float
    bits_per_s: float
    messages_per_s: float


def demand(plan: Plan) -> Demand:
    """Returns the load at the highest rates of all schedules, with the packets that each message costs."""
    packets = bits = messages = 0.0
    sent = [flow for flow in plan.flows if flow.schedule is not None]
    of: dict[str, list[Flow]] = {}
    for flow in sent:
        of.setdefault(flow.sender, []).append(flow)
    homes = {session.endpoint: node.name for node, _, session in plan.sessions()}
    costs = costs_of(plan.nodes, plan.flows)
    by_node: dict[str, list[Flow]] = {}
    for sender, flows in of.items():
        if sender in homes:
            by_node.setdefault(homes[sender], []).extend(flows)
    for node, flows in by_node.items():
        total, peak = sum(map(expected_messages, flows)), sum(map(_peak, flows))
        messages += peak
        if total:
            frames = [one for cost in costs[node] for one in cost.packets]
            packets += peak / total * sum(count for count, _ in frames)
            bits += peak / total * sum(8 * count * length for count, length in frames)
    return Demand(packets, bits, messages)


def _peak(flow: Flow) -> float:
    """Returns the highest number of messages a second in a flow's schedule."""
    assert flow.schedule is not None
    highest = max(rate.per_s for rate in flow.schedule.rates)
    return highest * flow.schedule.burst / flow.schedule.count


def notes(plan: Plan, known: Calibration) -> Iterator[Note]:
    """Yields a note for each quantity of which the plan needs more than the machine carried faithfully."""
    asked = demand(plan)
    pairs = (
        (asked.packets_per_s, known.packets_per_s, "packets/s", 1.0),
        (asked.bits_per_s, known.bits_per_s, "Mbit/s", 1e6),
        (asked.messages_per_s, known.messages_per_s, "messages/s", 1.0),
    )
    for wanted, carried, unit, size in pairs:
        if wanted > carried:
            text = (
                f"asks for {_round(wanted / size)} {unit}; this machine was faithful up to "
                f"{_round(carried / size)} under kernel {known.kernel} (vnet calibrate, {known.date})"
            )
            yield Note("flows", text, REMEDY)


def _round(value: float) -> str:
    """Returns a number with three significant digits, and commas between thousands."""
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 100 else f"{value:.3g}"
