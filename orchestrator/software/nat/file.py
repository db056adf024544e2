"""Defines the keys of a translating router in a topology file."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ...language.scalars import Base, Duration, Name, Port, Targets

LEAST_TIMEOUT_NS = 10**9  # 1 s, the unit of the kernel
LONGEST_TIMEOUT_NS = (2**31 - 1) // 1000 * 10**9  # the kernel stores ticks, at most 1000 a second, in an int


class Forwarded(Base):
    """A port of the outside address that is forwarded to a node inside."""

    port: Port = Field(description="Port of the router's outside address.")
    to: Name = Field(description="The node inside.")
    to_port: Port | None = Field(None, description="Port of that node; by default the same.")
    protocol: Literal["tcp", "udp"] = Field("tcp", description="Transport protocol of the port.")


class NatOptions(Base):
    """Packets from inside leave with the router's outside address; from outside, only answers and forwarded
    ports enter.
    """

    inside: Targets = Field(description="Segments of this node whose addresses are hidden: one, or a list.")
    outside: Name = Field(description="The segment of this node whose address the packets get.")
    ports: list[Forwarded] = Field(
        default_factory=list, description="Ports of the outside address that lead to nodes inside."
    )
    udp_timeout: Duration | None = Field(
        None,
        description=(
            "Lifetime of a UDP mapping without packets, in whole seconds; by default the kernel's own (30 "
            "s, and 120 s once packets have gone both ways)."
        ),
    )
    tcp_timeout: Duration | None = Field(
        None,
        description=(
            "Lifetime of the mapping of an open TCP connection without packets, in whole seconds; by "
            "default the kernel's own (5 days)."
        ),
    )


class Nat(Base):
    """A router that translates addresses."""

    nat: NatOptions = Field(description="The two sides.")
