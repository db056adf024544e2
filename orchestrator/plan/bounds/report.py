"""Computes the bounds of a plan: the least and worst delay of each flow, whether its deadline is met, and the
assumptions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from contract.plan import Flow, Plan

from .analysis import analyse
from .network import Bound
from .streams import assumptions, servers, streams


@dataclass(frozen=True, slots=True)
class FlowBound:
    """The bound of one flow to one receiver; for requests, until the answer arrives."""

    flow: Flow
    receiver: str
    bound: Bound

    @property
    def late(self) -> bool:
        """True if the flow has a deadline, and its worst delay exceeds the deadline or has no bound."""
        worst = self.bound.worst_s
        return bool(self.flow.deadline_ns) and (worst is None or worst * 1e9 > self.flow.deadline_ns)

    @property
    def hopeless(self) -> bool:
        """True if the flow has a deadline that even its least delay exceeds."""
        return bool(self.flow.deadline_ns) and round(self.bound.least_s * 1e9, 3) > self.flow.deadline_ns


@dataclass(frozen=True, slots=True)
class Bounds:
    """The content of `vnet plan --bounds`: one bound for each flow and receiver, and the assumptions."""

    lab: str
    flows: tuple[FlowBound, ...]
    assumptions: tuple[str, ...]


NO_TIME = "no link is on its way, and nodes are taken to need no time; say what they need"


def _timed(bound: Bound) -> Bound:
    """Returns the bound; a bound of 0 s becomes "no bound", since without links and without a time for nodes
    the delay is unknown.
    """
    return bound if bound.worst_s != 0 else replace(bound, worst_s=None, why=NO_TIME)


def bounds_of(plan: Plan, machine_bps: float = 0.0, node_ns: int = 0) -> Bounds:
    """Returns the bounds of all flows of a plan, one for each receiver, and the assumptions.

    machine_bps: the assumed rate (bit/s) of a link without a rate; 0: such a link has no bound. node_ns: the
    longest time that a node needs to send a message, and again to receive one.
    """
    owed = list(streams(plan, node_ns / 1e9))
    found = analyse({one.name: one for one in servers(plan, machine_bps)}.values(), [o.stream for o in owed])
    flows = [
        FlowBound(one.flow, one.receiver, _timed(bound))
        for one, bound in zip(owed, found, strict=True)
        if one.flow is not None
    ]
    return Bounds(plan.lab, tuple(flows), tuple(assumptions(plan, node_ns / 1e9)))
