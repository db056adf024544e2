"""Defines the keys of segments, links and captures."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from ..language.scalars import (
    Base,
    Name,
    Nic,
    Subnet,
    fail,
)
from .impairments import Impairment

SMALLEST_MTU = (
    68  # bytes: what every IPv4 module must forward unfragmented (RFC 791), and the least that Linux takes
)
Duplex = Literal["full", "half"]


class Segment(Base):
    """One broadcast domain: a bridge. Segments that a link joins are one IP subnet."""

    subnet: Subnet | None = Field(
        None,
        description="Its subnet, of IPv4 or IPv6; may be left out where a link joins the segment to one "
        "that has it.",
    )
    mtu: int = Field(
        1500, ge=SMALLEST_MTU, le=65535, description="Of the bridge and of every interface on it, bytes."
    )
    ipv6: bool = Field(
        False,
        description="Let nodes use IPv6 beside an IPv4 subnet (link-local addresses, router solicitation, "
        "MLD); with an IPv6 subnet they do.",
    )
    stp: bool = Field(
        False,
        description="Spanning tree (IEEE 802.1D, its shortest timers): links of segments may form loops. "
        "All segments that links join have it, or none. The first in the file is its root.",
    )
    duplex: Duplex = Field(
        "full",
        description="half: one medium for all its members. Every frame, whoever sends it and however many "
        "receive it, passes one transmitter once: `medium`.",
    )
    medium: Impairment | None = Field(
        None, description="half duplex: what the one transmitter does to frames; needs a `rate`."
    )


class LinkNics(Base):
    """Two NICs of the machine, cabled to each other."""

    a: Nic = Field(description="On the side of the link's first end; of a node it becomes the interface.")
    b: Nic = Field(description="On the side of the second: a port of that segment's bridge.")


NO_NICS = "none"


def _ports(value: Any) -> Any:
    """Parses a pair of NICs written as one text: "none" or "A B"."""
    if not isinstance(value, str):
        return value
    words = value.split()
    if words == [NO_NICS]:
        return None
    if len(words) != 2:
        raise fail("names two NICs, or none", 'write {a: NIC, b: NIC}, "NIC NIC" in one text, or "none"')
    return dict(zip("ab", words, strict=True))


def _or_text(schema: dict[str, Any]) -> None:
    schema["anyOf"].append({"type": "string", "pattern": r"^\s*(none|\S+\s+\S+)\s*$"})


class Link(Base):
    """Joins two segments, a node (each member of a group) and its segment, or two nodes; forward is first to
    second.
    """

    between: Annotated[list[Name], Field(min_length=2, max_length=2)] = Field(
        description="[segment, segment], [node, segment], [group, segment], or [node, node]: a wire from one "
        "to the other, with a subnet of its own."
    )
    forward: Impairment | None = Field(None, description="From the first to the second.")
    reverse: Impairment | None = Field(None, description="From the second to the first.")
    both: Impairment | None = Field(None, description="The same, independently, in each direction.")
    duplex: Duplex = Field(
        "full",
        description="half: both directions share one transmitter, hence one rate and one queue; of a group's "
        "links each has a transmitter of its own.",
    )
    nics: Annotated[LinkNics | None, BeforeValidator(_ports)] = Field(
        None,
        description="The link runs through two ports of this machine that a cable joins. In one text, for "
        'a parameter: "A B", or "none" for a plain link (of a node that nothing else is asked of: no link).',
        json_schema_extra=_or_text,
    )
    subnet: Subnet | None = Field(
        None,
        description="[node, node]: its subnet; without one it gets a /30 of 10.255.0.0/16 or below, or of "
        "IPv6 a /126 of fdff::/64 or below (`routing: {family: ...}`).",
    )
    cost: int | None = Field(
        None,
        ge=1,
        le=65535,
        description="[node, node]: of the way over it, for `routing: {by: cost}` and routing daemons (1).",
    )
    mtu: int | None = Field(
        None, ge=SMALLEST_MTU, le=65535, description="[node, node]: of both its interfaces, bytes (1500)."
    )


class Capture(Base):
    """A capture point: tcpdump on one interface of the lab."""

    at: str = Field(
        pattern=r"^(node|segment|link) [a-z][a-z0-9-]*$",
        description='"node NAME" (its port on the first segment), "segment NAME" (the bridge), '
        '"link NAME" (its first end).',
    )
    snaplen: int = Field(1600, ge=60, le=262144, description="Bytes kept of each packet.")
    filter: str = Field(
        "",
        pattern=r"^[^\n\r]*$",
        description="pcap filter expression, as tcpdump takes it; `check` asks tcpdump.",
    )
    keep: bool = Field(True, description="Keep the pcap after it has been reduced to a table.")
