"""Defines the keys of an end of WireGuard tunnels in a topology file."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from ...language.scalars import Base, Duration, Name, Port, Subnet, fail, reader

DEVICE = "wg0"
PORT = 51820
LEAST_MTU, MOST_MTU = 576, 65000


def _address(value: Any) -> str:
    """Parses an address with the length of its subnet, such as 10.99.0.1/24."""
    try:
        found = ipaddress.ip_interface(value if isinstance(value, str) and "/" in value else "")
    except ValueError:
        raise fail(
            "is no address with the length of its subnet", 'write for example "10.99.0.1/24"'
        ) from None
    if found.network.num_addresses > 2 and found.ip == found.network.network_address:
        raise fail("is the address of the subnet itself", "write that of one end")
    return str(found)


def _peers(value: Any) -> Any:
    """Parses names as a list to peers without settings."""
    if isinstance(value, str):
        return {value: {}}
    return {one: {} for one in value} if isinstance(value, list) else value


Inside = Annotated[
    str, reader(_address), WithJsonSchema({"type": "string", "pattern": "^[0-9a-fA-F.:]+/[0-9]+$"})
]


class TunnelPeer(Base):
    """The other end of a tunnel."""

    allows: list[Subnet] = Field(
        default_factory=list,
        description="Subnets behind the other end, beside its address inside: the node sends packets to them "
        "into the tunnel, and takes packets from them out of it.",
    )
    keepalive: Duration | None = Field(
        None, description="Time between packets that keep a mapping of NAT alive; by default none."
    )


class WireguardOptions(Base):
    """An end of WireGuard tunnels; its peers have one each, too."""

    address: Inside = Field(description="The node's address inside, with the length of its subnet.")
    peers: Annotated[
        dict[Name, TunnelPeer],
        BeforeValidator(_peers),
        Field(min_length=1, description="The other ends, by node."),
    ]
    port: Port = Field(PORT, description="UDP port on which it listens.")
    mtu: int = Field(1420, ge=LEAST_MTU, le=MOST_MTU, description="MTU inside, bytes.")


class Wireguard(Base):
    """An end of WireGuard tunnels."""

    wireguard: WireguardOptions = Field(description="Its address inside, and its peers.")
