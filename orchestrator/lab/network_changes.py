"""Describes the changes that programs made to their node's network, from the kernel's rtnetlink
announcements.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from contract.plan import Interface, Node
from contract.plan.family import faces
from orchestrator.lab.announcements import Announcement
from orchestrator.lab.rtnetlink import IFLA_IFNAME, attributes

# linux/rtnetlink.h
NEWLINK, DELLINK, NEWADDR, DELADDR, NEWROUTE, DELROUTE, NEWNEIGH, DELNEIGH = 16, 17, 20, 21, 24, 25, 28, 29
REPLACES = 0x100  # netlink flag NLM_F_REPLACE (linux/netlink.h)
UP = 0x1  # interface flag IFF_UP
FAILED = 0x20  # neighbour state NUD_FAILED (linux/neighbour.h)
IFLA_ADDRESS, IFLA_MTU, IFA_ADDRESS, IFA_LOCAL, RTA_DST, NDA_DST = 1, 4, 1, 2, 1, 1
DISCARDS = {6: "blackhole", 7: "unreachable", 8: "prohibit"}  # RTN_*: types of routes that deliver no packets
BY_KERNEL = 2  # route protocol RTPROT_KERNEL
FAMILIES = {int(socket.AF_INET): "0.0.0.0", int(socket.AF_INET6): "::"}
NameOf = Callable[[int], str]  # function: index -> name of the device


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a node's network, as text. adds: True if it only added an address or a route, as a VPN
    does.
    """

    text: str
    adds: bool = False


def changes(node: Node, one: Announcement, name_of: NameOf) -> Iterator[Change]:
    """Yields the changes that an announcement shows in comparison with the node's planned interfaces and
    routes.

    Ignores devices that are not the node's, changes of IPv6 addresses and routes by the kernel, and the
    kernel's own IPv4 routes.
    """
    cards = {card.name: card for card in node.interfaces}
    # messages of other families concern a bridge's ports
    if one.kind in (NEWLINK, DELLINK) and one.body[0] == socket.AF_UNSPEC:
        yield from _link(cards, one)
    elif one.body[0] not in FAMILIES:
        return
    elif one.kind in (NEWADDR, DELADDR):
        yield from _address(cards, one, name_of)
    elif one.kind in (NEWROUTE, DELROUTE):
        yield from _route(node, one)
    elif one.kind in (NEWNEIGH, DELNEIGH) and (device := name_of(_number(one.body, 4))) in cards:
        # The kernel announces `ip neigh del` as a new state, FAILED; the removal that follows is the kernel's
        # own.
        gone = one.kind == DELNEIGH or struct.unpack_from("=H", one.body, 8)[0] & FAILED  # ndm_state
        word = "removed" if gone else "set"
        yield Change(f"{device}: neighbour {_ip(attributes(one.body[12:]).get(NDA_DST, b''))} {word}")


def _link(cards: dict[str, Interface], one: Announcement) -> Iterator[Change]:
    """Yields removal, setting down, another MTU or another hardware address (not of a NIC) of a planned
    interface.
    """
    flags, changed = struct.unpack_from("=II", one.body, 8)  # struct ifinfomsg
    about = attributes(one.body[16:])
    card = cards.get(about.get(IFLA_IFNAME, b"").rstrip(b"\0").decode())
    if card is None:
        return
    if one.kind == DELLINK:
        yield Change(f"{card.name} removed")
        return
    if changed & UP and not flags & UP:
        yield Change(f"{card.name} set down")
    if (mtu := _number(about.get(IFLA_MTU, b"") or struct.pack("=I", card.mtu), 0)) != card.mtu:
        yield Change(f"{card.name}: MTU {mtu} instead of {card.mtu}")
    mac = about.get(IFLA_ADDRESS, b"").hex(":")
    if card.nic is None and mac and mac != card.mac.lower():
        yield Change(f"{card.name}: hardware address {mac} instead of {card.mac}")


def _address(cards: dict[str, Interface], one: Announcement, name_of: NameOf) -> Iterator[Change]:
    """Yields an address that is added to a planned interface, or the removal of its planned address."""
    about = attributes(one.body[8:])
    device, address = name_of(_number(one.body, 4)), _ip(about.get(IFA_LOCAL) or about.get(IFA_ADDRESS, b""))
    if device not in cards or not (one.sender or one.body[0] == socket.AF_INET):
        return  # the kernel adds and removes IPv6 addresses by itself
    own = any(_same(planned, address) for planned in cards[device].addresses)
    if one.kind == NEWADDR:
        yield Change(f"{device}: address {address} added", adds=True)
    elif own:
        yield Change(f"{device}: address {address} removed")


def _route(node: Node, one: Announcement) -> Iterator[Change]:
    """Yields a route that discards packets, is added, or replaces a planned route, or the removal of a
    planned or directly connected route.
    """
    family, length, _, _, _, protocol, _, kind = one.body[:8]  # struct rtmsg
    if not (one.sender or (family == socket.AF_INET and protocol != BY_KERNEL)):
        return
    to = attributes(one.body[12:]).get(RTA_DST)
    target = f"{_ip(to) if to else FAMILIES[family]}/{length}"
    planned = any(_same(target, known) for route in node.routes for known in route.to)
    direct = any(_same(target, f"{card.address}/{card.prefix}") for card in faces(node.interfaces))
    if one.kind == DELROUTE:
        if planned or direct:
            yield Change(f"route to {target} removed")
    elif kind in DISCARDS:
        yield Change(f"{DISCARDS[kind]} route to {target}")
    else:
        replaced = planned and one.flags & REPLACES
        yield Change(f"route to {target} {'replaced' if replaced else 'added'}", adds=not replaced)


def _number(data: bytes, at: int) -> int:
    (found,) = struct.unpack_from("=I", data, at)
    return int(found)


def _ip(data: bytes) -> str:
    return str(ipaddress.ip_address(data)) if len(data) in (4, 16) else "unknown"


def _same(one: str, other: str) -> bool:
    """Returns whether two texts name the same network or the same address; other texts are compared
    literally.
    """
    try:
        return ipaddress.ip_network(one, strict=False) == ipaddress.ip_network(other, strict=False)
    except ValueError:
        return one == other
