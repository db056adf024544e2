"""Applies a Linux network command to a machine, by the function for the command's name."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

from ..network import Machine
from . import ip, net_tools, switches, tc

Command = Callable[[Machine, Sequence[str]], int | None]
COMMANDS: dict[str, Command] = {
    "ip": ip.ip, "ifconfig": net_tools.ifconfig, "route": net_tools.route, "vconfig": net_tools.vconfig,
    "sysctl": net_tools.sysctl, "brctl": switches.brctl, "ovs-vsctl": switches.ovs_vsctl, "tc": tc.tc,
    "bridge": lambda _machine, words: 0 if "show" in words else None,
    "ifup": lambda _machine, _words: None,
}  # fmt: skip
# Programs that do nothing if one of their words is wrong; ovs-vsctl does what stands before it.
WHOLE = frozenset(("ip", "ifconfig", "route", "tc", "brctl", "sysctl", "vconfig"))
PLACES = ("/sbin/", "/usr/sbin/", "/bin/", "/usr/bin/", "/usr/local/sbin/", "/usr/local/bin/")


def bare(name: str) -> str:
    """Returns a program's name without a usual directory such as /sbin/."""
    return next((name.removeprefix(place) for place in PLACES if name.startswith(place)), name)


def act(machine: Machine, words: Sequence[str]) -> int | None:
    """Applies a command (also after `sudo`, `busybox` or `exec`, with or without its directory) to the
    machine. Returns its exit status, or None if vNET has no counterpart for the command or its words.
    """
    plain = list(words)
    while plain[:1] in (["sudo"], ["busybox"], ["exec"]):
        plain.pop(0)
    command = COMMANDS.get(bare(plain[0])) if plain else None
    if command is None:
        return None
    before = copy.deepcopy(machine.__dict__)
    status = command(machine, plain[1:])
    if status is None and bare(plain[0]) in WHOLE:
        machine.__dict__.update(before)
    return status
