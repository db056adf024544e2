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


def brctl(machine: Machine, words: Sequence[str]) -> int | None:
    """Applies brctl to bridges, their ports and their spanning tree. Returns the status, 1 for `delbr` of an
    unknown bridge; None for timers and priorities, which the lab sets itself, unknown bridges and other
    words.
    """
    match list(words):
        case ["addbr", name]:
            machine.bridges.setdefault(name, Bridge())
            return 0
        case ["delbr", name]:
            return 0 if machine.bridges.pop(name, None) is not None else 1
        case ["addif", name, *ports] if name in machine.bridges:
            for port in ports:
                enslave(machine, port, name)
            return 0
        case ["delif", name, *ports] if name in machine.bridges:
            for port in ports:
                release(machine, port)
            return 0
        case ["stp", name, state] if name in machine.bridges:
            machine.bridges[name].stp = state in ("on", "yes", "1")
            return 0
        case ["show" | "showmacs" | "showstp", *_]:
            return 0
    return None


def ovs_vsctl(machine: Machine, words: Sequence[str]) -> int | None:
    """Applies the ovs-vsctl commands, separated by `--`, to bridges, plain ports and `stp_enable=true`;
    returns 0. Returns None at the first other command, such as one with tags, trunks or controllers, or with
    an unknown bridge.
    """
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
            case ["del-br", name]:
                machine.bridges.pop(name, None)
            case ["add-port", name, port] if name in machine.bridges:
                enslave(machine, port, name)
            case ["del-port", *_, port]:
                release(machine, port)
            case ["set", "bridge" | "Bridge", name, "stp_enable=true"] if name in machine.bridges:
                machine.bridges[name].stp = True
            case ["show" | "list-br" | "list-ports", *_] | []:
                continue
            case _:
                return None
    return 0
