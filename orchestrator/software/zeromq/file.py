"""Defines the keys of a ZeroMQ socket in a topology file."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ...language.scalars import Address4, Base, Duration, Name, Port, Positive, Rate, Size
from ..messages import Push, Request, Stream

# Type of the socket that binds and sends -> type of the socket that connects and answers.
PARTNERS = {"router": "dealer", "pub": "sub"}
GROUP = "239.192.0.1"  # an address of organisation-local scope (RFC 2365)


class ZeromqOptions(Base):
    """One socket: `router` and `pub` bind and send, `dealer` and `sub` connect to them and answer."""

    router: Port | None = Field(
        None, description="A ROUTER on this port: it sends to every DEALER by its name."
    )
    dealer: Name | None = Field(None, description="A DEALER of the node that has the ROUTER.")
    pub: Port | None = Field(None, description="A PUB on this port: every SUB gets every message.")
    sub: Name | None = Field(None, description="A SUB of the node that has the PUB.")
    transport: Literal["tcp", "epgm"] = Field(
        "tcp",
        description="pub: epgm is reliable multicast (PGM in UDP), so each message leaves once for all.",
    )
    group: Address4 = Field(GROUP, description="epgm: the multicast group.")
    rate_limit: Rate | None = Field(
        None, description="epgm: rate limit of the sender, including repairs; libzmq's default is 100 kbit/s."
    )
    recovery: Duration | None = Field(
        None, description="epgm: time for which receivers can request lost data; libzmq's default is 10 s."
    )
    tpdu: Size | None = Field(
        None, description="epgm: longest packet, including its IP header; libzmq's default is 1500 B."
    )
    answers: Port | None = Field(
        None,
        description="A REP on this port takes the answers, one at a time from each REQ; without it a DEALER "
        "answers by its own connection.",
    )
    send_queue: Positive | None = Field(
        None, le=2**31 - 1, description="Messages queued for each receiver; libzmq's default is 1000."
    )
    receive_queue: Positive | None = Field(
        None, le=2**31 - 1, description="Received messages that wait to be read; libzmq's default is 1000."
    )
    request: Request | None = Field(None, description="Messages that each receiver answers.")
    push: Push | None = Field(None, description="Messages without an answer.")
    stream: Stream | None = Field(None, description="A continuous feed.")


class Zeromq(Base):
    """One socket of ZeroMQ."""

    zeromq: ZeromqOptions = Field(description="The socket.")


def socket_of(options: ZeromqOptions) -> str:
    """Returns the type of the socket: its one key of router, dealer, pub and sub; "" if it has none or
    several.
    """
    found = [key for key in ("router", "dealer", "pub", "sub") if getattr(options, key) is not None]
    return found[0] if len(found) == 1 else ""
