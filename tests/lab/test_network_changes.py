"""Tests which of the kernel's announcements about a node's network count as changes by a program."""

from __future__ import annotations

import dataclasses
import socket
import struct

import pytest

from contract.plan import Interface, Node, Route, Software
from orchestrator.lab.announcements import Announcement, messages
from orchestrator.lab.network_changes import (
    DELADDR,
    DELLINK,
    DELNEIGH,
    DELROUTE,
    NEWADDR,
    NEWLINK,
    NEWNEIGH,
    NEWROUTE,
    REPLACES,
    Change,
    changes,
)
from orchestrator.lab.network_watch import is_task
from orchestrator.lab.rtnetlink import attribute

MAC, OTHER = "02:00:00:00:00:07", "02:00:00:00:00:08"
CARD = Interface("eth0", "p0", "lan", "10.94.0.7", 24, MAC, 1500)
SIX = Interface("eth1", "p1", "lan6", "fd00::7", 64, MAC, 1500)
ROUTES = (Route(("10.95.0.0/24",), ("10.94.0.1",)),)
NODE = Node("a", "a", "light", "a", "vnet-x.a", "vnet/x/a", (CARD, SIX), (), routes=ROUTES)
BOOT, KERNEL, STATIC = 3, 2, 4  # values of rtm_protocol (RTPROT_*)
UP, CARRIER = 0x1, 0x10000
PROGRAM = 4711  # the netlink port number of a program


def said(kind: int, body: bytes, sender: int = PROGRAM, flags: int = 0) -> list[Change]:
    return list(changes(NODE, Announcement(kind, flags, sender, body), lambda i: f"eth{i - 2}"))


def link(flags: int, changed: int, mtu: int = 1500, mac: str = MAC, name: bytes = b"eth0\0") -> bytes:
    head = struct.pack("=BxHiII", 0, 1, 2, flags, changed)
    hardware = attribute(1, bytes.fromhex(mac.replace(":", "")))
    return head + attribute(3, name) + attribute(4, struct.pack("=I", mtu)) + hardware


def address(text: str, index: int = 2) -> bytes:
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    return struct.pack("=BBBBI", family, 24, 0, 0, index) + attribute(1, socket.inet_pton(family, text))


def route(text: str, length: int, protocol: int = BOOT, kind: int = 1) -> bytes:
    family = socket.AF_INET6 if ":" in text else socket.AF_INET
    head = struct.pack("=8BI", family, length, 0, 0, 254, protocol, 0, kind, 0)
    return head + (attribute(1, socket.inet_pton(family, text)) if length else b"")


@pytest.mark.parametrize(("kind", "body", "text"), [
    (NEWLINK, link(0, UP), "eth0 set down"),
    (DELLINK, link(0, 0xFFFFFFFF), "eth0 removed"),
    (NEWLINK, link(UP, 0, mtu=1300), "eth0: MTU 1300 instead of 1500"),
    (NEWLINK, link(UP, 0, mac=OTHER), f"eth0: hardware address {OTHER} instead of {MAC}"),
    (DELADDR, address("10.94.0.7"), "eth0: address 10.94.0.7 removed"),
    (DELADDR, address("fd00::7", 3), "eth1: address fd00::7 removed"),
    (NEWROUTE, route("10.97.0.0", 16, kind=6), "blackhole route to 10.97.0.0/16"),
    (NEWROUTE, route("fd09::", 16, kind=8), "prohibit route to fd09::/16"),
    (DELROUTE, route("10.95.0.0", 24, STATIC), "route to 10.95.0.0/24 removed"),
    (DELROUTE, route("10.94.0.0", 24, KERNEL), "route to 10.94.0.0/24 removed"),
])  # fmt: skip
def test_a_change_that_speaks_against_the_figures_is_named(kind: int, body: bytes, text: str) -> None:
    assert said(kind, body) == [Change(text)]


def test_a_planned_route_to_elsewhere_is_a_change_and_a_further_one_an_addition() -> None:
    assert said(NEWROUTE, route("10.95.0.0", 24), flags=REPLACES) == [
        Change("route to 10.95.0.0/24 replaced")
    ]
    assert said(NEWROUTE, route("0.0.0.0", 0)) == [Change("route to 0.0.0.0/0 added", adds=True)]
    assert said(NEWADDR, address("10.94.0.9")) == [Change("eth0: address 10.94.0.9 added", adds=True)]


@pytest.mark.parametrize(("kind", "word"), [(NEWNEIGH, "set"), (DELNEIGH, "removed")])
def test_a_neighbour_that_a_program_sets_is_named(kind: int, word: str) -> None:
    body = struct.pack("=BxxxiHBB", socket.AF_INET, 2, 0x80, 0, 1) + attribute(1, bytes([10, 94, 0, 1]))
    assert said(kind, body) == [Change(f"eth0: neighbour 10.94.0.1 {word}")]


@pytest.mark.parametrize(("kind", "body", "sender"), [
    (NEWLINK, link(UP, CARRIER), 0),  # a cut in the core takes the carrier away
    (NEWLINK, link(UP, UP), PROGRAM),  # the interface is set up
    (NEWLINK, link(0, UP, name=b"tun0\0"), PROGRAM),  # a device that a program made
    (DELADDR, address("10.94.0.9"), PROGRAM),  # an address that the program had added
    (DELADDR, address("fd00::7", 3), 0),  # by the kernel, because the interface went down
    (NEWADDR, address("10.8.0.1", 9), PROGRAM),  # on a device that the program made
    (DELROUTE, route("10.97.0.0", 16, kind=6), PROGRAM),  # a route that the program put back
    (DELROUTE, route("10.94.0.1", 32, kind=6), PROGRAM),  # a route in a subnet of the node
    (NEWROUTE, route("10.94.0.0", 24, KERNEL), 0),  # the kernel adds it with an address
    (NEWROUTE, route("fd00::", 64, KERNEL), 0),
])  # fmt: skip
def test_the_kernel_and_a_programs_own_devices_are_no_change(kind: int, body: bytes, sender: int) -> None:
    assert said(kind, body, sender) == []


def test_one_read_has_several_messages() -> None:
    one = struct.pack("=IHHII", 16 + 5, NEWLINK, 0, 0, 0) + b"abcde"
    two = struct.pack("=IHHII", 16 + 4, DELLINK, REPLACES, 0, PROGRAM) + b"wxyz"
    assert list(messages(one + bytes(3) + two)) == [
        Announcement(NEWLINK, 0, 0, b"abcde"), Announcement(DELLINK, REPLACES, PROGRAM, b"wxyz"),
    ]  # fmt: skip


def test_software_that_configures_an_interface_may_change_its_addresses_and_the_routes() -> None:
    client = Software("lease", "utility", spec={"configures": "eth0"})
    node = dataclasses.replace(NODE, software=(client,))
    task = [Change("eth0: address 10.94.0.7 removed"), Change("route to 0.0.0.0/0 added", adds=True)]
    other = [
        Change("eth1: address fd00::7 removed"),
        Change("eth0 set down"),
        Change("eth0: MTU 1300 instead of 1500"),
    ]
    assert all(is_task(node, one) for one in task) and not any(is_task(node, one) for one in other)
    assert not any(is_task(NODE, one) for one in task)
