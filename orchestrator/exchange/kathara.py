"""Imports labs of Kathará (and Netkit): machines with their startup scripts and daemons, and the collision
domains of lab.conf between them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from ..language.problem import Problem, TopologyError
from .files import utf8
from .kathara_machine import Furnished, furnished
from .linux.commands import act
from .network import MOST_PARTS, End, Lan, Machine, Network, Origin, Wire, insist_few, name_of
from .startup import Startup

TOOL = "Kathará"
LAB, OUTSIDE, ORDER = "lab.conf", "lab.ext", "lab.dep"
_LINE = re.compile(
    r"""\s*(?P<machine>[\w-]+)\[(?P<key>\w+)\]\s*=\s*(?:(["'])(?P<quoted>.*?)\3|(?P<plain>[^"'#\s][^"'#]*?))"""
    r"\s*(?:(?<=\s)#.*)?"
)
_ABOUT = re.compile(r"^\s*LAB_\w+\s*=")
# keys of a machine that are read, besides its interfaces and its image
READ = ("mem", "cpus", "sysctl", "exec", "env")
UNITS = {"b": "B", "k": "KiB", "m": "MiB", "g": "GiB"}
_MEMORY, _CPUS = re.compile(r"(\d+) ?([bkmgBKMG])"), re.compile(r"\d+(\.\d+)?|\.\d+")
_SWITCH = re.compile(r"/(p4|sdn|ovs|openvswitch)\b")


def read(path: Path) -> Network:
    """Returns the network of a lab, named by its directory or its lab.conf. Raises TopologyError with the
    lines of all parts that cannot be imported, or if there is no lab.conf.
    """
    file = path / LAB if path.is_dir() else path
    if not file.is_file():
        remedy = "name a lab's directory, or its lab.conf"
        raise TopologyError([Problem(str(file), 0, "", "", "is not there", remedy)])
    return _Reader(file).network()


@dataclass
class _Device:
    """A machine in lab.conf: the number of its first line; for each interface number, the collision
    domain and the number of the line that states it; and (line, key, value) of its other keys that are read.
    """

    line: int
    domains: dict[int, tuple[str, int]] = field(default_factory=dict)  # interface number -> (domain, line)
    keys: list[tuple[int, str, str]] = field(default_factory=list)


class _Reader:
    def __init__(self, file: Path) -> None:
        self._file, self._directory = file, file.parent
        self._problems: list[Problem] = []
        self._devices: dict[str, _Device] = {}
        self._images: dict[str, list[str]] = {}
        above = file.absolute().parents
        folder = (above[1] if above[0].name == "lab" else above[0]).name
        self._network = Network(
            name_of(folder, set()), f"{TOOL}, {folder}", source=str(file), has_routes=True
        )

    def network(self) -> Network:
        for number, line in enumerate(utf8(self._file).splitlines(), 1):
            self._line(number, line)
        insist_few(str(self._file), sum(1 + len(device.domains) for device in self._devices.values()))
        for image, users in self._images.items():
            more = f" and {len(users) - 1} more" if len(users) > 1 else ""
            self._leave(f"image {image} of {users[0]}{more}: nodes have this machine's programs")
        names = self._names()
        for theirs, device in self._devices.items():
            if device.domains:
                self._machine(theirs, names[theirs], device)
            else:
                self._leave(f"line {device.line}: {theirs}: is on none of the lab's networks")
        self._join(names)
        if (self._directory / OUTSIDE).is_file():
            self._leave(f"{OUTSIDE}: interfaces of the machine, which is outside of the lab")
        if (self._directory / ORDER).is_file():
            self._leave(f"{ORDER}: the order in which machines start: here all start before the hold")
        if not self._network.machines:
            self._refuse(0, "has no machines on networks", 'name a lab.conf with lines like pc1[0]="A"')
        if self._problems:
            raise TopologyError(self._problems)
        # the scripts of all machines may give the same line
        self._network.left = list(dict.fromkeys(self._network.left))
        return self._network

    def _leave(self, line: str) -> None:
        self._network.left.append(line)

    def _refuse(self, line: int, rule: str, remedy: str, value: str = "") -> None:
        self._problems.append(Problem(str(self._file), line, "", value, rule, remedy))

    def _line(self, number: int, line: str) -> None:
        bare = line.strip()
        if not bare or bare.startswith("#") or _ABOUT.match(line):
            return
        found = _LINE.fullmatch(line)
        if found is None:
            self._refuse(number, "is no line of a lab.conf", 'write for example pc1[0]="A"', bare[:60])
            return
        machine, key, value = found["machine"], found["key"], found["quoted"] or found["plain"] or ""
        device = self._devices.setdefault(machine, _Device(number))
        if key.isdigit():
            domain, _, mac = value.partition("/")
            if mac:
                self._leave(f"line {number}: {machine}[{key}]: the MAC {mac} is the plan's here")
            if len(device.domains) <= MOST_PARTS and domain in [one for one, _ in device.domains.values()]:
                rule = "is a second interface on the same network"
                self._refuse(number, rule, "give it a network of its own", f"{machine}[{key}]={value}")
            if int(key) in device.domains:
                rule = "is an interface that another line has put on a network"
                self._refuse(number, rule, "give it another number", f"{machine}[{key}]={value}")
            device.domains[int(key)] = (domain, number)
        elif key in READ:
            device.keys.append((number, key, value))
        elif key != "image":
            self._leave(f"line {number}: {machine}[{key}]={value}: no counterpart")
        elif _SWITCH.search(value):
            rule = "is a switch whose program cannot be taken over"
            self._refuse(number, rule, "leave the machine out, or use a plain network", value)
        else:
            self._images.setdefault(value, []).append(machine)

    def _names(self) -> dict[str, str]:
        names: dict[str, str] = {}
        for theirs in self._devices:
            names[theirs] = name_of(theirs, set(names.values()))
            if names[theirs] != theirs:
                self._network.changed.append(f"node {theirs} is {names[theirs]} here")
        return names

    def _machine(self, theirs: str, name: str, device: _Device) -> None:
        # All machines of Kathara forward; with one interface this has no effect.
        machine = self._network.machines[name] = Machine(
            name, forward=len(device.domains) > 1, origin=Origin(str(self._file), device.line)
        )
        variables: dict[str, str] = {}
        for line, key, value in device.keys:
            self._key(machine, theirs, line, key, value, variables)
        found: Furnished = furnished(machine, self._directory, theirs, variables)
        machine.forward = machine.forward or (machine.kind is not None and len(device.domains) == 1)
        self._network.left += found.left
        self._problems += found.problems
        for line, key, value in device.keys:
            if key == "exec":  # done after the startup scripts
                self._exec(machine, theirs, line, value, variables)

    def _key(
        self, machine: Machine, theirs: str, line: int, key: str, value: str, variables: dict[str, str]
    ) -> None:
        """Applies a key of lab.conf: limits, a sysctl of forwarding, or a variable of the environment, which
        it adds to `variables`. Reports a value without a counterpart.
        """
        if key == "env" and "=" in value:
            name, _, text = value.partition("=")
            variables[name.strip()] = text.strip()
            self._leave(f"line {line}: {theirs}[{key}]={value}: only the startup commands have it")
        elif key == "mem" and (size := _MEMORY.fullmatch(value)):
            machine.keys["memory_limit"] = f"{size[1]} {UNITS[size[2].lower()]}"
        elif key == "cpus" and _CPUS.fullmatch(value) and float(value) > 0:
            machine.keys["cpu_limit"] = "1 core" if float(value) == 1 else f"{float(value):g} cores"
        elif key != "exec" and (key != "sysctl" or act(machine, ["sysctl", value]) is None):
            self._leave(f"line {line}: {theirs}[{key}]={value}: no counterpart")

    def _exec(self, machine: Machine, theirs: str, line: int, value: str, variables: dict[str, str]) -> None:
        """Applies a command of lab.conf, with the line of its key in reports."""
        startup = Startup(machine, theirs, lambda _line: f"line {line}")
        startup.script(value, variables)
        self._network.left += startup.left
        for _, shown, rule, remedy in startup.problems:
            self._refuse(line, rule, remedy, shown)

    def _join(self, names: dict[str, str]) -> None:
        """Makes a wire of each collision domain with two members, and a LAN of any other, also one with one
        member.
        """
        domains: dict[str, list[End]] = {}
        lines: dict[str, int] = {}
        for theirs, device in self._devices.items():
            for number, (domain, line) in device.domains.items():
                domains.setdefault(domain, []).append((names[theirs], f"eth{number}"))
                lines.setdefault(domain, line)
        taken = set(names.values())
        for domain, ends in domains.items():
            origin = Origin(str(self._file), lines[domain])
            if len(ends) == 2:
                self._network.wires.append(Wire((ends[0], ends[1]), origin=origin))
                continue
            name = name_of(domain, taken)
            taken.add(name)
            self._network.lans[name] = Lan(name, ends, origin=origin)
