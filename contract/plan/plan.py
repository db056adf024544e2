"""Defines the plan: frozen data that describe the whole lab before it is made.

Imports the standard library only: the lab process reads it inside the lab's kernel, where every import
costs time. Times are nanoseconds, rates bits per second, sizes bytes, shares in [0, 1]; delays are one way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from ..codec import RARE, build
from .expectations import Expectation
from .flows import Flow
from .hosts import Host, Tunnel
from .network import WAYS, Capture, Impairment, Interface, Link, Neighbour, Route, Segment, Vrf
from .software import Program, Session, Software
from .tolerance import ProofSettings
from .traces import Trace

PLAN_FORMAT = 2

Phase = Literal["ramp", "hold", "drain"]
PHASES: tuple[Phase, ...] = ("ramp", "hold", "drain")


@dataclass(frozen=True, slots=True)
class Vm:
    """A node of kind vm: its image and virtual hardware."""

    image: str  # name of a built image, or the absolute path of the user's own
    memory_bytes: int
    vcpus: int = 1
    boot_deadline_ns: int = 120_000_000_000  # time limit from a VM's start to its agent's first answer
    cloud_init: dict[str, Any] = field(default_factory=dict)  # merged into the user-data of a disk image
    disk_bytes: int = field(default=0, metadata=RARE)  # size of the VM's disk; 0: that of the image
    netem: bool = False  # a bridge with two ports that carries a link's impairments


@dataclass(frozen=True, slots=True)
class Node:
    RETIRED: ClassVar[dict[str, str]] = {"sees": "mounts_read", "writes": "mounts_write"}

    name: str
    group: str  # the group's name; for a single node its own name
    kind: Literal["light", "vm"]
    hostname: str
    netns: str  # vnet-<lab>.<node>
    cgroup: str  # vnet/<lab>/<node>, below every controller's mount
    interfaces: tuple[Interface, ...]
    software: tuple[Software, ...]
    cpu_limit_mhz: float | None = None
    cpu_limit_cores: float | None = None
    cpu_reserve_mhz: float | None = None
    cpu_reserve_cores: float | None = None
    own_core: bool = False  # a core is reserved for the node, if the machine has one to spare
    memory_limit_bytes: int | None = None
    process_limit: int | None = None  # largest number of processes; each thread counts as one
    disk_limit_bytes: int | None = None  # limit on the files that the node's programs write
    vm: Vm | None = None  # set where kind is vm
    forward: bool = False  # the node forwards packets between its subnets: a router
    mounts_read: tuple[str, ...] = ()  # paths of the machine that programs may read beside public ones
    mounts_write: tuple[str, ...] = ()  # paths of the machine that programs may write
    mounts_copy: tuple[str, ...] = ()  # directories of the machine of which the node has a writable copy
    routes: tuple[Route, ...] = ()  # routes besides those to the node's own subnets
    image: str = ""  # archive of a container image; its files replace the machine's in a light node
    image_digest: str = ""  # SHA-256 of the image's configuration
    image_root: str = ""  # directory of the unpacked image for the lab process; set at launch
    host: str = ""  # one of the plan's hosts
    vrfs: tuple[Vrf, ...] = field(default=(), metadata=RARE)  # routing tables of their own of a router
    outside: tuple[str, ...] = field(
        default=(), metadata=RARE
    )  # ADDRESS:PORT outside the lab that it reaches
    neighbours: tuple[Neighbour, ...] = ()  # set from the start, since address lookups would lose messages

    @property
    def every_route(self) -> tuple[Route, ...]:
        """The node's routes of all its tables."""
        return (*self.routes, *(route for vrf in self.vrfs for route in vrf.routes))


@dataclass(frozen=True, slots=True)
class Event:
    """One timeline event, `at_ns` after the start of `phase`; `args` depend on the action."""

    phase: Phase
    at_ns: int
    action: Literal[
        "impair", "link-down", "link-up", "start", "stop", "kill", "restart", "freeze", "thaw", "disk-full",
        "disk-free", "schedule", "clock", "run", "limit",
    ]  # fmt: skip
    targets: tuple[str, ...]  # link names, or node names, already expanded
    args: dict[str, Any] = field(default_factory=dict)
    # impair: {"forward": Impairment|None, "reverse": Impairment|None} as plain dicts
    # start/stop/kill/restart/freeze/thaw: {"software": name or None for the whole node}; run: {"argv": [...]}
    # limit: {"cpu_limit_mhz": ...} or {"cpu_limit_cores": ...}
    # schedule, of one node: {"seed": ..., "most_ns": ...}, zeros end it; clock: {"offset_ns": ...}, 0 ends it
    # flap, partition and "down for" are expanded into link-down/link-up by the planner; freeze and disk-full
    # end with thaw and disk-free
    label: str = ""

    def impairments(self) -> Iterator[tuple[str, str, Impairment]]:
        """Yields link, direction and impairment of each change that an `impair` event makes; nothing for
        other events.
        """
        found = [(way, self.args.get(way)) for way in WAYS] if self.action == "impair" else []
        for way, given in found:
            if given:
                yield from ((link, way, build(Impairment, given)) for link in self.targets)


