"""Defines the keys of gateways and of their broker in a topology file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ...language.scalars import Base, Duration, Name, Port, Rate, Share, Span, text

Service = Literal["high-real-time", "low-real-time", "best-effort"]


Order = Literal["edf", "fifo"]
Late = Literal["send", "drop"]


class Deadline(Base):
    """The packets from and to a port: TCP and UDP over IPv4."""

    port: Port = Field(description="One of the class's.")
    deadline: Duration = Field(description="So long after it came a packet is to leave at the latest.")


class Overlay(Base):
    """The gateway forwards the class's packets itself, in user space, in a queue that several flows share."""

    flows: list[Deadline] = Field(
        min_length=1, description="All ports of the class; each has room for as many packets as its `limit`."
    )
    order: Order = Field("edf", description="Earliest deadline first, or `fifo`: as they came.")
    late: Late = Field(
        "send", description="Or `drop`: packets whose deadline has passed when their turn comes."
    )


class Governed(Base):
    """A flow: the link's HTB class of its name has its packets, and that class's rate is its reservation."""

    service: Service = Field(description="Who gives way to whom: best effort first, high real time never.")
    group: Name = Field(description="Flows of one group are correlated: they give way to each other first.")
    minimum: Rate = Field(description="It never has less.")
    upstream: Name | None = Field(
        None,
        description="The node that gets its share: a gateway, or its sender, which has `rate_limits_from`.",
    )
    overlay: Overlay | None = Field(
        None,
        description="Its packets are forwarded by the gateway; the kernel does it where nothing is said.",
    )


class GatewayOptions(Base):
    """Governs a link's HTB classes, at this node's end, by what it measures and what it is told."""

    link: Name = Field(description="Of this node; its direction from here has a `queue: {htb: ...}`.")
    flows: dict[Name, Governed] = Field(
        min_length=1, description="By the names of their classes; others are left alone."
    )
    listen: Port = Field(7100, description="TCP port for the gateways downstream and for the broker.")
    period: Span = Field(text("1 s"), description="Of measuring.")
    weight: Share = Field(
        text("75 %"), description="Of the last period in the moving average of a flow's rate."
    )
    headroom: Share = Field(
        text("10 %"),
        description="Congestion: so much more than reserved. And so much more than measured is asked for.",
    )
    release: Duration = Field(
        text("30 s"),
        description="What a flow asked for is kept so long after it needed it, unless another one needs it.",
    )
    cooperate: bool = Field(
        True, description="Move shares and tell the neighbours; else the broker alone helps."
    )
    broker: Name | None = Field(None, description="The node whose `reservations` it calls on.")


class Gateway(Base):
    """A gateway of cooperative congestion control, on a node that forwards."""

    gateway: GatewayOptions = Field(description="The gateway.")


class ReservationsOptions(Base):
    """Hears gateways' alarms, and after its response time reserves what their high real-time flows want."""

    listen: Port = Field(7200, description="TCP port.")
    response: Annotated[Duration, Field(description="From the first alarm to the new reservations.")] = text(
        "60 s"
    )


class Reservations(Base):
    """The broker of a control centre."""

    reservations: ReservationsOptions = Field(description="The broker.")
