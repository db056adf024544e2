"""Defines the keys of a router's daemons in a topology file: protocols with timers, or a whole
configuration.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ...language.scalars import Address4, Base, Destination, Duration, text


class Ospf(Base):
    """OSPF, in area 0, on all interfaces, version 2 on those of IPv4 and 3 on those of IPv6; those without
    another such router announce their subnet only.
    """

    hello: Duration = Field(text("10 s"), description="Time between hellos, whole seconds.")
    dead: Duration = Field(
        text("40 s"), description="Silence after which a neighbour counts as gone, whole seconds."
    )
    redistribute: list[Literal["bgp"]] = Field(
        default_factory=list, description="Other protocols whose routes OSPF announces."
    )


class Bgp(Base):
    """BGP with every neighbouring router that has it, and with all routers of its own AS."""

    as_number: int = Field(ge=1, le=2**32 - 1, alias="as", description="Number of the router's AS.")
    keepalive: Duration = Field(text("60 s"), description="Time between keepalives, whole seconds.")
    hold: Duration = Field(
        text("180 s"), description="Silence after which a neighbour counts as gone, whole seconds."
    )
    connect: Duration = Field(text("120 s"), description="Time between attempts to connect, whole seconds.")
    redistribute: list[Literal["ospf"]] = Field(
        default_factory=list,
        description="Other protocols whose routes BGP announces, beside the router's own subnets.",
    )


class Frr(Base):
    """FRR's routing daemons; `frr` has protocols to be configured from the topology, or `config`."""

    ospf: Ospf | None = Field(None, description="OSPFv2 and, on IPv6 subnets, OSPFv3.")
    bgp: Bgp | None = Field(None, description="BGP-4, of both families.")
    router_id: Address4 | None = Field(
        None,
        description=(
            "Router id; by default the node's first IPv4 address, or the number of its place in the lab if "
            "it has none."
        ),
    )
    ecmp: bool = Field(False, description="Use all equally good routes.")
    config: str | None = Field(
        None,
        min_length=1,
        description="In place of all that: a configuration of your own (frr.conf), a template.",
    )
    ready: list[Destination] | None = Field(
        None,
        description=(
            "Subnets to which the kernel must have routes before the router is ready; by default all "
            "subnets that its protocols announce, with `config` all of the lab; [] means none."
        ),
    )
    ready_within: Duration = Field(text("120 s"), description="Deadline for these routes.")
    restart: Literal["never", "on-failure", "always"] = Field(
        "never", description="Whether to start the program again when it ends by itself."
    )


class Router(Base):
    """A router's daemons: FRR."""

    frr: Frr = Field(description="Configuration of the daemons.")
