"""Requests to nodes in a scenario: arm, start, count and end roles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

from orchestrator.lab.operations.operation import Done, Operation


@dataclass(frozen=True)
class Messages(Operation[Done]):
    """Names the file for message records ([records](records.md))."""

    op = "messages"
    path: str


class Role(TypedDict):
    """The part of the plan's Software that a role of the agent reads."""

    name: str
    kind: str
    session: dict[str, Any]
    spec: dict[str, Any]


class Item(TypedDict):
    """A role to arm. After a machine's restart, `resume` has for each flow number the point at which the flow
    continues.
    """

    node: str
    software: Role
    flows: list[dict[str, Any]]  # the plan's flows whose sender is this session, each with its `number`
    resume: NotRequired[dict[str, Any]]


@dataclass(frozen=True)
class Workload(Operation[Done]):
    """Arms roles of the agent. A role that listens binds its port, so a port that is in use is an error here.

    `kind` names a role of the agent ([roles](roles.md)), which reads its own `spec`.
    """

    op = "workload"
    items: Sequence[Item]


@dataclass(frozen=True)
class Go(Operation[Done]):
    """Starts the armed roles; the offsets of schedules count from t0."""

    op = "go"
    t0_ns: int  # Unix


class Totals(TypedDict):
    """The message counts of all roles."""

    scheduled: int
    sent: int
    settled: int
    received: int
    dropped: int
    foreign: int


class Outstanding(TypedDict):
    pending: int  # messages that are not settled
    connected: int  # clients that are connected now
    clients: int  # sessions that do not listen
    totals: Totals


@dataclass(frozen=True)
class Pending(Operation[Outstanding]):
    """Returns the progress of the roles, for the drain."""

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
    """Returns the progress of the load, from the records that the launcher has received.

    The launcher sends nothing to nodes, so that progress costs them nothing.
    """

    op = "counts"
