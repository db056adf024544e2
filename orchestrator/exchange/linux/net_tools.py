"""Applies the commands ifconfig, route, vconfig and sysctl to a machine. Functions return the exit status, or
None for words without a counterpart, which the import then reports.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from ..network import Machine, Route
from .addresses import by_class, give, interface, is_a, is_vlan, subnet, take
from .ip import route as add_route

_NO_COUNTERPART = ("broadcast", "metric", "txqueuelen", "tunnel", "irq", "dstaddr")
_FLAGS = (
    "arp",
    "-arp",
    "promisc",
    "-promisc",
    "allmulti",
    "-allmulti",
    "multicast",
    "-broadcast",
    "inet",
    "-v",
    "-a",
)
_ROUTE_WORDS = ("dev", "device", "mss", "window", "irtt")  # each of these words is followed by a value
_ROUTE_FLAGS = ("reinstate", "mod", "dyn")
_KEYWORDS = ("gw", "gateway", "via", "netmask", "metric", "reject", *_ROUTE_WORDS)
FORWARDING = (
    "net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding", "net.ipv4.conf.all.forwarding",
    "net.ipv4.conf.default.forwarding", "net.ipv6.conf.default.forwarding",
)  # fmt: skip


def ifconfig(machine: Machine, words: Sequence[str]) -> int | None:
    """Applies `ifconfig IF [ADDRESS[/LENGTH]] [netmask MASK] [up|down] [mtu N]`, with IPv6 by `inet6 add`,
    and `del ADDRESS`. Without IF or with IF alone it changes nothing; broadcast, flags and the like have no
    effect. None for other words, such as `hw`.
    """
    plain = [word for word in words if word not in ("-v", "-a", "-s")]
    if len(plain) < 2:
        return 0
    port, given = plain[0], iter(plain[1:])
    address, mask, off = None, None, False
    for word in given:
        if word in ("up", "down"):
            off = word == "down"
            machine.switch(port, not off)
        elif word == "netmask":
            mask = next(given, "")
        elif word == "mtu":
            value = next(given, "")
            if not value.isdecimal():
                return None
            machine.mtus[port] = int(value)
        elif word in ("add", "inet6"):
            if (more := next(given, "")) == "add":
                more = next(given, "")
            if interface(more) is None:
                return None
            give(machine, port, str(interface(more)))
        elif word == "del":
            if (gone := interface(next(given, ""))) is None:
                return None
            take(machine, port, gone)
        elif word in _NO_COUNTERPART:
            next(given, None)
        elif word in _FLAGS:
            continue
        elif address is None and word == "0":
            address = "0.0.0.0"
        elif address is None and by_class(word) is not None:
            address = word
        else:
            return None  # `hw`, `pointopoint` and unknown words
    if address is None:
        return 0 if mask is None else _masked(machine, port, mask)
    if not off:
        machine.switch(port, True)  # an address takes the interface up (net-tools, ifconfig.c)
    return _own(machine, port, address, mask)


def _masked(machine: Machine, port: str, mask: str) -> int | None:
    """Changes the mask of the interface's first IPv4 address; None without one, or for a wrong mask."""
    own = machine.addresses.get(port, [])
    for number, text in enumerate(own):
        if "." in text and (made := interface(text.partition("/")[0], mask)) is not None:
            own[number] = made
            return 0
    return None


def _own(machine: Machine, port: str, address: str, mask: str | None) -> int | None:
    """Sets the interface's address in place of the former ones of its IP version; 0.0.0.0 only removes them.
    For an alias (eth0:1), adds one more. None if the address or mask is wrong.
    """
    text = by_class(address) if mask is None else interface(address, mask)
    if text is None:
        return None
    port, _, alias = port.partition(":")
    if not alias:
        version = ipaddress.ip_interface(text).version
        for old in list(machine.addresses.get(port, ())):
            if ipaddress.ip_interface(old).version == version:
                take(machine, port, old)
    if ipaddress.ip_interface(text).ip == ipaddress.ip_address("0.0.0.0"):
        return 0
    give(machine, port, text)
    return 0


