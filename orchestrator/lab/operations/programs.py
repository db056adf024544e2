"""What the lab process asks of nodes: programs started and stopped, commands, terminals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from orchestrator.lab.operations.operation import Done, Operation


class Started(TypedDict):
    pid: int
    ready_ns: int


@dataclass(frozen=True)
class Start(Operation[Started]):
    op = "start"
    node: str
    software: Mapping[str, Any]  # the plan's
    log: str | None = None


class ExitStatus(TypedDict):
    status: int  # 128 + n for a signal


@dataclass(frozen=True)
class Stop(Operation[ExitStatus]):
    op = "stop"
    node: str
    software: str
    signal: str
    timeout_ns: int


class SoftwareState(TypedDict):
    state: Literal["starting", "ready", "exited", "failed"]
    pid: int | None
    status: int | None
    restarts: int


class SoftwareStates(TypedDict):
    nodes: dict[str, dict[str, SoftwareState]]


@dataclass(frozen=True)
class Software(Operation[SoftwareStates]):
    op = "software"


class Terminal(TypedDict):
    rows: int
    cols: int


@dataclass(frozen=True)
class Exec(Operation[ExitStatus]):
    """Its output comes in events."""

    op = "exec"
    node: str
    argv: Sequence[str]
    env: Mapping[str, str]
    tty: Terminal | None


@dataclass(frozen=True)
class Input(Operation[Done]):
    op = "input"
    target: int  # id of the exec
    data: str | None = None  # base64
    eof: bool | None = None


@dataclass(frozen=True)
class Resize(Operation[Done]):
    op = "resize"
    target: int
    rows: int
    cols: int


@dataclass(frozen=True)
class Signal(Operation[Done]):
    op = "signal"
    target: int
    signal: str
