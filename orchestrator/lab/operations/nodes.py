"""What the lab process asks of the launcher: nodes and their network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

from orchestrator.lab.operations.operation import Done, Operation


class Greeting(TypedDict):
    version: str
    pid: int
    clock_offset_ns: int  # Unix - monotonic at its start


@dataclass(frozen=True)
class Hello(Operation[Greeting]):
    """Who answers; the first request of a connection."""

    op = "hello"


class Walls(TypedDict):
    """Of all nodes of a lab; without them nodes are as free as the launcher."""

    hides: list[str]  # though every user of the machine may read it
    replaces: dict[str, str]  # files of the lab's own in the place of the machine's: place -> file
    logs: str  # the one directory outside where agents open logs
    disk_bytes: int  # all that a node writes


class Opened(TypedDict):
    """What of the machine's files one node sees or writes beyond the rule."""

    sees: list[str]
    writes: list[str]
    names: list[str]  # files that its commands name, read only, where all may read them
    root: NotRequired[str]  # directory with all files that it has, in place of the machine's


class NewNode(TypedDict):
    name: str
    netns: str | None  # null is the launcher's own
    hostname: str
    cgroup_procs: list[str]  # files to write its own pid to
    ipv6: bool
    opened: NotRequired[Opened]
    disk_bytes: NotRequired[int]  # all that it writes; without: as the walls have it


class Created(TypedDict):
    pids: dict[str, int]  # by node


@dataclass(frozen=True)
class Create(Operation[Created]):
    """Makes named network namespaces (bind mounts in /run/netns, as `ip netns` does) and one process a node.

    Each node has UTS and mount namespaces of its own; with `walls` it is
    [contained](../decisions/contained-nodes.md): user, process and IPC namespaces too, a read-only view of
    the machine's system, `disk_bytes` to write. Process numbers that its agent answers are the node's own.
    """

    op = "create"
    core: str | None  # the core namespace; null in a VM
    nodes: Sequence[NewNode]
    walls: Walls | None = None


class Card(TypedDict):
    name: str
    address: str | None  # null in a VM: up, offloads off, no address
    prefix: int
    mtu: int
    mac: str  # a VM's agent finds the interface by it, and renames it


class RouteTo(TypedDict):
    to: Sequence[str]
    via: Sequence[str]


class NeighbourAt(TypedDict):
    address: str
    mac: str
    device: str


class NodeNetwork(TypedDict):
    name: str
    interfaces: list[Card]
    forward: bool
    routes: list[RouteTo]
    neighbours: NotRequired[list[NeighbourAt]]  # known for good
    reflect_dscp: NotRequired[bool]  # its TCP servers answer with the DSCP of the SYN (tcp_reflect_tos)


class Configured(TypedDict):
    nodes: dict[str, dict[str, Any]]  # as read back; `readback.agents` compares it


@dataclass(frozen=True)
class Configure(Operation[Configured]):
    """Sets lo and interfaces up; addresses, routes and forwarding as given; segmentation offloads off.

    tx and rx checksum stay; tso, gso and gro go, on `core_devices` too. Answered is what the kernel says
    afterwards: `nodes` {name: {hostname, interfaces: [{name, address, prefix, mtu, mac, up, offloads: {tso,
    gso, gro}}]}} and `core_devices` {name: {tso, gso, gro}}.
    """

    op = "configure"
    nodes: Sequence[NodeNetwork]
    core_devices: Sequence[str] | None = None


class NodeSettings(TypedDict):
    mtu: dict[str, int]  # by interface
    hostname: str


@dataclass(frozen=True)
class Set(Operation[NodeSettings]):
    """Changes a running node; answers what was asked for, as read back."""

    op = "set"
    node: str
    mtu: Mapping[str, int] | None = None
    hostname: str | None = None


@dataclass(frozen=True)
class Destroy(Operation[Done]):
    """Ends the nodes' processes, removes their namespaces."""

    op = "destroy"
    nodes: Sequence[str] | None  # null is all, and the core namespace


@dataclass(frozen=True)
class Quit(Operation[Done]):
    """Destroys what is left, exits."""

    op = "quit"
