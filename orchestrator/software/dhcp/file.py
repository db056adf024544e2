"""Defines the keys of a DHCP server and of a DHCP client in a topology file."""

from __future__ import annotations

from pydantic import Field

from ...language.scalars import Address4, Base, Duration, Name, Span, text

SHORTEST_LEASE_NS = 120 * 10**9  # dnsmasq lengthens a shorter lease to this (dnsmasq(8), --dhcp-range)


class Range(Base):
    """Addresses that the server gives to machines that the topology does not have."""

    first: Address4 = Field(alias="from", description="The first address.")
    last: Address4 = Field(alias="to", description="The last address.")


class DhcpOptions(Base):
    """A server of IPv4 addresses on one segment, with all that links join to it."""

    segment: Name | None = Field(None, description="Segment of this node; by default its only one.")
    range: Range | None = Field(
        None,
        description="Addresses for machines that the topology does not have (those of real NICs, or of an "
        "image's own containers). Clients of the topology get their planned addresses.",
    )
    lease: Duration = Field(text("1 h"), description="Duration of a lease; at least 2 min.")
    router: Name | None = Field(None, description="The node that clients get as their default router.")
    dns: Name | None = Field(None, description="The node that clients get as their name server.")


class Dhcp(Base):
    """A DHCP server."""

    dhcp: DhcpOptions = Field(description="What it gives.")


class ClientOptions(Base):
    """Removes the node's address on a segment and gets it from a DHCP server."""

    segment: Name | None = Field(None, description="Segment of this node; by default its only one.")
    ready_within: Span = Field(text("30 s"), description="Deadline for the first lease.")


class DhcpClient(Base):
    """A DHCP client."""

    dhcp_client: ClientOptions = Field(alias="dhcp-client", description="Where it takes its address.")
