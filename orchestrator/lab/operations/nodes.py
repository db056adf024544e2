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
    op = "hello"


class Walls(TypedDict):
    """Of all nodes of a lab; without them nodes are as free as the launcher."""

    hides: list[str]  # though every user of the machine may read it
    logs: str  # the one directory outside where agents open logs
    disk_bytes: int  # of a node: all that it writes


class Opened(TypedDict):
    """What of the machine's files one node sees or writes beyond the rule."""

    sees: list[str]
    writes: list[str]
    names: list[str]  # files that its commands name: read only, where all may read them


class NewNode(TypedDict):
    name: str
    netns: str | None  # None: the launcher's own
    hostname: str
    cgroup_procs: list[str]  # files to write its own pid to
    ipv6: bool
    opened: NotRequired[Opened]


class Created(TypedDict):
    pids: dict[str, int]


@dataclass(frozen=True)
class Create(Operation[Created]):
    op = "create"
    core: str | None  # the core namespace
    nodes: Sequence[NewNode]
    walls: Walls | None = None


class Card(TypedDict):
    name: str
    address: str | None
    prefix: int
    mtu: int
    mac: str


class RouteTo(TypedDict):
    to: Sequence[str]
    via: Sequence[str]


class NodeNetwork(TypedDict):
    name: str
    interfaces: list[Card]
    forward: bool
    routes: list[RouteTo]


class Configured(TypedDict):
    nodes: dict[str, dict[str, Any]]  # as read back; `readback.agents` compares it


@dataclass(frozen=True)
class Configure(Operation[Configured]):
    op = "configure"
    nodes: Sequence[NodeNetwork]
    core_devices: Sequence[str] | None = None


class NodeSettings(TypedDict):
    mtu: dict[str, int]  # by interface
    hostname: str


@dataclass(frozen=True)
class Set(Operation[NodeSettings]):
    """Answers what was asked for, as read back."""

    op = "set"
    node: str
    mtu: Mapping[str, int] | None = None
    hostname: str | None = None


@dataclass(frozen=True)
class Destroy(Operation[Done]):
    op = "destroy"
    nodes: Sequence[str] | None  # None: all, and the core namespace


@dataclass(frozen=True)
class Quit(Operation[Done]):
    op = "quit"
