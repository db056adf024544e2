"""Applies the commands brctl and ovs-vsctl, which make switches inside a machine. Functions return the exit
status, or None for words without a counterpart, which the import then reports.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..network import Bridge, Machine
from .ip import enslave, release

_TIMERS = (
    "setfd",
    "setageing",
    "sethello",
    "setmaxage",
    "setbridgeprio",
    "setpathcost",
    "setportprio",
    "hairpin",
)
_STP = ("stp_enable=true", "stp_enable=false")


def brctl(machine: Machine, words: Sequence[str]) -> int | None:
    """Applies brctl to bridges of Linux, their ports and their spanning tree. Returns the status, 1 for
    `delbr` of an unknown bridge and `delif` of a port that is not on it; None for timers and priorities,
    which the lab sets itself, unknown bridges and other words.
    """
    own = {name for name, bridge in machine.bridges.items() if bridge.state != "always"}
    match list(words):
        case ["addbr", name]:
            machine.bridges.setdefault(name, Bridge())
            return 0
        case ["delbr", name] if name in own or name not in machine.bridges:
            return 0 if machine.bridges.pop(name, None) is not None else 1
        case ["addif", name, *ports] if name in own:
            for port in ports:
                enslave(machine, port, name)
            return 0
        case ["delif", name, *ports] if name in own:
            return 0 if all(_leave(machine, name, port) for port in ports) else 1
        case ["stp", name, state] if name in own:
            machine.bridges[name].stp = state in ("on", "yes", "1")
            return 0
        case ["show" | "showmacs" | "showstp", *_]:
            return 0
    return None


def _leave(machine: Machine, bridge: str, port: str) -> bool:
    """Takes a port from a bridge; returns False if it is not on it."""
    there = port in machine.bridges[bridge].ports
    if there:
        release(machine, port)
    return there


def ovs_vsctl(machine: Machine, words: Sequence[str]) -> int | None:
    """Applies the ovs-vsctl commands, separated by `--`, to bridges, plain ports and `stp_enable=true`;
    returns 0, or 1 for a bridge or port to delete that is not there (but with `--if-exists`). Returns None at
    the first other command, such as one with tags, trunks or controllers, or with an unknown bridge. Bridges
    of Linux are unknown to it.
    """
    own = {name for name, bridge in machine.bridges.items() if bridge.state == "always"}
    lenient = "--if-exists" in words
    waiting: list[list[str]] = [[]]
    for word in words:
        if word == "--":
            waiting.append([])
        elif word not in ("--may-exist", "--if-exists", "--no-wait"):
            waiting[-1].append(word)
    for command in waiting:
        match command:
            case ["add-br", name]:
                machine.bridges.setdefault(name, Bridge()).state = "always"
                own.add(name)
            case ["del-br", name]:
                if name not in own and not lenient:
                    return 1
                machine.bridges.pop(name if name in own else "", None)
            case ["add-port", name, port] if name in own:
                enslave(machine, port, name)
            case ["del-port", *names, port] if len(names) < 2:
                found = [name for name in own if port in machine.bridges[name].ports]
                if (names and names != found) or not (found or names or lenient):
                    return None if names and found else 0 if lenient else 1
                release(machine, port)
            case ["set", "bridge" | "Bridge", name, setting] if name in own and setting in _STP:
                machine.bridges[name].stp = setting.endswith("true")
            case ["show" | "list-br" | "list-ports", *_] | []:
                continue
            case _:
                return None
    return 0
