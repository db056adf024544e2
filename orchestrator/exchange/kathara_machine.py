"""What a machine of Kathará is given by its startup script and directory: both are read, neither is run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..language.problem import Problem
from ..topology.loading import read_bytes
from .commands import commands, impairment, interfaces_file, understood
from .daemons import DAEMONS, FOREIGN, KIND
from .network import Machine

SHARED = "shared.startup"  # each machine's, before its own
_INTERFACES = re.compile(r"^(/etc/init\.d/networking (re)?start|(systemctl|service) .*\bnetworking\b)")
INTERFACES = "etc/network/interfaces"


@dataclass
class Furnished:
    """Results of a machine's files that are not part of the machine itself."""

    left: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    queues: dict[str, dict[str, Any]] = field(default_factory=dict)  # impairments by interface


def furnished(machine: Machine, lab: Path, theirs: str) -> Furnished:
    """Gives the machine the addresses, routes and daemons that the lab's files give theirs."""
    found, has_daemons = Furnished(), False
    for place, file, line, words in _commands(lab, theirs):
        if DAEMONS.starts(" ".join(words)):
            has_daemons = True
        elif _INTERFACES.match(" ".join(words)) and (lab / theirs / INTERFACES).is_file():
            listed = interfaces_file(machine, _text(lab / theirs / INTERFACES))
            found.left += [f"{theirs}/{INTERFACES}: `{line}` is not done" for line in listed]
        elif {"bridge", "type"} <= set(words) or words[:2] == ["brctl", "addbr"]:
            rule, remedy = (
                "is a bridge in a machine, which cannot be taken over",
                "write a network in lab.conf",
            )
            found.problems.append(Problem(str(file), line, "", shlex.join(words), rule, remedy))
        elif (queue := impairment(words)) is not None:
            found.queues.setdefault(queue[0], {}).update(queue[1])
        elif not understood(machine, words):
            found.left.append(f"{place}: `{shlex.join(words)}` is not run")
    own = lab / theirs
    config = _daemons(own) if has_daemons else ""
    loopback = machine.addresses.pop("lo", [])
    if config:
        _route(machine, config, loopback)
    else:
        without = "its daemons have no protocol configured: a router without any"
        found.left += [f"{theirs}: {without}"] * has_daemons
        found.left += [f"{theirs}: the address {address} of lo" for address in loopback]
    found.left += _files(theirs, own)
    return found


def _commands(lab: Path, theirs: str) -> Iterator[tuple[str, Path, int, list[str]]]:
    """Each command of the scripts that the machine starts with, and where it stands."""
    for file in (lab / SHARED, lab / f"{theirs}.startup"):
        if not file.is_file():
            continue
        for number, line in enumerate(_text(file).splitlines(), 1):
            if line.strip().startswith("#"):
                continue
            for words in commands(line):
                yield f"{file.name}, line {number}", file, number, words


def _daemons(own: Path) -> str:
    """The configuration of all of the machine's daemons in one text; "": no protocol is configured."""
    for folder, head in DAEMONS.folders.items():
        files = sorted((own / folder).glob("*.conf")) if (own / folder).is_dir() else []
        if config := DAEMONS.config([_text(file) for file in files if file.name != "vtysh.conf"]):
            return head + config
    return ""


def _route(machine: Machine, config: str, loopback: list[str]) -> None:
    lines = [f" ip{'v6' if ':' in address else ''} address {address}\n" for address in loopback]
    machine.kind = KIND
    machine.config = config + ("!\ninterface lo\n" + "".join(lines) if lines else "")
    for port, addresses in FOREIGN.addresses(config).items():
        known = machine.addresses.setdefault(port, [])
        known += [address for address in addresses if address not in known]


def _files(theirs: str, own: Path) -> Iterator[str]:
    """What the machine would find in place, but for the configuration of its daemons and interfaces."""
    names = [file.relative_to(own).as_posix() for file in sorted(own.rglob("*")) if file.is_file()]
    others = [name for name in names if not name.startswith((*DAEMONS.folders, INTERFACES))]
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        yield f"{theirs}/{others[0]}{more}: files are not put into the node"


def _text(file: Path) -> str:
    return read_bytes(file).decode("utf-8", "replace")
