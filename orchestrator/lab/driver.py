"""The interface of drivers, which create the nodes of a lab and carry out operations on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from contract.plan import Capture, Node, Plan, Step
from orchestrator.lab.clock import SECOND
from orchestrator.lab.jsonlines import Message
from orchestrator.lab.loop import Loop
from orchestrator.lab.operations import Answer, Counters, Greeting, Operation
from orchestrator.lab.state import State
from orchestrator.lab.traceroute import Traceroute, TracerouteResult

OnMessage = Callable[[Message], None]
PATIENCE_NS = 120 * SECOND  # time limit for 350 nodes in a slow lab kernel on a machine that others use, too


class CaptureProcess(Protocol):
    """A running capture; `stop` returns its packet counts: packets, received, dropped_kernel,
    dropped_interface.
    """

    @property
    def listening(self) -> bool: ...  # whether the capture already records packets
    def stop(self) -> dict[str, int]: ...


class Driver(Protocol):
    """Creates nodes and the network between them, reads both back, and removes them. Errors: LabError."""

    name: str

    def open(self) -> Greeting: ...  # version, pid and clock of the launcher
    def create(self, nodes: Sequence[Node], core: str | None) -> dict[str, int]: ...  # returns pids by node
    def apply(self, step: Step) -> None: ...
    # Runs tc; returns the new qdiscs of `device`.
    def change(self, step: Step, device: str) -> list[dict[str, Any]]: ...
    # Returns the values read back.
    def configure(self, nodes: Sequence[Node], ports: Sequence[str]) -> dict[str, Any]: ...
    def devices(self, netns: str) -> list[dict[str, Any]]: ...  # returns the form of `ip -j -d link`
    def qdiscs(self, netns: str) -> list[dict[str, Any]]: ...  # returns the form of `tc -j qdisc`
    def limit(self, nodes: Sequence[Node]) -> dict[str, Any]: ...  # returns the applied limits by node
    def counters(self, node: Node) -> Counters: ...
    def call(
        self, request: Operation[Answer], *, patience_ns: int = PATIENCE_NS
    ) -> Answer: ...  # sends an operation to agents
    def submit(
        self, request: Operation[Any], on_answer: OnMessage, on_event: OnMessage | None = None
    ) -> int: ...  # sends an operation without waiting; `on_answer` gets the message, for `request.read`
    def capture(
        self, capture: Capture, file: Path, on_death: Callable[[str], None] | None = None
    ) -> CaptureProcess: ...  # if `on_death` is left out, an early end of the capture ends the lab
    # The method switches whole nodes on or off, not only their programs.
    def power(self, nodes: Sequence[Node], on: bool) -> None: ...
    def destroy(self, nodes: Sequence[Node] | None) -> None: ...  # None destroys the whole lab
    def close(self) -> None: ...


@runtime_checkable
class Snapshooter(Protocol):
    """A driver that saves the state of its nodes and restores it."""

    def snapshot(self, nodes: Sequence[Node], name: str) -> None: ...
    def revert(self, nodes: Sequence[Node], name: str) -> None: ...


@runtime_checkable
class Bounded(Protocol):
    """A driver that limits the resources of nodes and reports which limits a node has reached."""

    def reached(self, node: Node) -> list[str]: ...


@runtime_checkable
class Tracer(Protocol):
    """A driver that sends packets from inside its light nodes, to find the routers on the paths between
    nodes.
    """

    def traceroute(self, ways: Sequence[Traceroute]) -> list[TracerouteResult]: ...


@runtime_checkable
class Seeder(Protocol):
    """A driver that seeds netem's generators on devices of a namespace and returns the seeds that the kernel
    then has.
    """

    def seed(self, netns: str, seeds: Mapping[str, int]) -> dict[str, int]: ...


@dataclass(frozen=True)
class DriverContext:
    """The inputs of a driver, and the callbacks for its events."""

    plan: Plan
    loop: Loop
    state: State
    run_dir: Path
    agent: Path
    cpu_mhz: float | None  # clock rate of the real machine; None if unknown
    on_event: OnMessage
    on_lost: Callable[[str], None]  # function that is called with the reason when the launcher has ended
    # The directory in which a campaign keeps booted machines from one lab to the next.
    snapshots: Path | None = None
    others: tuple[Node, ...] = ()  # nodes of the lab on other hosts, whose names the nodes here resolve
    virtual: bool = False  # whether the lab runs in virtual time