def route(machine: Machine, words: Sequence[str]) -> int | None:
    """Applies `route add|del [-net|-host] TARGET [netmask MASK] [gw GATEWAY] [metric N] [[dev] IF]`; without
    words it changes nothing, and the interface has no effect. None for an added route without a gateway after
    `gw`, a deleted one that does not exist (unless it is the default), another command, and unknown words.
    """
    plain = [word for word in words if word not in ("-n", "-v", "-e", "-A", "inet", "-4", "-6", "--inet")]
    if not plain:
        return 0
    command, rest = plain[0], plain[1:]
    host = "-host" in rest
    rest = [word for word in rest if word not in ("-net", "-host")]
    if command not in ("add", "del") or not rest:
        return None
    target, options = rest[0], _options(rest[1:])
    to = None if options is None else _destination(target, options.mask, host)
    if options is None or to is None:
        return None
    if command == "del":
        before = len(machine.routes)
        machine.routes = [one for one in machine.routes if one.to != to or options.via not in (None, one.via)]
        return 0 if len(machine.routes) < before or to == "default" else None
    if options.via is None or not is_a(ipaddress.ip_address, options.via):
        return None
    return add_route(machine, Route(to, options.via, options.metric))


@dataclass
class _Options:
    mask: str | None = None
    via: str | None = None
    metric: int = 0


def _options(words: Sequence[str]) -> _Options | None:
    """Returns the options after a route's target. None for an unknown word, except that the last one may be
    an interface without `dev`, as in net-tools (lib/inet_sr.c).
    """
    found, waiting = _Options(), list(words)
    while waiting:
        word = waiting.pop(0)
        if word in ("gw", "gateway", "via") and waiting:
            found.via = waiting.pop(0)
        elif word == "netmask" and waiting:
            found.mask = waiting.pop(0)
        elif word == "metric" and waiting and waiting[0].isdecimal():
            found.metric = int(waiting.pop(0))
        elif word in _ROUTE_WORDS and waiting:
            waiting.pop(0)
        elif word not in _ROUTE_FLAGS and (waiting or not _is_interface(word)):
            return None
    return found


def _is_interface(word: str) -> bool:
    return word not in _KEYWORDS and word[:1] != "-" and not is_a(ipaddress.ip_address, word)


def _destination(target: str, mask: str | None, host: bool) -> str | None:
    """Returns a route's subnet. An IPv4 address without a length or mask is a network by its class, or one
    host if it has host bits or if `host`. None if it is no address.
    """
    classed = by_class(target)
    if mask is None and not host and target != "0.0.0.0" and "/" not in target and classed is not None:
        network = ipaddress.ip_interface(classed)
        if network.ip == network.network.network_address:
            return str(network.network)
    return subnet(target, mask)


def vconfig(machine: Machine, words: Sequence[str]) -> int | None:
    """Applies `vconfig add IF TAG`, which makes the interface IF.TAG; ignores `set_name_type`. None for other
    words, such as a tag that is no VLAN's.
    """
    if len(words) == 3 and words[0] == "add" and is_vlan(words[2]):
        machine.made[f"{words[1]}.{words[2]}"] = f"VLAN {words[2]} of {words[1]}"
        return 0
    return 0 if words[:1] == ["set_name_type"] else None


def sysctl(machine: Machine, words: Sequence[str]) -> int | None:
    """Sets the machine's forwarding from settings of IPv4 or IPv6 forwarding of all interfaces; those of
    `default` have no effect. Returns 0, or None if there is no such setting or any other is among them.
    """
    text = " ".join(word for word in words if word not in ("-w", "-q", "-e", "--write", "-qw", "-wq"))
    settings = text.replace(" = ", "=").replace("= ", "=").split()
    found = [setting.replace("/", ".").split("=", 1) for setting in settings]
    known = [one for one in found if one[0] in FORWARDING and len(one) == 2]
    for _, value in (one for one in known if ".default." not in one[0]):
        machine.forward = value.strip("'\"") not in ("0", "")
    return 0 if known and len(known) == len(found) else None
