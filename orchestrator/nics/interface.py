"""Moves an interface into a namespace of the lab, and back with its former name and settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from orchestrator.nics import offloads
from orchestrator.nics.leases import Found, Lease
from orchestrator.nics.model import GoneError, Netdev, NicError
from orchestrator.nics.netdevs import Entry, from_entry, ip, run

# Fields of a route in `ip -j route`, except its destination and device, by the words with which `ip route
# add` accepts them.
_ROUTE_WORDS = {"gateway": "via", "metric": "metric", "prefsrc": "src", "scope": "scope", "protocol": "proto",
                "table": "table"}  # fmt: skip


def found(netdev: Netdev) -> Found:
    """Returns the present state of an interface, with its routes and offloads, which `put_back` restores."""
    routes = tuple(_routes(netdev.name))
    return Found(
        netdev.name, netdev.index, netdev.mac, netdev.mtu, netdev.up, netdev.addresses, routes,
        offloads.read(netdev.name), _entry(netdev.name).get("gso_max_segs"),
    )  # fmt: skip


def _routes(device: str) -> Iterator[str]:
    """Yields the interface's unicast routes as words for `ip`, family first, except those that the kernel,
    router advertisements or redirects create.
    """
    for family in ("-4", "-6"):
        for entry in ip(family, "route", "show", "table", "all", "dev", device):
            made_by_kernel = entry.get("protocol") in ("kernel", "ra", "redirect")
            if not made_by_kernel and entry.get("type", "unicast") == "unicast":
                words = [f"{word} {entry[key]}" for key, word in _ROUTE_WORDS.items() if key in entry]
                # the other flags describe the route's state
                onlink = ["onlink"] * ("onlink" in entry.get("flags", ()))
                yield " ".join([family, entry["dst"], *words, *onlink])


def _entry(device: str) -> Entry:
    return ip("-d", "addr", "show", "dev", device)[0]


def move(lease: Lease) -> None:
    """Sets the interface down and moves it into the lease's namespace, under the lease's name; raises
    NicError if that fails.
    """
    assert lease.found is not None
    run(["ip", "link", "set", "dev", lease.found.name, "down"])
    run(["ip", "link", "set", "dev", lease.found.name, "netns", lease.netns, "name", lease.name])


def put_back(lease: Lease) -> None:
    """Moves the interface into this process's namespace, with its former name, settings, addresses and
    routes.

    On an interface that is already there, it changes only settings that differ. Raises GoneError if it no
    longer exists, NicError if it cannot be restored.
    """
    assert lease.found is not None
    was = lease.found
    if (entry := _in_lab(lease)) is not None:
        name = entry["ifname"]
        run(["ip", "-n", lease.netns, "link", "set", "dev", name, "down"])
        run(
            ["ip", "-n", lease.netns, "link", "set", "dev", name, "netns", str(os.getpid()), "name", was.name]
        )
    elif (here := _here(lease)) is None:
        raise GoneError(f"{lease.key}: interface {was.name}: neither in {lease.netns} nor here any more")
    # the kernel moves the interface back when its namespace ends, under the name that it had there
    elif here.name != was.name:
        run(["ip", "link", "set", "dev", here.name, "down"])
        run(["ip", "link", "set", "dev", here.name, "name", was.name])
    restore(was)


def _in_lab(lease: Lease) -> Entry | None:
    """Returns the interface's entry in the lab's namespace; None if the interface or the namespace does not
    exist.
    """
    try:
        entries = ip("-d", "link", netns=lease.netns)
    except NicError:
        return None
    return next((e for e in entries if _is(e, lease, e["ifname"] == lease.name)), None)


def _here(lease: Lease) -> Netdev | None:
    """Returns the interface in this process's namespace, identified by its PCI function, else by MAC address
    with index or name; None if it is not there.
    """
    was = lease.found
    assert was is not None
    for entry in ip("-d", "addr"):
        same = entry["ifindex"] == was.index or entry["ifname"] == was.name
        alike = same and entry.get("address") == was.mac
        if _is(entry, lease, alike):
            return from_entry(entry)
    return None


def _is(entry: dict[str, Any], lease: Lease, alike: bool) -> bool:
    """Returns whether `ip`'s entry is the leased interface. It compares the PCI device, which iproute2
    reports since 5.14; for an interface without a PCI device, returns `alike`.
    """
    if entry.get("parentbus") == "pci" and lease.pci is not None:
        return bool(entry["parentdev"] == lease.pci)
    return alike


def restore(was: Found) -> None:
    """Restores MAC, MTU, offloads, addresses, state and routes of an interface in this namespace, and takes
    it out of a bridge; changes only settings that differ. New routes that it did not have before the lab
    stay.
    """
    entry = _entry(was.name)
    now = from_entry(entry)
    device = ["dev", was.name]
    if now.mac != was.mac:
        run(["ip", "link", "set", *device, "address", was.mac])
    if now.mtu != was.mtu:
        run(["ip", "link", "set", *device, "mtu", str(was.mtu)])
    if now.master is not None:
        run(["ip", "link", "set", *device, "nomaster"])
    offloads.restore(was.name, was.offloads)
    if was.gso_max_segs is not None and entry.get("gso_max_segs") != was.gso_max_segs:
        run(["ip", "link", "set", *device, "gso_max_segs", str(was.gso_max_segs)])
    for address in now.addresses:
        if address not in was.addresses:
            run(["ip", "addr", "del", address, *device])
    for address in was.addresses:
        if address not in now.addresses:
            run(["ip", "addr", "add", address, *device])
    if now.up != was.up:
        run(["ip", "link", "set", *device, "up" if was.up else "down"])
    _restore_routes(was)


def _restore_routes(was: Found) -> None:
    """Adds the former routes that are missing, those without a gateway first, since they may lead to the
    gateways of the others. Tries all; raises NicError with those that the kernel refuses.
    """
    there = set(_routes(was.name))
    refused = []
    for route in sorted(was.routes, key=lambda one: " via " in one):
        if route not in there:
            family, *words = route.split()
            try:
                run(["ip", family, "route", "add", *words, "dev", was.name])
            except NicError as error:
                refused.append(str(error))
    if refused:
        raise NicError("; ".join(refused))
