"""Applies the commands ifconfig, route, vconfig and sysctl to a machine. Functions return the exit status, or
None for words without a counterpart, which the import then reports.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from ..network import Machine, Route
from .addresses import by_class, give, interface, is_a, subnet, take
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
            (machine.down.add if off else machine.down.discard)(port)
        elif word == "netmask":
            mask = next(given, "")
        elif word == "mtu":
            value = next(given, "")
            if not value.isdigit():
                return None
            machine.mtus[port] = int(value)
        elif word in ("add", "inet6"):
            if (more := next(given, "")) == "add":
                more = next(given, "")
            if interface(more) is None:
                return None
            give(machine, port, str(interface(more)))
        elif word == "del":
            take(machine, port, interface(next(given, "")))
        elif word in _NO_COUNTERPART:
            next(given, None)
        elif word in _FLAGS:
            continue
        elif address is None and by_class(word) is not None:
            address = word
        else:
            return None  # hw, pointopoint, and what it does not know
    return 0 if address is None else _own(machine, port, address, mask)


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
    """Applies `route add|del [-net|-host] TARGET [netmask MASK] [gw GATEWAY] [metric N] [dev IF]`; without
    words it changes nothing. Ignores the interface and unknown words. None for an added route without a
    gateway after `gw`, a deleted one that does not exist (unless it is the default), and another command.
    """
    plain = [word for word in words if word not in ("-n", "-v", "-e", "-A", "inet", "-4", "-6", "--inet")]
    if not plain:
        return 0
    command, rest = plain[0], plain[1:]
    host = "-host" in rest
    rest = [word for word in rest if word not in ("-net", "-host")]
    if command not in ("add", "del") or not rest:
        return None
    target, mask, via, metric = rest[0], None, None, 0
    given = iter(rest[1:])
    for word in given:
        if word in ("gw", "via"):
            via = next(given, "")
        elif word == "netmask":
            mask = next(given, "")
        elif word == "metric":
            value = next(given, "")
            metric = int(value) if value.isdigit() else 0
        elif word in ("dev", "mss", "window", "irtt"):
            next(given, None)
        elif word not in ("reinstate", "mod", "dyn") and is_a(ipaddress.ip_address, word):
            return None
    if mask is None and not host and target not in ("default", "0.0.0.0") and "/" not in target:
        classed = by_class(target)  # a network by its class, unless it has host bits
        network = None if classed is None else ipaddress.ip_interface(classed)
        to = (
            subnet(target)
            if network is None or network.ip != network.network.network_address
            else str(network.network)
        )
    else:
        to = subnet(target, mask)
    if to is None:
        return None
    if command == "del":
        before = len(machine.routes)
        machine.routes = [one for one in machine.routes if one.to != to or via not in (None, one.via)]
        return 0 if len(machine.routes) < before or to == "default" else None
    if via is None or not is_a(ipaddress.ip_address, via):
        return None
    return add_route(machine, Route(to, via, metric))


def vconfig(machine: Machine, words: Sequence[str]) -> int | None:
    """Applies `vconfig add IF TAG`, which makes the interface IF.TAG; ignores `set_name_type`. None for other
    words.
    """
    if len(words) == 3 and words[0] == "add":
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
