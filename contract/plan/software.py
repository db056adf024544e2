"""Defines the software on the nodes of a plan.

Imports the standard library only: the lab process reads it inside the lab's kernel, where every import
costs time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from ..codec import RARE

REFLECT_DSCP = "reflect_dscp"  # in the `spec` of a program whose node answers TCP with the DSCP of the SYN


@dataclass(frozen=True, slots=True)
class File:
    """A file written into the node before its software starts (already rendered)."""

    path: str  # a relative one is below the node's own directory, its programs' working directory
    content: str
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class Probe:
    """Readiness probe of a program; exactly one of the subjects is set, or none (ready at once)."""

    tcp_port: int | None = None
    log: str | None = None  # a line that contains this text
    command: tuple[str, ...] | None = None  # exits 0
    deadline_ns: int = 10_000_000_000


@dataclass(frozen=True, slots=True)
class Process:
    """A program of any kind, run by the agent in the node."""

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    files: tuple[File, ...] = ()
    ready: Probe = Probe()
    restart: Literal["never", "on-failure", "always"] = "never"
    expect: Literal["running", "exited"] = "running"  # end state at the end of hold
    stop_signal: str = "SIGTERM"
    start: Literal["setup", "ramp", "hold"] = "setup"
    workdir: str | None = None  # the node's own directory
    # the agent keeps the keys of the program's TLS connections: raw/logs/NODE.SOFTWARE.keys
    tls_keys: bool = field(default=False, metadata=RARE)


@dataclass(frozen=True, slots=True)
class Program:
    """A program or shared library of the machine that software needs."""

    name: str  # name of the program's file
    package: str  # Debian package of the file
    version: tuple[str, ...]  # command that prints the program's version
    without: str  # part of the lab that fails without the program
    built_by: str = field(
        default="", metadata=RARE
    )  # command that installs a program without a Debian package
    directory: str = field(
        default="", metadata=RARE
    )  # directory that the program needs as a whole, if that belongs to no package

    @property
    def install(self) -> str:
        """Returns the command that installs it."""
        return self.built_by or f"apt-get install {self.package}"


@dataclass(frozen=True, slots=True)
class Session:
    """A session of an agent's role: when it connects and ends, and its name in records."""

    endpoint: str  # unique in the lab
    connect_ns: int  # offset from the scenario's start
    disconnect_ns: int
    listens: bool = False  # a server: it is bound when it is armed, and takes no place in the ramp
    # Longest time before a connection's end for which data may be lost unnoticed; None: data outlives
    # connections.
    patience_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Software:
    """A program on a node: a `process` that the agent starts, or a role of the agent, which has a
    `session`.
    """

    name: str
    role: Literal["router", "broker", "server", "client", "utility"]  # group of the software in tables
    kind: str = ""  # key of the kinds of software
    process: Process | None = None
    session: Session | None = None
    spec: dict[str, Any] = field(default_factory=dict)  # settings of the kind
    ports: dict[str, tuple[int, ...]] = field(default_factory=dict)  # application protocol -> its ports
