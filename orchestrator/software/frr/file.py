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

    hello: Duration = Field(text("10 s"), description="Between hellos, whole seconds.")
    dead: Duration = Field(
        text("40 s"), description="A neighbour that is silent for so long is gone, whole seconds."
    )
    redistribute: list[Literal["bgp"]] = Field(
        default_factory=list, description="What else it announces: routes of another protocol."
    )


class Bgp(Base):
    """BGP with every neighbouring router that has it, and with all routers of its own AS."""

    as_number: int = Field(ge=1, le=2**32 - 1, alias="as", description="Its AS.")
    keepalive: Duration = Field(text("60 s"), description="Between keepalives, whole seconds.")
    hold: Duration = Field(
        text("180 s"), description="A neighbour that is silent for so long is gone, whole seconds."
    )
    connect: Duration = Field(text("120 s"), description="Between attempts to connect, whole seconds.")
    redistribute: list[Literal["ospf"]] = Field(
        default_factory=list, description="What it announces beside its own subnets."
    )


class Frr(Base):
    """FRR's routing daemons; `frr` has protocols to be configured from the topology, or `config`."""

    ospf: Ospf | None = Field(None, description="OSPFv2 and, on IPv6 subnets, OSPFv3.")
    bgp: Bgp | None = Field(None, description="BGP-4, of both families.")
    router_id: Address4 | None = Field(
        None, description="By default its first IPv4 address; without one the number of its place in the lab."
    )
    ecmp: bool = Field(False, description="Keep all ways that are equally good.")
    config: str | None = Field(
        None,
        min_length=1,
        description="In place of all that: a configuration of your own (frr.conf), a template.",
    )
    ready: list[Destination] | None = Field(
        None,
        description="Subnets that the kernel must have routes to before it is ready; by default all that "
        "its protocols bring, with `config` all of the lab; [] is none.",
    )
    ready_within: Duration = Field(text("120 s"), description="Deadline for them.")
    restart: Literal["never", "on-failure", "always"] = Field("never", description="When it ends by itself.")


class Router(Base):
    """A router's daemons: FRR."""

    frr: Frr = Field(description="What they are to do.")
