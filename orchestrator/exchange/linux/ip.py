"""Applies the commands `ip address`, `ip link` and `ip route` to a machine: abbreviated words, options in any
order. Functions return the exit status, or None for unknown words, which the import then reports.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Sequence

from ..network import Bridge, Machine, Route
from .addresses import give, interface, is_a, is_vlan, subnet, take

FLAGS = (
    "-4",
    "-6",
    "-0",
    "-f",
    "-c",
    "-color",
    "-s",
    "-d",
    "-o",
    "-h",
    "-br",
    "-brief",
    "-j",
    "-N",
    "-force",
)
# Each object of `ip` and its shortest abbreviation (iproute2, ip/ip.c).
OBJECTS = (("address", "a"), ("link", "l"), ("route", "r"))
# Keywords of addresses and routes that take a word and have no counterpart that matters to a lab.
ADDRESS_WORDS = ("broadcast", "brd", "label", "scope", "metric", "proto", "valid_lft", "preferred_lft")
ADDRESS_FLAGS = ("noprefixroute", "nodad", "home", "mngtmpaddr", "autojoin", "noprefixroute")
ROUTE_WORDS = (
    "dev",
    "src",
    "proto",
    "protocol",
    "scope",
    "advmss",
    "pref",
    "initcwnd",
    "initrwnd",
    "rto_min",
)


def ip(machine: Machine, words: Sequence[str]) -> int | None:
    """Applies the words after `ip` to the machine: address, link and route; listing changes nothing. Returns
    the exit status, or None for another object or an unknown word.
    """
    plain = list(words)
    while plain and (plain[0] in FLAGS or plain[0].startswith("-f")):
        if plain.pop(0) in ("-f", "-family") and plain:
            plain.pop(0)
    if not plain or plain[0].startswith("-"):
        return None
    kind = next((name for name, short in OBJECTS if name.startswith(plain[0]) or plain[0] == short), None)
    if plain[0] == "addr":
        kind = "address"
    command, rest = (plain[1], plain[2:]) if len(plain) > 1 else ("show", [])
    if kind is None:
        return None
    sets = kind == "link" and command == "s"  # for links, iproute2 reads `s` as `set`
    if (not sets and "show".startswith(command)) or command in ("list", "ls", "lst", "get", "g"):
        return 0
    return _OBJECTS[kind](machine, command, list(rest))


def _address(machine: Machine, command: str, words: list[str]) -> int | None:
    address, port, peer = None, None, None
    given = iter(words)
    for word in given:
        if word == "dev":
            port = next(given, None)
        elif word in ADDRESS_WORDS:
            next(given, None)
        elif word == "local":
            address = next(given, None)
        elif word in ("peer", "remote"):
            peer = next(given, "")
        elif word in ADDRESS_FLAGS or (
            word in ("to", "primary", "permanent", "global") and command[0] == "f"
        ):
            continue
        elif address is None and interface(word) is not None:
            address = word
        else:
            return None
    if "flush".startswith(command) and command[0] == "f":
        return None if port is None else take(machine, port)
    text = None if address is None else interface(address if peer is None else _beside(address, peer))
    if text is None or port is None:
        return None
    if "add".startswith(command):
        return give(machine, port, text)
    if command in ("change", "chg", "replace") or "replace".startswith(command):
        give(machine, port, text)
        return 0
    return take(machine, port, text) if "delete".startswith(command) else None


def _beside(address: str, peer: str) -> str:
    """Returns the address with the length of its peer (ADDRESS/LENGTH) if both are in one subnet, or ""."""
    length = peer.partition("/")[2]
    both = [interface(f"{one.partition('/')[0]}/{length}") for one in (address, peer)] if length else [None]
    networks = {None if one is None else ipaddress.ip_interface(one).network for one in both}
    return str(both[0]) if len(networks) == 1 and None not in networks and length not in ("32", "128") else ""


def _link(machine: Machine, command: str, words: list[str]) -> int | None:
    if "set".startswith(command):
        return _set(machine, words)
    if "add".startswith(command):
        return _new(machine, words)
    if "delete".startswith(command):
        names = [word for word in words if word not in ("dev", "type", "bridge", "vlan", "dummy")]
        if len(names) != 1 or (names[0] not in machine.bridges and names[0] not in machine.made):
            return None
        machine.bridges.pop(names[0], None)
        machine.made.pop(names[0], None)
        machine.addresses.pop(names[0], None)
        return 0
    return None


def _new(machine: Machine, words: list[str]) -> int | None:
    """Adds a bridge, a VLAN interface or a dummy interface from the words of `ip link add` and returns the
    status; None for another type, or without a name, a type, or the parent and valid id of a VLAN.
    """
    if "type" not in words[:-1]:
        return None
    at = words.index("type")
    kind, options, head = words[at + 1], words[at + 2 :], words[:at]
    name, parent = None, None
    given = iter(head)
    for word in given:
        if word in ("name", "dev"):
            name = next(given, None)
        elif word == "link":
            parent = next(given, None)
        elif word in ("mtu", "address", "txqueuelen", "numtxqueues", "numrxqueues"):
            next(given, None)
        elif word not in ("up",):
            name = word
    if name is None:
        return None
    if kind == "bridge":
        if "up" in head:
            machine.bridges.setdefault(name, Bridge()).state = "up"
        return _bridge(machine.bridges.setdefault(name, Bridge()), options)
    if kind == "vlan" and parent is not None and "id" in options[:-1]:
        tag = options[options.index("id") + 1]
        if not is_vlan(tag):
            return None
        machine.made[name] = f"VLAN {tag} of {parent}"
        return 0
    if kind == "dummy":
        machine.made[name] = "a dummy"
        return 0
    return None


def _bridge(bridge: Bridge, options: Sequence[str]) -> int | None:
    """Sets the bridge's spanning tree (`stp_state`) from the options and ignores others; returns None if the
    options turn VLAN filtering on, else 0.
    """
    pairs = list(zip(options[::2], options[1::2], strict=False))
    for key, value in pairs:
        if key in ("stp_state", "stp"):
            bridge.stp = value in ("1", "on")
        elif key == "vlan_filtering" and value in ("1", "on"):
            return None
    return 0


def _set(machine: Machine, words: list[str]) -> int | None:
    plain = list(words)
    if (port := _taken(plain)) is None:
        return None
    given = iter(plain)
    for word in given:
        if word in ("up", "down"):
            machine.switch(port, word == "up")
        elif word == "mtu":
            value = next(given, "")
            if not value.isdecimal():
                return None
            machine.mtus[port] = int(value)
        elif word == "master":
            master = next(given, "")
            if master not in machine.bridges or "always" in (
                machine.bridges[master].state,
                _held(machine, port),
            ):
                return None
            enslave(machine, port, master)
        elif word == "nomaster":
            if _held(machine, port) == "always":
                return None  # Linux takes no port from a bridge of Open vSwitch
            release(machine, port)
        elif word == "arp":
            if next(given, "") == "off":
                return None
        elif word in ("promisc", "multicast", "allmulticast", "qlen", "txqueuelen", "txqlen", "alias"):
            next(given, None)
        elif word == "type" and port in machine.bridges and next(given, "") == "bridge":
            return _bridge(machine.bridges[port], list(given))
        else:
            return None  # such as address, name, netns and vrf
    return 0


def _taken(words: list[str]) -> str | None:
    """Takes the interface's name out of the words of `ip link set`: that after `dev`, or the first word. None
    if there is none, or if the words are about a group.
    """
    if "dev" in words[:-1]:
        at = words.index("dev")
        port = words[at + 1]
        del words[at : at + 2]
        return port
    return words.pop(0) if words and words[0] not in ("group", "dev") else None


def _held(machine: Machine, port: str) -> str:
    """Returns the state of the bridge that an interface is a port of; "" if it is of none."""
    return next((one.state for one in machine.bridges.values() if port in one.ports), "")


def enslave(machine: Machine, port: str, bridge: str) -> None:
    """Makes an interface a port of a bridge, and removes it from the bridge that it was on. KeyError without
    such a bridge.
    """
    release(machine, port)
    machine.bridges[bridge].ports.append(port)


def release(machine: Machine, port: str) -> None:
    """Removes an interface from its bridge, if it has one."""
    for bridge in machine.bridges.values():
        if port in bridge.ports:
            bridge.ports.remove(port)


def _route(machine: Machine, command: str, words: list[str]) -> int | None:
    if not words or "flush".startswith(command):
        return None
    if words[0] in ("unicast", "to"):
        words = words[1:]
    to = subnet(_padded(words[0])) if words else None
    if to is None:
        return None
    if "delete".startswith(command):
        return _forget(machine, to, words[1:])
    hops = list(_hops(words[1:]))
    if len(hops) != 1 or hops[0] is None:
        return None
    via, metric = hops[0]
    return route(machine, Route(to, via, metric), command)


def _padded(text: str) -> str:
    """Returns an IPv4 subnet of less than four numbers (10.5/16) with zeros at its end, as iproute2 does."""
    if not re.fullmatch(r"\d{1,3}(\.\d{1,3}){0,2}/\d{1,2}", text):
        return text
    address, _, length = text.partition("/")
    return f"{address}{'.0' * (3 - address.count('.'))}/{length}"


def route(machine: Machine, made: Route, command: str = "add") -> int | None:
    """Adds a route, or replaces the routes with its subnet and metric; of two routes to one subnet the lower
    metric applies. Returns the status of `ip`: 0, or 2 for a second route with the same subnet and metric;
    None for another command.
    """
    same = [one for one in machine.routes if (one.place, one.metric) == (made.place, made.metric)]
    names = ("add", "change", "chg", "replace", "prepend", "append")  # in iproute2's order of abbreviations
    command = next((name for name in names if name.startswith(command)), command)
    if command in ("change", "chg") and not same:
        return 2
    if command in ("change", "chg", "replace"):
        machine.routes = [one for one in machine.routes if one not in same]
    elif same and "add".startswith(command):
        return 2
    elif same or not ("add".startswith(command) or command in ("append", "prepend")):
        return None
    machine.routes.append(made)
    return 0


def _hops(words: Sequence[str]) -> Iterator[tuple[str, int] | None]:
    """Yields one (gateway, metric) from the words of a route; 0 without a metric. Yields None if a word has
    no counterpart, or if there is no gateway or it is link-local.
    """
    via, metric, given = None, 0, iter(words)
    for word in given:
        if word == "via":
            via = next(given, "")
            via = next(given, "") if via in ("inet", "inet6") else via
        elif word in ("metric", "preference", "priority"):
            value = next(given, "")
            if not value.isdecimal():
                yield None
                return
            metric = int(value)
        elif word in ROUTE_WORDS or (word == "table" and words[-1] in ("main", "254")):
            next(given, None)
        elif word not in ("onlink",):
            yield None
            return
    if via is None or not is_a(ipaddress.ip_address, via) or ipaddress.ip_address(via).is_link_local:
        yield None  # a route by a device, or by an address that contains a MAC of the other tool
    else:
        yield via, metric


def _forget(machine: Machine, to: str, words: Sequence[str]) -> int | None:
    via = words[words.index("via") + 1] if "via" in words[:-1] else None
    found = [one for one in machine.routes if one.to == to and via in (None, one.via)]
    for one in found[:1]:
        machine.routes.remove(one)
    # a default route may lead through the other tool's management network, which the lab does not have
    if not found and to != "default":
        return None
    return 0


_OBJECTS: dict[str, Callable[[Machine, str, list[str]], int | None]] = {
    "address": _address, "link": _link, "route": _route,
}  # fmt: skip
