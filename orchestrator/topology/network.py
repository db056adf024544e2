"""Defines the keys of segments, links and captures."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from ..language.scalars import (
    Base,
    Name,
    Nic,
    Size,
    Subnets,
    fail,
)
from .impairments import Impairment

SMALLEST_MTU = (
    # bytes: every IPv4 module must forward a packet of this size unfragmented (RFC 791), and Linux allows no
    # smaller MTU
    68
)
Duplex = Literal["full", "half"]


class Segment(Base):
    """One broadcast domain, built as a bridge. Segments that are joined by a link are one IP subnet."""

    subnet: Subnets = Field(
        default_factory=list,
        description=(
            "IPv4 or IPv6 subnet, or a list with one of each family (dual stack), of which software uses the "
            "first; a segment that a link joins to one with a subnet needs none."
        ),
    )
    mtu: int = Field(
        1500, ge=SMALLEST_MTU, le=65535, description="MTU of the bridge and of every interface on it, bytes."
    )
    ipv6: bool = Field(
        False,
        description=(
            "Enable IPv6 beside an IPv4 subnet (link-local addresses, router solicitation, MLD); with an "
            "IPv6 subnet it is always enabled."
        ),
    )
    stp: bool = Field(
        False,
        description=(
            "Spanning tree (IEEE 802.1D, its shortest timers): links of segments may form loops. Set it on "
            "all segments that links join, or on none. The first segment of the file is the root."
        ),
    )
    duplex: Duplex = Field(
        "full",
        description=(
            "half: one medium for all members of the segment. Every frame passes one transmitter "
            "(`medium`) once, for any sender and any number of receivers."
        ),
    )
    medium: Impairment | None = Field(
        None, description="half duplex: impairment by the one transmitter; needs a `rate`."
    )


class LinkNics(Base):
    """Two NICs of the machine, cabled to each other."""

    a: Nic = Field(
        description="NIC at the link's first end; if that is a node, the NIC becomes its interface."
    )
    b: Nic = Field(description="NIC at the link's second end: a port of that segment's bridge.")


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


def _number(value: Any) -> Any:
    """Parses a number that is a key, which the reader of files gives as text."""
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value


Vlan = Annotated[int, BeforeValidator(_number), Field(ge=1, le=4094)]


class Link(Base):
    """Joins two segments, a node (or each member of a group) and its segment, or two nodes; `forward` is the
    direction from the first to the second.
    """

    between: Annotated[list[Name], Field(min_length=2, max_length=2)] = Field(
        description="[segment, segment], [node, segment], [group, segment], or [node, node]: a wire from one "
        "to the other, with a subnet of its own."
    )
    forward: Impairment | None = Field(None, description="Impairment from the first to the second.")
    reverse: Impairment | None = Field(None, description="Impairment from the second to the first.")
    both: Impairment | None = Field(None, description="The same impairment in each direction, independently.")
    duplex: Duplex = Field(
        "full",
        description=(
            "half: both directions share one transmitter, hence one rate and one queue; each link of a "
            "group has its own transmitter."
        ),
    )
    nics: Annotated[LinkNics | None, BeforeValidator(_ports)] = Field(
        None,
        description=(
            "The link runs through two ports of this machine that a cable joins. As one text, for a "
            'parameter: "A B", or "none" for a plain link (no link at all for a node that nothing else '
            "uses)."
        ),
        json_schema_extra=_or_text,
    )
    trunk: dict[Vlan, Annotated[list[Name], Field(min_length=2, max_length=2)]] = Field(
        default_factory=dict,
        description="[segment, segment]: further pairs of segments that the link joins, by the VLAN of "
        "their tags (IEEE 802.1Q): `{10: [office-a, office-b], 20: [voice-a, voice-b]}`.",
    )
    subnet: Subnets = Field(
        default_factory=list,
        description=(
            "[node, node]: subnet of the link, or a list with one of each family; by default a /30 of "
            "10.255.0.0/16 or below, for IPv6 a /126 of fdff::/64 or below (`routing: {family: ...}`)."
        ),
    )
    cost: int | None = Field(
        None,
        ge=1,
        le=65535,
        description="[node, node]: cost of the link, for `routing: {by: cost}` and routing daemons (1).",
    )
    mtu: int | None = Field(
        None, ge=SMALLEST_MTU, le=65535, description="[node, node]: MTU of both interfaces, bytes (1500)."
    )


class Capture(Base):
    """A capture point: tcpdump runs on one interface of the lab."""

    at: str = Field(
        pattern=r"^(node|segment|link) [a-z][a-z0-9-]*$",
        description='"node NAME" (its port on the first segment), "segment NAME" (the bridge), '
        '"link NAME" (its first end).',
    )
    snaplen: int = Field(1600, ge=60, le=262144, description="Bytes kept of each packet.")
    filter: str = Field(
        "",
        pattern=r"^[^\n\r]*$",
        description="pcap filter expression, as for tcpdump; `check` tests it with tcpdump.",
    )
    keep: bool = Field(True, description="Keep the pcap after it has been reduced to a table.")
    limit: Size | None = Field(
        None,
        gt=0,
        description="Largest file: the capture ends there, with a warning, and the run goes on (no limit).",
    )
    to: str | None = Field(
        None,
        pattern=(
            r"^ssh://([A-Za-z0-9_][A-Za-z0-9_.-]*@)?"
            r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?/[^\s?#]*$"
        ),
        description=(
            "Directory of another machine to which packets are sent as they are captured, in place of the "
            "run directory: ssh://USER@HOST/DIRECTORY. The run has no table of them. With --kernel host only."
        ),
    )
    compress: Literal["zstd"] | None = Field(
        None, description="zstd: the file is compressed as it is written (NAME.pcap.zst); in real time only."
    )
