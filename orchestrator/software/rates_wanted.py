"""Defines, checks and plans the rate at which a receiver wants to get a flow, which it sends to a gateway."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ..language.scalars import Base, Name, Rate, Since
from ..language.source import Path
from .checking import Checks, Here, joined
from .gateway.file import Gateway
from .gateway.planning import GATEWAY, address
from .scene import Placed, Scene
from .sending import check_order


class RateWanted(Base):
    """A wanted rate and the time from which it is wanted."""

    since: Since = Field(
        alias="from", description="From when on: a moment, or a duration from the ramp's start."
    )
    rate: Rate = Field(description="Rate with all headers; 0 bit/s: no rate in particular.")


class Wants(Base):
    """The receiver sends a gateway the rate at which it wants a flow. Gateways move shares for it as for a
    sender that sends more, and the sender's `rate_limits_from` follows.
    """

    gateway: Name = Field(
        description="Node with a gateway that has the flow: the last one on the flow's way."
    )
    flow: Name = Field(description="The flow's name in the `flows` of gateways.")
    rates: list[RateWanted] = Field(min_length=1, description="Wanted rates in the order of time.")


def check(report: Checks, here: Here, path: Path, wants: Wants) -> None:
    """Reports a wrong node (it does not exist, has no gateway with the flow, or cannot be reached), a flow
    whose shares never move, a rate above the flow's `maximum` there, and times that are after the load or out
    of order.
    """
    check_order(report, (*path, "rates"), [one.since for one in wants.rates])
    where = (*path, "gateway")
    if not report.node(where, wants.gateway):
        return
    programs = report.programs(wants.gateway).values()
    flows = [one.gateway.flows for one in programs if isinstance(one, Gateway)]
    flow = next((of[wants.flow] for of in flows if wants.flow in of), None)
    if flow is None:
        known = sorted({name for of in flows for name in of})
        remedy = f"write one of its flows: {', '.join(known)}" if known else "name a node with a `gateway`"
        rule = f"no gateway of {wants.gateway} has the flow {wants.flow}"
        report.add((*path, "flow") if flows else where, wants.flow if flows else wants.gateway, rule, remedy)
        return
    joined(report, here, where, wants.gateway, wants.gateway)
    if flow.service != "high-real-time":
        rule = f"is {flow.service} at {wants.gateway}, and shares move for high-real-time flows alone"
        report.add((*path, "flow"), wants.flow, rule, "want a flow of that service")
    for index, one in enumerate(wants.rates):
        if flow.maximum is not None and one.rate > flow.maximum:
            rule = f"is above the flow's maximum at {wants.gateway}"
            report.add((*path, "rates", index, "rate"), None, rule, "lower it, or raise `maximum` there")


def spec(scene: Scene, placed: Placed, wants: Wants) -> dict[str, Any]:
    """Returns the agent's settings for the wanted rates: the gateway's address, the flow and the steps, whose
    moments are ns from the scenario's start.
    """
    gateway = next(one for one in scene.at(wants.gateway, GATEWAY) if wants.flow in one.model.gateway.flows)
    return {
        "gateway": address(scene, placed, wants.gateway, gateway.model.gateway.listen),
        "name": wants.flow,
        "steps": [{"from_ns": scene.at_ns(one.since), "bps": one.rate} for one in wants.rates],
    }
