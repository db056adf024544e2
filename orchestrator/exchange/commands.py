"""Applies files that give machines their addresses: scripts of virtual PCs (VPCS), and Debian's
/etc/network/interfaces.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator, Sequence

from .linux.addresses import interface
from .linux.addresses import is_a as _is
from .linux.commands import act
from .network import Machine, Route


def virtual_pc(machine: Machine, text: str) -> Iterator[str]:
    """Gives the machine the address and the default route of a virtual PC's script, whose lines are
    `ip ADDRESS [MASK] [GATEWAY]`, in place of those of the same IP version (of `eth0`; by default /24, IPv6
    /64). Ignores `set pcname`, `save`, `echo` and empty lines; yields all other lines.
    """
    for line in text.splitlines():
        words = line.split("#")[0].split()
        match [word for word in words if word.lower() not in ("gw", "set")] or words:
            case [] | ["pcname", _] | ["save" | "echo", *_]:
                continue
            case ["ip", address, *rest] if len(rest) <= 2:
                masks = [word for word in rest if word.lstrip("/").isdigit() or word.startswith("255.")]
                gateways = [word for word in rest if word not in masks and _is(ipaddress.ip_address, word)]
                usual = "64" if ":" in address else "24"
                mask = masks[0].lstrip("/") if masks else usual
                given = address if "/" in address else f"{address}/{mask}"
                if _is(ipaddress.ip_interface, given) and len(masks) + len(gateways) == len(rest):
                    _replaced(machine, given, gateways)
                    continue
        yield line.strip()


def _replaced(machine: Machine, given: str, gateways: Sequence[str]) -> None:
    def same(text: str) -> bool:
        return (":" in text) == (":" in given)

    old = machine.addresses.get("eth0", [])
    machine.addresses["eth0"] = [*(one for one in old if not same(one)), given]
    machine.routes = [one for one in machine.routes if not same(one.via)]
    machine.routes += [Route("default", gateway) for gateway in gateways]


def interfaces_file(machine: Machine, text: str, only: Collection[str] = ()) -> Iterator[str]:
    """Adds the static addresses and default routes of Debian's /etc/network/interfaces to the machine, and
    applies its `up`, `pre-up` and `post-up` commands: of the interfaces of `only`, or else of those that the
    file starts by `auto` or `allow-hotplug`. Yields the lines that have no counterpart, such as `inet dhcp`,
    and those of other interfaces; ignores comments, `broadcast`, name servers and the like.
    """
    lines = [line.split("#")[0].strip() for line in text.replace("\\\n", " ").splitlines()]
    first = ("auto", "allow-auto", "allow-hotplug")
    started = {
        name for line in lines if line.split()[:1] and line.split()[0] in first for name in line.split()
    }
    port, address, idle = "", "", False
    for line in [*lines, "iface"]:
        match line.split():
            case [] | ["auto" | "allow-auto" | "allow-hotplug", *_]:
                continue
            case ["iface", *rest]:
                if (given := interface(address)) is not None and port:
                    machine.addresses.setdefault(port, []).append(given)
                port, address = (rest[0] if rest[1:] in (["inet", "static"], ["inet6", "static"]) else ""), ""
                idle = bool(rest) and rest[0] not in (only or started)
                if rest and (idle or not port) and rest[0] != "lo":
                    yield f"{line}: nothing starts it" if idle and port else line
                port = "" if idle else port
            case _ if idle:
                continue
            case ["broadcast" | "network" | "dns-nameservers" | "dns-search" | "dns-domain", *_]:
                continue
            case ["address", given] if port and _is(ipaddress.ip_interface, given):
                address = given
            case ["netmask", mask] if _is(ipaddress.ip_interface, f"{address}/{mask}"):
                address = f"{address}/{mask}"
            case ["gateway", via] if port and _is(ipaddress.ip_address, via):
                machine.routes.append(Route("default", via))
            case ["mtu", size] if port and size.isdecimal():
                machine.mtus[port] = int(size)
            case ["up" | "post-up" | "pre-up", *words] if act(machine, words) is not None:
                continue
            case _:
                yield line
