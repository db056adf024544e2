"""Defines the keys of a router that advertises a prefix, and of a host that takes an address of it."""

from __future__ import annotations

from pydantic import Field

from ...language.scalars import Base, Duration, Name, Span, text

# The bounds of a lifetime; a router's is at most 9000 s (RFC 4861, 6.2.1).
SHORTEST_NS, LONGEST_NS = 120 * 10**9, 9000 * 10**9


class AdvertiseOptions(Base):
    """A router of a segment that advertises itself and the segment's IPv6 subnet (RFC 4861)."""

    segment: Name | None = Field(None, description="Its segment; by default the only one with IPv6.")
    lifetime: Duration = Field(
        text("30 min"),
        description="How long hosts keep router and addresses without another advertisement; 2 min to "
        "9000 s.",
    )
    every: Duration = Field(
        text("10 min"), description="Longest time between two advertisements that nobody asked for."
    )


class Advertise(Base):
    """A router that advertises."""

    advertise: AdvertiseOptions = Field(description="What it advertises, and where.")


class SlaacOptions(Base):
    """Removes the node's IPv6 address and default route on a segment, and takes them from a router's
    advertisement.
    """

    segment: Name | None = Field(None, description="Its segment; by default the only one with IPv6.")
    ready_within: Span = Field(text("30 s"), description="Deadline for the address.")


class Slaac(Base):
    """A host that configures itself."""

    slaac: SlaacOptions = Field(description="Where it takes its address.")
