"""Requests to the launcher: nodes and their network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

from orchestrator.lab.operations.operation import Done, Operation


class Greeting(TypedDict):
    version: str
    pid: int
    clock_offset_ns: int  # Unix time - monotonic time at the launcher's start


@dataclass(frozen=True)
class Hello(Operation[Greeting]):
    """Identifies the agent; the first request of a connection."""

    op = "hello"


class Sandbox(TypedDict):
    """The sandbox of all nodes of a lab; without it nodes have the launcher's rights."""

    hidden: list[str]  # paths to hide although every user of the host may read them
    replaced: dict[str, str]  # path on the host -> file of the lab that replaces it
    logs: str  # the only directory outside the node where agents open files
    disk_bytes: int  # the most bytes that a node may write


class Mounts(TypedDict):
    """Paths of the host that one node may use in addition to the system's directories."""

    read: list[str]
    write: list[str]
    copy: list[str]  # directories of which the node has a writable copy
    named: list[str]  # files that the program's commands name; shared read-only if every user may read them
    root: NotRequired[str]  # the unpacked container image that replaces the host's files
    cards: NotRequired[bool]  # the node has network cards of the host, and sees their directories in /sys


class NewNode(TypedDict):
    name: str
    netns: str | None  # null means the launcher's own namespace
    hostname: str
    cgroup_procs: list[str]  # files to which the process writes its own pid
    ipv6: bool
    mounts: NotRequired[Mounts]
    disk_bytes: NotRequired[int]  # the most bytes that the node may write; default: the sandbox's value
    ring_bytes: NotRequired[int]  # the most bytes of all its packet rings; default: no limit


class Created(TypedDict):
    pids: dict[str, int]  # by node


@dataclass(frozen=True)
class Create(Operation[Created]):
    """Makes named network namespaces (bind mounts in /run/netns, as `ip netns` does) and one process for each
    node.

    Each node has its own UTS and mount namespaces. With `sandbox` it is
    [contained](../decisions/contained-nodes.md): it also has user, PID and IPC namespaces, a read-only view
    of the host's system, and `disk_bytes` to write. PIDs in its agent's answers are those of its namespace.
    """

    op = "create"
    core: str | None  # the core namespace; null in a VM
    nodes: Sequence[NewNode]
    sandbox: Sandbox | None = None


class Card(TypedDict):
    name: str
    address: str | None  # null in a VM: the interface is set up without an address, with offloads off
    prefix: int
    mtu: int
    mac: str  # the agent of a VM finds the interface by this address, and renames it
    second: NotRequired[str]  # address of the other family, if the interface has both
    second_prefix: NotRequired[int]


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
    neighbours: NotRequired[list[NeighbourAt]]  # permanent entries of the neighbour table
    reflect_dscp: NotRequired[bool]  # the node's TCP servers copy the DSCP of the SYN (tcp_reflect_tos)


class Configured(TypedDict):
    nodes: dict[str, dict[str, Any]]  # values that were read back; `readback.agents` compares them


@dataclass(frozen=True)
class Configure(Operation[Configured]):
    """Sets lo and interfaces up; sets addresses, routes and forwarding as given; switches segmentation
    offloads off.

    tx and rx checksum offloads stay on; tso, gso and gro are switched off, and gso_max_segs becomes 1, on
    `core_devices` too. The answer has the values that the kernel reports afterwards: `nodes` {name:
    {hostname, interfaces: [{name, address, prefix, mtu, mac, up, offloads: {tso, gso, gro, multi_segment}}]}}
    and `core_devices` {name: {tso, gso, gro, multi_segment}}. multi_segment: true if gso_max_segs is another
    number than 1.
    """

    op = "configure"
    nodes: Sequence[NodeNetwork]
    core_devices: Sequence[str] | None = None


class NodeSettings(TypedDict):
    mtu: dict[str, int]  # by interface
    hostname: str


@dataclass(frozen=True)
class Set(Operation[NodeSettings]):
    """Changes a running node; the answer has the changed values as they were read back."""

    op = "set"
    node: str
    mtu: Mapping[str, int] | None = None
    hostname: str | None = None


class Space(TypedDict):
    size_bytes: int
    free_bytes: int


@dataclass(frozen=True)
class Disk(Operation[Space]):
    """Fills the file systems that a node may write, or frees their space again.

    The request sets the size of a file system to the space that its files take at that moment, so that a
    program can reuse only the space that it frees. The paths of `mounts` and virtual machines are not
    affected.
    """

    op = "disk"
    node: str
    full: bool


@dataclass(frozen=True)
class Destroy(Operation[Done]):
    """Ends the nodes' processes and removes their namespaces."""

    op = "destroy"
    nodes: Sequence[str] | None  # null means all nodes, and the core namespace


@dataclass(frozen=True)
class Quit(Operation[Done]):
    """Destroys everything that is left, and ends the launcher."""

    op = "quit"
