"""Commands of `ip`, `ifconfig`, `route` and `sysctl` that give nodes addresses, routes and forwarding."""

from __future__ import annotations

import ipaddress
import itertools
import re
import shlex
from collections.abc import Iterator
from typing import Any

from .network import Machine, Route

_TIME, _RATES = r"[\d.]+(?:us|ms|s)", {"kbit": "kbit/s", "mbit": "Mbit/s", "gbit": "Gbit/s"}
_NETEM = re.compile(rf"(?:delay (?P<delay>{_TIME})(?: (?P<jitter>{_TIME}))? ?)?(?:loss (?P<loss>[\d.]+%))?")
_TBF = re.compile(r"rate (?P<rate>[\d.]+[kmg]bit)\b.*")
FORWARDING = ("net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")


def commands(line: str) -> Iterator[list[str]]:
    """The words of each command of a shell's line; a line that is none is one word."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";&")
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError:
        words = [line]
    for ends, command in itertools.groupby(words, lambda word: word in (";", "&&")):
        if not ends:
            yield list(command)


def understood(machine: Machine, words: list[str]) -> bool:
    """Whether a command is one of those whose effect the plan has; the machine then has it."""
    words = [word for word in words if word not in ("sudo", "-4", "-6")]
    match words:
        case ["ip", "link" | "l", "set", *rest] if "up" in rest:
            return True
        case ["ip", "addr" | "address" | "a", "add", address, "dev", port] if _is(
            ipaddress.ip_interface, address
        ):
            machine.addresses.setdefault(port, []).append(address)
            return True
        case ["ifconfig", _, "up"]:
            return True
        case ["ifconfig", port, address, *rest] if (given := _with_mask(address, rest)) is not None:
            machine.addresses.setdefault(port, []).append(given)
            return True
        case ["route", "add", "default", "gw", via, *_] if _is(ipaddress.ip_address, via):
            machine.routes.append(Route("default", via))
            return True
        case ["route", "add", "-net" | "-host", to, *rest] if "gw" in rest[:-1]:
            via, subnet = rest[rest.index("gw") + 1], _with_mask(to, rest)
            if subnet is None or not _is(ipaddress.ip_address, via):
                return False
            machine.routes.append(Route(str(ipaddress.ip_interface(subnet).network), via))
            return True
        case ["ip", "route" | "r", "add" | "replace", to, "via", via, *rest] if _is(
            ipaddress.ip_address, via
        ):
            if ipaddress.ip_address(via).is_link_local:
                return False  # made of a MAC of theirs
            if rest[:1] not in ([], ["dev"]) or not (to == "default" or _is(ipaddress.ip_network, to)):
                return False
            machine.routes.append(Route("default" if to in ("0.0.0.0/0", "::/0") else to, via))
            return True
        case ["sysctl", *rest] if any(word in FORWARDING for word in rest):
            machine.forward = True
            return True
        case ["ip", "route" | "r", "del" | "delete", "default", *_]:
            return True  # of the management network, which is not here
    return False


def impairment(words: list[str]) -> tuple[str, dict[str, Any]] | None:
    """The interface that `tc` gives one, and which: delay, jitter and loss of netem, or the rate of tbf."""
    match words:
        case ["tc", "qdisc", "add", "dev", port, "root", "netem", *rest]:
            pattern = _NETEM
        case ["tc", "qdisc", "add", "dev", port, "root", "tbf", *rest]:
            pattern = _TBF
        case _:
            return None
    found = pattern.fullmatch(" ".join(rest))
    given = {key: _spaced(value) for key, value in (found.groupdict() if found else {}).items() if value}
    return (port, given) if given else None


def _spaced(text: str) -> str:
    """A quantity as `tc` has it (10ms, 256kbit, 10%) with its unit as ours."""
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz%")
    unit = text.removeprefix(number)
    return f"{number} {_RATES.get(unit, unit)}"


def virtual_pc(machine: Machine, text: str) -> Iterator[str]:
    """A script of a virtual PC: `ip ADDRESS [MASK] [GATEWAY]`; answers the lines that it does not know."""
    for line in text.splitlines():
        words = line.split("#")[0].split()
        match [word for word in words if word.lower() != "gw"]:
            case [] | ["set", "pcname", _] | ["save" | "echo", *_]:
                continue
            case ["ip", address, *rest] if len(rest) <= 2:
                masks = [word for word in rest if word.isdigit() or word.startswith("255.")]
                gateways = [word for word in rest if word not in masks and _is(ipaddress.ip_address, word)]
                given = address if "/" in address or not masks else f"{address}/{masks[0]}"
                if _is(ipaddress.ip_interface, given) and len(masks) + len(gateways) == len(rest):
                    machine.addresses.setdefault("eth0", []).append(given if "/" in given else f"{given}/24")
                    machine.routes += [Route("default", gateway) for gateway in gateways]
                    continue
        yield line.strip()


def interfaces_file(machine: Machine, text: str) -> Iterator[str]:
    """Debian's /etc/network/interfaces; answers the lines that it does not know."""
    port, address = "", ""
    for line in [*text.splitlines(), "iface"]:
        match line.split("#")[0].split():
            case [] | ["auto" | "allow-hotplug" | "broadcast" | "network" | "dns-nameservers", *_]:
                continue
            case ["iface", *rest]:
                if address and "/" in address:
                    machine.addresses.setdefault(port, []).append(address)
                port, address = (rest[0] if rest[1:] in (["inet", "static"], ["inet6", "static"]) else ""), ""
                if rest and not port and rest[0] != "lo":
                    yield line.strip()
            case ["address", given] if port and _is(ipaddress.ip_interface, given):
                address = given
            case ["netmask", mask] if _is(ipaddress.ip_interface, f"{address}/{mask}"):
                address = f"{address}/{mask}"
            case ["gateway", via] if port and _is(ipaddress.ip_address, via):
                machine.routes.append(Route("default", via))
            case ["up" | "post-up" | "pre-up", *words] if understood(machine, words):
                continue
            case _:
                yield line.strip()


def _with_mask(address: str, words: list[str]) -> str | None:
    """An address with the length of its prefix, of net-tools: in the same word, or after `netmask`."""
    if "netmask" in words[:-1]:
        address = f"{address}/{words[words.index('netmask') + 1]}"
    if "/" not in address or not _is(ipaddress.ip_interface, address):
        return None
    return str(ipaddress.ip_interface(address))


def _is(kind: Any, text: str) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return True
