"""The bounds of a plan: each flow's worst delay with its deadline, and the assumptions."""

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
        """Whether its deadline is not certain to be met."""
        worst = self.bound.worst_s
        return bool(self.flow.deadline_ns) and (worst is None or worst * 1e9 > self.flow.deadline_ns)

    @property
    def hopeless(self) -> bool:
        """Whether even its least delay is above its deadline."""
        return bool(self.flow.deadline_ns) and round(self.bound.least_s * 1e9, 3) > self.flow.deadline_ns


@dataclass(frozen=True, slots=True)
class Bounds:
    """All content of `vnet plan --bounds`."""

    lab: str
    flows: tuple[FlowBound, ...]
    assumptions: tuple[str, ...]


NO_TIME = "no link is on its way, and nodes are taken to need no time; say what they need"


def _timed(bound: Bound) -> Bound:
    """A bound of zero bounds nothing: on a segment without links only nodes take time."""
    return bound if bound.worst_s != 0 else replace(bound, worst_s=None, why=NO_TIME)


def bounds_of(plan: Plan, machine_bps: float = 0.0, node_ns: int = 0) -> Bounds:
    """`machine_bps`: what a link without a rate is taken to have; 0: then it has no bound.

    node_ns: what a node takes at most to send a message, and again to take one.
    """
    owed = list(streams(plan, node_ns / 1e9))
    found = analyse({one.name: one for one in servers(plan, machine_bps)}.values(), [o.stream for o in owed])
    flows = [
        FlowBound(one.flow, one.receiver, _timed(bound))
        for one, bound in zip(owed, found, strict=True)
        if one.flow is not None
    ]
    return Bounds(plan.lab, tuple(flows), tuple(assumptions(plan, node_ns / 1e9)))
