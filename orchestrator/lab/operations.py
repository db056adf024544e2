"""What the lab process asks of agents: operations, their fields and answers (docs/contracts/launcher.md)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, NotRequired, Protocol, TypedDict, TypeVar, cast

from orchestrator.lab.errors import LabError
from orchestrator.lab.jsonlines import Message

A = TypeVar("A")  # what the operation answers


@dataclass(frozen=True)
class Operation(Generic[A]):
    """One request; its public attributes are its fields, in the order in which they are written."""

    op: ClassVar[str]

    def fields(self) -> dict[str, Any]:
        """As they are sent: one that may be left out is, where it is None."""
        values = ((f.name, getattr(self, f.name), f.default) for f in dataclasses.fields(self))
        return {name: value for name, value, default in values if value is not None or default is not None}

    def read(self, message: Message) -> A:
        """Its answer; LabError with the agent's own text where that says no."""
        if not message.get("ok"):
            raise LabError(str(message.get("error", f"{self.op}: refused without a reason")))
        return cast("A", message)

    def accept(self, answer: A) -> Message:
        """The message that answers it."""
        return {"ok": True, **cast("Mapping[str, Any]", answer)}


class Call(Protocol):
    """A driver's `call`: waits for the answer; LabError where the agent says no."""

    def __call__(self, request: Operation[A], *, patience_ns: int = ...) -> A: ...


class Done(TypedDict):
    """An answer without fields."""


# The launcher, its nodes and their network


class Greeting(TypedDict):
    version: str
    pid: int
    clock_offset_ns: int  # Unix - monotonic at its start


@dataclass(frozen=True)
class Hello(Operation[Greeting]):
    op = "hello"


class NewNode(TypedDict):
    name: str
    netns: str | None  # None: the launcher's own
    hostname: str
    cgroup_procs: list[str]  # files to write its own pid to
    ipv6: bool


class Created(TypedDict):
    pids: dict[str, int]


@dataclass(frozen=True)
class Create(Operation[Created]):
    op = "create"
    core: str | None  # the core namespace
    nodes: Sequence[NewNode]


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


# Programs


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


# The scenario


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


# What is measured


class Counters(TypedDict):
    cpu: list[str]  # files
    memory: str | None  # file


class SampledNode(Counters):
    node: str
    ports: list[str]  # core devices


# A qdisc below a link's root (handle: major number in the upper 16 bits), or one tin of it, counted from 1.
SampledClass = TypedDict("SampledClass", {"class": str, "handle": int, "tin": int | None})


class SampledLink(TypedDict):
    link: str
    direction: str
    netns: str
    device: str
    classes: list[SampledClass]


@dataclass(frozen=True)
class Sample(Operation[Done]):
    op = "sample"
    interval_ns: int
    dir: str
    nodes: Sequence[SampledNode]
    links: Sequence[SampledLink]


class Probe(TypedDict):
    """Frames out of `device` that `far_device` receives, the first after `start_ns`; `size` in bytes."""

    link: str
    direction: str
    netns: str
    device: str
    far_netns: str
    far_device: str
    count: int
    size: int
    start_ns: int
    interval_ns: int  # 0: back to back
    timeout_ns: int


class Probed(TypedDict):
    link: str
    direction: str
    sent: int
    received: int
    duplicates: int
    reordered: int
    corrupted: int
    delays_ns: list[int]
    arrivals_ns: list[int]


class Proven(TypedDict):
    probes: list[Probed]


@dataclass(frozen=True)
class Prove(Operation[Proven]):
    op = "prove"
    probes: Sequence[Probe]


class Listening(TypedDict):
    armed: bool
    mac: str


@dataclass(frozen=True)
class ListenForFrames(Operation[Listening]):
    op = "frames"
    action: str = field(init=False, default="listen")
    trial: int
    count: int
    node: str
    iface: str


class FramesSent(TypedDict):
    sent: int
    refused: int
    waits: int
    late_ns: int
    first_ns: int
    last_ns: int


@dataclass(frozen=True)
class SendFrames(Operation[FramesSent]):
    op = "frames"
    action: str = field(init=False, default="send")
    node: str
    iface: str
    to: str  # a MAC
    trial: int
    count: int
    size: int  # bytes, with FCS
    rate_fps: float  # 0: back to back
    bypass: bool
    longest_ns: int


class Latency(TypedDict):
    min_ns: int | None
    max_ns: int | None
    sum_ns: float
    buckets: list[tuple[int, int, int]]  # latency from, to (excluded), frames


class FramesReceived(TypedDict):
    received: int
    duplicates: int
    reordered: int
    corrupted: int
    foreign: int
    early: int
    ring_dropped: int
    first_ns: int
    last_ns: int
    tagged_ns: int | None
    latency: Latency


@dataclass(frozen=True)
class CollectFrames(Operation[FramesReceived]):
    op = "frames"
    action: str = field(init=False, default="collect")
    node: str
    sent: int
    wait_ns: int


# Machines (docs/contracts/vms.md)


class FilePart(TypedDict):
    size: int | None  # of the whole file; None where there is none
    data: NotRequired[str | None]  # base64


@dataclass(frozen=True)
class Fetch(Operation[FilePart]):
    op = "fetch"
    path: str
    offset: int
    length: int


class Now(TypedDict):
    now_ns: int


@dataclass(frozen=True)
class ReadClock(Operation[Now]):
    op = "clock"


@dataclass(frozen=True)
class Resume(Operation[Now]):
    op = "resume"
    real_ns: int
    seed: str  # base64, 32 bytes


OfOneNode = Set | Start | Stop | Exec | ListenForFrames | SendFrames | CollectFrames
OfOneExec = Input | Resize | Signal