CLOCK_NS = 1_767_225_600_000_000_000  # 2026-01-01T00:00:00Z


@dataclass(frozen=True, slots=True)
class Step:
    """One step of building the lab: the exact text for `ip -batch` or `tc -batch`."""

    tool: Literal["ip", "tc"]
    netns: str  # namespace in which the tool runs
    text: str
    reason: str
    host: str = ""  # one of the plan's hosts


@dataclass(frozen=True, slots=True)
class Prediction:
    name: str
    scope: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class Note:
    """A note on the plan: nothing is wrong, but the file may not state its author's intention."""

    place: str
    text: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Plan:
    lab: str
    core_netns: str  # vnet-<lab>
    seed: int
    topology: str  # path as given, for messages only
    parameters: dict[str, Any]
    reference: str | None  # name of the reference to compare with, e.g. "vnet_2014"
    scenario: str | None  # scenario of that reference
    segments: tuple[Segment, ...]
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]  # impaired access links and all segment-to-segment links
    captures: tuple[Capture, ...]
    events: tuple[Event, ...]  # in order
    ramp_ns: int
    hold_ns: int
    drain_ns: int  # longest wait for messages in flight after the hold
    steps: tuple[Step, ...]
    predictions: tuple[Prediction, ...]
    on_node_failure: Literal["abort", "continue"] = "abort"
    libvirt: str = "qemu:///embed"  # URI of the libvirt driver for nodes of kind vm
    flows: tuple[Flow, ...] = ()
    receivers: dict[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # sets of endpoints, by the name of the set
    # A receiver that represents a group -> its endpoints; each message reaches one, chosen by the relay. A
    # group's name takes the place of an endpoint only in `receivers`.
    shared: dict[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    programs: tuple[Program, ...] = ()  # programs that the lab's software needs
    tables: dict[str, tuple[int, ...]] = field(default_factory=dict)  # tables of delays, as netem draws them
    traces: dict[str, Trace] = field(default_factory=dict)  # traces by the name in directions
    trace_late_ns: int = 10_000_000  # a trace's change that is later than this makes the run suspect
    proof: ProofSettings = field(default_factory=ProofSettings)
    hosts: tuple[Host, ...] = ()  # hosts that carry the lab together; none: the whole lab is on one machine
    tunnels: tuple[Tunnel, ...] = ()  # VXLANs that carry segments, and links of two nodes, between `hosts`
    expectations: tuple[Expectation, ...] = ()  # expectations that reports judge
    clock_ns: int = CLOCK_NS  # start of the lab's clock in virtual time, Unix ns
    format: int = PLAN_FORMAT

    def sessions(self) -> Iterator[tuple[Node, Software, Session]]:
        """Yields node, software and session of each software that has a session."""
        for node in self.nodes:
            yield from ((node, one, one.session) for one in node.software if one.session is not None)

    def homes(self) -> dict[str, str]:
        """Maps the endpoint of each session to the name of its node."""
        return {session.endpoint: node.name for node, _, session in self.sessions()}

    def impairments(self) -> Iterator[tuple[str, str, Impairment]]:
        """Yields link, direction and impairment of each direction of each link from the start, plain wires
        included, and of each `impair` event.
        """
        for link in self.links:
            yield from ((link.name, way, link.way(way).impairment) for way in WAYS)
        for event in self.events:
            yield from event.impairments()


NO_PLAN = Plan(  # plan of a run directory whose plan cannot be read
    lab="", core_netns="", seed=0, topology="", parameters={}, reference=None, scenario=None, segments=(),
    nodes=(), links=(), captures=(), events=(), ramp_ns=0, hold_ns=0, drain_ns=0, steps=(), predictions=(),
)  # fmt: skip
