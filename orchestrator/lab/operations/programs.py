"""Requests to nodes: programs started and stopped, commands, terminals."""

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
    """Starts a program, and answers when it is ready. An error has the last 20 lines of the program's log."""

    op = "start"
    node: str
    software: Mapping[str, Any]  # the plan's software
    log: str | None = None  # default: LOGS/NODE.SOFTWARE.log


class ExitStatus(TypedDict):
    status: int  # 128 + n for a signal


@dataclass(frozen=True)
class Stop(Operation[ExitStatus]):
    """Ends a program: sends the signal and, after the timeout, SIGKILL."""

    op = "stop"
    node: str
    software: str
    signal: str
    timeout_ns: int


class Frozen(TypedDict):
    software: list[str]  # the programs for which this changed anything


@dataclass(frozen=True)
class Freeze(Operation[Frozen]):
    """Stops all processes of a program by SIGSTOP, or continues them by SIGCONT.

    Does nothing to programs that do not run. `stop` first continues a frozen program, so that it can end.
    """

    op = "freeze"
    node: str
    frozen: bool
    software: str | None = None  # null means all programs of the node


class SoftwareState(TypedDict):
    state: Literal["starting", "ready", "exited", "failed", "unknown"]  # unknown: the VM does not answer
    pid: int | None
    status: int | None
    restarts: int


class SoftwareStates(TypedDict):
    nodes: dict[str, dict[str, SoftwareState]]


@dataclass(frozen=True)
class Software(Operation[SoftwareStates]):
    """Returns the state of every program of every node."""

    op = "software"


class Terminal(TypedDict):
    rows: int
    cols: int


@dataclass(frozen=True)
class Exec(Operation[ExitStatus]):
    """Runs a command in a node until it ends. Its output comes in events `output` {stream, data}."""

    op = "exec"
    node: str
    argv: Sequence[str]
    env: Mapping[str, str]
    tty: Terminal | None  # null means pipes


@dataclass(frozen=True)
class Input(Operation[Done]):
    """Sends input to an exec."""

    op = "input"
    target: int  # id of the exec
    data: str | None = None  # base64
    eof: bool | None = None


@dataclass(frozen=True)
class Resize(Operation[Done]):
    """Sets a new size of an exec's terminal."""

    op = "resize"
    target: int
    rows: int
    cols: int


@dataclass(frozen=True)
class Signal(Operation[Done]):
    """Sends a signal to an exec."""

    op = "signal"
    target: int
    signal: str
