"""Defines the keys of gateways and of their broker in a topology file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ...language.scalars import Base, Duration, Name, Port, Positive, Rate, Share, Span, text

Service = Literal["high-real-time", "low-real-time", "best-effort"]


Order = Literal["edf", "fifo"]
Late = Literal["send", "drop"]


class Deadline(Base):
    """The packets from and to a port: TCP and UDP over IPv4."""

    port: Port = Field(description="A port of the class.")
    deadline: Duration = Field(description="Longest time from a packet's arrival to its departure.")


class EarlyDetection(Base):
    """Random early detection (Floyd and Jacobson 1993): the queue drops arriving packets with a probability
    that rises with the mean number of waiting packets.
    """

    min: Positive = Field(description="Mean number of waiting packets from which packets are dropped.")
    max: Positive = Field(description="Mean number of waiting packets from which every packet is dropped.")
    probability: Share = Field(text("10 %"), description="Probability of a drop just below `max`.")
    weight: Share = Field(text("2 %"), description="Weight of the present queue in the mean, per arrival.")


class Overlay(Base):
    """The gateway itself forwards the packets of the class, in user space, in a queue that several flows
    share.
    """

    flows: list[Deadline] = Field(
        min_length=1, description="All ports of the class; each queues up to `limit` packets."
    )
    order: Order = Field("edf", description="edf: earliest deadline first; fifo: in order of arrival.")
    late: Late = Field(
        "send", description="Treatment of packets whose deadline has passed when their turn comes."
    )
    red: EarlyDetection | None = Field(
        None,
        description="Drops packets at random before the queue is full; by default only a full queue drops.",
    )


class Governed(Base):
    """A flow. Its packets are those of the link's HTB class of the same name, and the rate of that class is
    its reservation.
    """

    service: Service = Field(
        description="Service class, which orders who gives way: best effort first, high real time never."
    )
    group: Name = Field(description="Flows of one group are correlated: they give way to each other first.")
    minimum: Rate = Field(description="Least rate of the flow.")
    maximum: Rate | None = Field(
        None,
        description=(
            "Highest rate of the flow, whatever it sends or a subscriber wants; the gateway's log then has "
            "the flow's states. By default none."
        ),
    )
    upstream: Name | None = Field(
        None,
        description=(
            "Node that is notified of the flow's share: a gateway, or its sender, which has "
            "`rate_limits_from`."
        ),
    )
    overlay: Overlay | None = Field(
        None,
        description="The gateway forwards the flow's packets itself; by default the kernel does.",
    )


class GatewayOptions(Base):
    """Controls the HTB classes of a link, at this node's end, from its own measurements and from messages of
    gateways.
    """

    link: Name = Field(description="Link of this node; its direction from here has a `queue: {htb: ...}`.")
    flows: dict[Name, Governed] = Field(
        min_length=1, description="Flows by the names of their classes; other classes stay unchanged."
    )
    listen: Port = Field(7100, description="TCP port for the gateways downstream and for the broker.")
    period: Span = Field(text("1 s"), description="Period of measurement.")
    weight: Share = Field(
        text("75 %"), description="Weight of the last period in the moving average of a flow's rate."
    )
    headroom: Share = Field(
        text("10 %"),
        description=(
            "Excess over the reserved rate that counts as congestion; also the excess over the measured "
            "rate that the gateway requests."
        ),
    )
    release: Duration = Field(
        text("30 s"),
        description=(
            "Time for which a flow keeps a requested share that it no longer needs, unless another flow "
            "needs it."
        ),
    )
    cooperate: bool = Field(
        True,
        description=(
            "Move shares between flows and notify the neighbours; else only the broker adds capacity."
        ),
    )
    broker: Name | None = Field(None, description="Node whose `reservations` the gateway alarms.")


class Gateway(Base):
    """A gateway of cooperative congestion control, on a node that forwards."""

    gateway: GatewayOptions = Field(description="The gateway.")


class ReservationsOptions(Base):
    """Receives gateways' alarms, and after its response time reserves the rates that their high real-time
    flows request.
    """

    listen: Port = Field(7200, description="TCP port.")
    response: Annotated[Duration, Field(description="Time from the first alarm to the new reservations.")] = (
        text("60 s")
    )


class Reservations(Base):
    """The broker of a control centre."""

    reservations: ReservationsOptions = Field(description="The broker.")
