"""Defines the keys of a DHCPv6 server and of a DHCPv6 client in a topology file."""

from __future__ import annotations

from pydantic import Field

from ...language.scalars import Base, Duration, Name, Span, text

SHORTEST_LEASE_NS = 120 * 10**9  # dnsmasq lengthens a shorter lease to this (dnsmasq(8), --dhcp-range)


class Dhcp6Options(Base):
    """A server of IPv6 addresses on one segment, with all that links join to it."""

    segment: Name | None = Field(None, description="Its segment; by default the only one with IPv6.")
    lease: Duration = Field(text("1 h"), description="Duration of a lease; at least 2 min.")
    dns: Name | None = Field(None, description="The node that clients get as their name server.")


class Dhcp6(Base):
    """A DHCPv6 server."""

    dhcp6: Dhcp6Options = Field(description="What it gives.")


class Client6Options(Base):
    """Removes the node's IPv6 address on a segment and gets it from a DHCPv6 server."""

    segment: Name | None = Field(None, description="Its segment; by default the only one with IPv6.")
    ready_within: Span = Field(text("30 s"), description="Deadline for the first lease.")


class Dhcp6Client(Base):
    """A DHCPv6 client."""

    dhcp6_client: Client6Options = Field(alias="dhcp6-client", description="Where it takes its address.")
