"""Requests to nodes in a scenario: roles armed, begun, counted and ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

from orchestrator.lab.operations.operation import Done, Operation


@dataclass(frozen=True)
class Messages(Operation[Done]):
    """The file for message records ([records](records.md))."""

    op = "messages"
    path: str


class Role(TypedDict):
    """The part of the plan's Software that a role of the agent reads."""

    name: str
    kind: str
    session: dict[str, Any]
    spec: dict[str, Any]


class Item(TypedDict):
    """A role to arm; after a machine's restart `resume` holds, by flow number, where its flows continue."""

    node: str
    software: Role
    flows: list[dict[str, Any]]  # the plan's whose sender this session is, with their `number`
    resume: NotRequired[dict[str, Any]]


@dataclass(frozen=True)
class Workload(Operation[Done]):
    """Arms roles of the agent: what listens is bound, so that a port which is taken is an error here.

    `kind` names a role of the agent ([roles](roles.md)), which reads its own `spec`.
    """

    op = "workload"
    items: Sequence[Item]


@dataclass(frozen=True)
class Go(Operation[Done]):
    """Starts the armed roles; offsets of schedules count from t0."""

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
    connected: int  # clients now
    clients: int  # sessions that do not listen
    totals: Totals


@dataclass(frozen=True)
class Pending(Operation[Outstanding]):
    """The progress of the roles, for the drain."""

    op = "pending"


@dataclass(frozen=True)
class Finish(Operation[Outstanding]):
    """Ends schedules, disconnects all clients, flushes message records; answers as `pending` does."""

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
    """The progress of the load by the records that the launcher has seen.

    It sends nothing to nodes, so that progress costs them nothing.
    """

    op = "counts"
