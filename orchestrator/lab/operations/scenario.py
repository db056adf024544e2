"""What the lab process asks of nodes in a scenario: roles armed, begun, counted and ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

from orchestrator.lab.operations.operation import Done, Operation


@dataclass(frozen=True)
class Messages(Operation[Done]):
    op = "messages"
    path: str  # where records go


class Role(TypedDict):
    """The part of the plan's Software that a role of the agent reads."""

    name: str
    kind: str
    session: dict[str, Any]
    spec: dict[str, Any]


class Item(TypedDict):
    """A role to arm; `earlier`, of a machine that is up again: what records hold of its flows, by number."""

    node: str
    software: Role
    flows: list[dict[str, Any]]
    earlier: NotRequired[dict[str, Any]]


@dataclass(frozen=True)
class Workload(Operation[Done]):
    op = "workload"
    items: Sequence[Item]


@dataclass(frozen=True)
class Go(Operation[Done]):
    op = "go"
    t0_ns: int  # Unix


class Totals(TypedDict):
    """Messages of all roles."""

    scheduled: int
    sent: int
    settled: int
    received: int
    dropped: int
    foreign: int


class Outstanding(TypedDict):
    pending: int  # messages that are not settled
    connected: int
    clients: int
    totals: Totals


@dataclass(frozen=True)
class Pending(Operation[Outstanding]):
    op = "pending"


@dataclass(frozen=True)
class Finish(Operation[Outstanding]):
    op = "finish"


class RecordTotals(TypedDict):
    settled: int
    received: int


class Progress(TypedDict):
    connected: int
    clients: int
    totals: RecordTotals


@dataclass(frozen=True)
class Counts(Operation[Progress]):
    op = "counts"
