"""Applies files that give machines their addresses: scripts of virtual PCs (VPCS), and Debian's
/etc/network/interfaces.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from .linux.addresses import interface
from .linux.addresses import is_a as _is
from .linux.commands import act
from .network import Machine, Route


def virtual_pc(machine: Machine, text: str) -> Iterator[str]:
    """Adds the addresses (of `eth0`, by default /24) and default routes of a virtual PC's script, whose lines
    are `ip ADDRESS [MASK] [GATEWAY]`, to the machine. Ignores `set pcname`, `save`, `echo` and empty lines;
    yields all other lines.
    """
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
    """Adds the static addresses and default routes of Debian's /etc/network/interfaces to the machine, and
    applies its `up`, `pre-up` and `post-up` commands. Yields the lines that have no counterpart, such as
    `inet dhcp`; ignores comments, `auto`, `broadcast`, name servers and the like.
    """
    port, address = "", ""
    for line in [*text.splitlines(), "iface"]:
        match line.split("#")[0].split():
            case [] | ["auto" | "allow-hotplug" | "broadcast" | "network" | "dns-nameservers", *_]:
                continue
            case ["iface", *rest]:
                if (given := interface(address)) is not None and port:
                    machine.addresses.setdefault(port, []).append(given)
                port, address = (rest[0] if rest[1:] in (["inet", "static"], ["inet6", "static"]) else ""), ""
                if rest and not port and rest[0] != "lo":
                    yield line.strip()
            case ["address", given] if port and _is(ipaddress.ip_interface, given):
                address = given
            case ["netmask", mask] if _is(ipaddress.ip_interface, f"{address}/{mask}"):
                address = f"{address}/{mask}"
            case ["gateway", via] if port and _is(ipaddress.ip_address, via):
                machine.routes.append(Route("default", via))
            case ["up" | "post-up" | "pre-up", *words] if act(machine, words) is not None:
                continue
            case _:
                yield line.strip()
