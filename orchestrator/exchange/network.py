"""Models a network as other tools describe it: machines, wires, LANs, and the parts of the file that are
left out.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from contract.plan.family import family, is_address

from ..language.problem import Problem, TopologyError
from ..language.scalars import LONGEST_NAME

# largest number of machines, networks and links of a file; the Topology Zoo's largest graph has 1,649
MOST_PARTS = 4000
Impairments = dict[str, dict[str, Any]]  # keys: both, forward, reverse
End = tuple[str, str]  # machine, and its interface's name in the other tool's file


@dataclass(frozen=True)
class Origin:
    """The place of a part of the network in the other tool's file; line 0 if unknown."""

    file: str
    line: int = 0


@dataclass(frozen=True)
class Route:
    """A static route to a subnet or "default", by a neighbour's address. The lower metric wins."""

    to: str
    via: str
    metric: int = 0

    @property
    def place(self) -> tuple[str, str]:
        """The destination with its family, which of a default route the neighbour's address tells ("" where
        the neighbour is a name).
        """
        return self.to, family(self.via) if is_address(self.via) else ""


@dataclass
class Bridge:
    """A switch inside a machine, as `ip`, `brctl` and `ovs-vsctl` make it, with its ports. state: a bridge of
    Linux forwards only while it is up; one of Open vSwitch always.
    """

    ports: list[str] = field(default_factory=list)
    stp: bool = False
    state: Literal["new", "up", "down", "always"] = "new"


@dataclass
class Machine:
    """A node of the imported network; `config` is the text of its routing daemons' configuration, or ""."""

    name: str
    forward: bool = False
    routes: list[Route] = field(default_factory=list)
    # interface -> its addresses, such as "10.1.0.1/24"
    addresses: dict[str, list[str]] = field(default_factory=dict)
    kind: str | None = None  # kind of software (software/registry.py) that replaces the machine's program
    config: str = ""
    software: dict[str, Any] = field(default_factory=dict)  # name -> software, as in a topology file
    lan_ports: list[str] = field(default_factory=list)
    # further keys of the node in a topology file, such as cpu_limit and image
    keys: dict[str, Any] = field(default_factory=dict)
    bridges: dict[str, Bridge] = field(default_factory=dict)
    # name of an interface that the machine itself makes -> its type
    made: dict[str, str] = field(default_factory=dict)
    mtus: dict[str, int] = field(default_factory=dict)
    # interface -> impairments of the packets that it sends
    queues: dict[str, dict[str, Any]] = field(default_factory=dict)
    shaped: set[str] = field(default_factory=set)  # interfaces with a classful root qdisc (Mininet's HTB)
    down: set[str] = field(default_factory=set)  # interfaces that are off after the script
    origin: Origin | None = None

    def switch(self, port: str, up: bool) -> None:
        """Sets an interface or a bridge up or down. Down, it loses its IPv6 addresses and the routes by its
        subnets, as in Linux, also if it comes up again.
        """
        (self.down.discard if up else self.down.add)(port)
        if not up:
            subnets = [ipaddress.ip_interface(one).network for one in self.addresses.get(port, [])]
            self.routes = [
                one for one in self.routes if not any(ipaddress.ip_address(one.via) in net for net in subnets)
            ]
            self.addresses[port] = [one for one in self.addresses.get(port, []) if ":" not in one]
        if (bridge := self.bridges.get(port)) is not None and bridge.state != "always":
            bridge.state = "up" if up else "down"


@dataclass
class Wire:
    """A link between two machines, or between a LAN and a machine or another LAN, with its impairments."""

    ends: tuple[End, End]
    mtu: int | None = None
    impairments: Impairments = field(default_factory=dict)
    down: bool = False
    cost: int | None = None
    origin: Origin | None = None


@dataclass
class Lan:
    """A network with any number of members: a bridge, switch or hub."""

    name: str
    members: list[End] = field(default_factory=list)
    stp: bool = False
    mtu: int | None = None
    subnet: str | None = None
    origin: Origin | None = None


@dataclass(frozen=True)
class Probe:
    """A test of the file: the machine `source` reaches the machine `target` by ping; with `fails` it never
    does.
    """

    name: str
    source: str
    target: str
    fails: bool = False


@dataclass
class Network:
    """An imported network; `left` has a line on each part that is left out, `changed` on each that is
    different here.
    """

    name: str
    tool: str
    machines: dict[str, Machine] = field(default_factory=dict)
    wires: list[Wire] = field(default_factory=list)
    lans: dict[str, Lan] = field(default_factory=dict)
    lines: list[Wire] = field(default_factory=list)  # links between two LANs, or between a machine and a LAN
    probes: list[Probe] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    source: str = ""  # path of the file that was read
    has_routes: bool = False  # whether the file gives machines all their routes, so that the tool adds none
    keeps_routes: bool = False  # whether the routes are kept even if the plan assigns the addresses

    def join(self, wire: Wire) -> None:
        """Adds a wire between two machines to `wires`. If an end is a LAN, makes the machine at the other
        end a member of the LAN instead, and keeps the wire in `lines` only if it joins two LANs, has
        impairments or is down.
        """
        lans = [end for end in wire.ends if end[0] in self.lans]
        if not lans:
            self.wires.append(wire)
            return
        members = [end for end in wire.ends if end not in lans]
        self.lans[lans[0][0]].members += members
        if not members or wire.impairments or wire.down:
            self.lines.append(wire)


def insist_few(file: str, count: int) -> None:
    """Raises TopologyError if a file has more than MOST_PARTS machines, networks and links."""
    if count > MOST_PARTS:
        rule = f"has {count} machines, networks and links, more than {MOST_PARTS}"
        raise TopologyError([Problem(file, 0, "", "", rule, "import a part of it")])


def name_of(label: str, taken: set[str]) -> str:
    """Returns a valid node name made from a label: in lower case, with "-" for other characters, shortened,
    with "n" before a digit, and with a number from 2 on if the name is in `taken`, which stays as it is.
    """
    stem = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")
    stem = (stem if stem[:1].isalpha() else f"n{stem}")[: LONGEST_NAME - 8].rstrip("-")
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    return name


@dataclass(frozen=True)
class Importer:
    """Reads files of one tool for `vnet import NAME FILE`.

    title: one line of the list of importers. read: returns the file's network; raises TopologyError with
    file, line, rule and remedy for what it cannot read.
    """

    name: str
    title: str
    read: Callable[[Path], Network]
