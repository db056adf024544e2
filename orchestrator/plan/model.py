"""The plan: frozen data that says everything a lab will be, before anything is made.

Standard library only: the lab process reads it inside the lab's kernel, where every import costs.
Times are nanoseconds, rates bits per second, sizes bytes, shares in [0, 1]; delays are one way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

PLAN_FORMAT = 1

Phase = Literal["ramp", "hold", "drain"]
PHASES: tuple[Phase, ...] = ("ramp", "hold", "drain")


@dataclass(frozen=True, slots=True)
class Impairment:
    """What one direction of a link does to packets; all zero means a plain wire."""

    delay_ns: int = 0
    jitter_ns: int = 0
    distribution: Literal["uniform", "normal", "pareto", "paretonormal"] = "uniform"
    delay_correlation: float = 0.0
    loss: float = 0.0  # uniform or correlated loss
    loss_correlation: float = 0.0
    gemodel: tuple[float, float, float, float] | None = None  # p, r, 1-h, 1-k as netem names them
    duplicate: float = 0.0
    duplicate_correlation: float = 0.0
    corrupt: float = 0.0
    corrupt_correlation: float = 0.0
    reorder: float = 0.0
    reorder_correlation: float = 0.0
    rate_bps: int = 0  # 0: unlimited
    limit_packets: int = 0  # 0 only where the whole impairment is absent; else always sized

    @property
    def present(self) -> bool:
        """Whether a qdisc is needed at all."""
        return self != Impairment(limit_packets=self.limit_packets)


@dataclass(frozen=True, slots=True)
class Segment:
    """One L2 broadcast domain: a bridge in the lab's core namespace."""

    name: str
    bridge: str  # interface name of the bridge, at most 15 characters
    subnet: str  # "10.10.0.0/16"
    mtu: int
    ipv6: bool = False


@dataclass(frozen=True, slots=True)
class Interface:
    """One NIC of a node: `name` inside the node, `port` its other end on the segment's bridge."""

    name: str  # eth0, eth1 ...
    port: str  # unique in the core namespace, at most 15 characters
    segment: str
    address: str  # "10.10.0.7"
    prefix: int
    mac: str
    mtu: int
    bridge: str | None = None  # where its port is, if not on the segment's own bridge
    nic: str | None = None  # a NIC of the machine, as the file asks for it: no veth or tap is made
    cable: str | None = (
        None  # the NIC cabled to it, as asked: `port` is its name then; without one `port` is ""
    )
    pci: str | None = None  # address of `nic`'s function, filled in by the lab process when it has the lease


@dataclass(frozen=True, slots=True)
class File:
    """A file written into the node before its software starts (already rendered)."""

    path: str  # a relative one is below the node's own directory, its programs' working directory
    content: str
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class Probe:
    """How a program shows that it is ready; exactly one of the subjects is set, or none (at once)."""

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


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a publisher sends.

    shared: a stream of `rate_per_s` ticks for `count` clients; tick k belongs to the client that a hash of
    (seed, k) picks, so each of them computes its own part alone. own: this client alone sends
    `rate_per_s`. In both, the rate is per second.
    Ticks before the client's connect time belong to nobody: the offered load grows with the ramp.
    """

    kind: Literal["shared", "own"]
    rate_per_s: float
    seed: int
    index: int = 0
    count: int = 1
    arrivals: Literal["periodic", "poisson"] = "periodic"


@dataclass(frozen=True, slots=True)
class Publish:
    topic: str
    qos: int
    payload: str  # name of the payload generator: "metering-xml"
    payload_bytes: int
    schedule: Schedule
    start_ns: int  # offset from the scenario's start; nothing is scheduled before
    stop_ns: int  # offset from the scenario's start; nothing is scheduled at or after
    inflight: int = 20  # window of unacknowledged QoS 1/2 messages
    queue: int = 1000  # messages that may wait while disconnected or while the window is full


@dataclass(frozen=True, slots=True)
class Subscribe:
    topic: str
    qos: int


@dataclass(frozen=True, slots=True)
class Mqtt:
    """One MQTT client, spoken by the agent itself."""

    broker: str  # address
    port: int
    version: Literal["3.1.1", "5"]
    client_id: str
    connect_ns: int  # offset from the scenario's start
    disconnect_ns: int  # offset: end of the drain at the latest
    keepalive_s: int
    clean_session: bool
    publish: Publish | None
    subscribe: tuple[Subscribe, ...]
    reconnect_ns: int  # wait before a new attempt; 0: never reconnect


@dataclass(frozen=True, slots=True)
class Frames:
    """Trials after RFC 2544 from an interface of this node to one of another; sizes count the FCS."""

    to: str  # node that receives
    interface: str  # of this node
    to_interface: str
    sizes: tuple[int, ...]
    tests: tuple[str, ...]  # throughput, latency, frame-loss, back-to-back
    line_rate_bps: int
    path_rate_bps: int  # lowest rate that the links between are asked to have; 0: none is
    trial_ns: int
    settle_ns: int  # longest wait for the last frames
    resolution: float
    tolerate: float  # loss that counts as none
    loss_step: float
    latency_trials: int
    latency_trial_ns: int
    burst_ns: int
    burst_trials: int
    bypass: bool = False  # the queue discipline of a NIC, whose own queue then holds the sender back


@dataclass(frozen=True, slots=True)
class Software:
    """A program on a node: exactly one of `process`, `mqtt` and `frames` is set."""

    name: str
    role: Literal["broker", "client", "utility"]
    process: Process | None = None
    mqtt: Mqtt | None = None
    frames: Frames | None = None


@dataclass(frozen=True, slots=True)
class Vm:
    """What makes a node of kind vm: its image and the machine that runs it."""

    image: str  # name of a built image, or the absolute path of the user's own
    memory_bytes: int
    vcpus: int = 1
    boot_deadline_ns: int = 120_000_000_000  # from its start to its agent's first answer
    cloud_init: dict[str, Any] = field(default_factory=dict)  # merged into the user-data of a disk image
    netem: bool = False  # a bridge with two ports that carries a link's impairments


@dataclass(frozen=True, slots=True)
class Node:
    name: str
    group: str  # the group's name; a single node's group is itself
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
    memory_limit_bytes: int | None = None
    vm: Vm | None = None  # set where kind is vm


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction of a link: the device whose root qdisc carries the impairment, and where it comes out.

    Where the qdisc is inside a bridge VM, a proof's frame is put in at `enter` and comes out at `leave`, taps
    of the core namespace; else both are None.
    """

    impairment: Impairment
    netns: str  # namespace of `device`
    device: str
    far_netns: str
    far_device: str  # packets sent out of `device` appear here
    enter: str | None = None
    leave: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """Joins two segments (a veth pair between bridges) or a node and a segment (the node's own veth pair).

    forward is a -> b as the file names them; for a node's access link a is the node.
    """

    name: str
    a: str
    b: str
    kind: Literal["segments", "access"]
    forward: Direction
    reverse: Direction
    nics: tuple[str, str] | None = None  # the wire is a pair of NICs cabled to each other, as asked: a's, b's


@dataclass(frozen=True, slots=True)
class Capture:
    name: str
    at: str  # as the file says: "segment lan", "link wan", "node broker"
    netns: str
    device: str
    snaplen: int
    filter: str
    keep: bool  # keep the pcap after reduction


@dataclass(frozen=True, slots=True)
class Event:
    """One timeline event; `phase` + `at_ns` from its start. args depend on the action."""

    phase: Phase
    at_ns: int
    action: Literal["impair", "link-down", "link-up", "start", "stop", "kill", "restart", "run"]
    targets: tuple[str, ...]  # link names, or node names, already expanded
    args: dict[str, Any] = field(default_factory=dict)
    # impair: {"forward": Impairment|None, "reverse": Impairment|None} as plain dicts
    # start/stop/kill/restart: {"software": name or None for the whole node}; run: {"argv": [...]}
    # flap, partition and "down for" are expanded into link-down/link-up by the planner
    label: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """A printable piece of work that a tool is given as it stands: text for `ip -batch` / `tc -batch`."""

    tool: Literal["ip", "tc"]
    netns: str  # namespace in which the tool runs
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Prediction:
    name: str
    scope: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class Plan:
    lab: str
    core_netns: str  # vnet-<lab>
    seed: int
    topology: str  # path as given, for messages only
    parameters: dict[str, Any]
    reference: str | None  # name of the reference to compare with, e.g. "vnet_2014"
    scenario: str | None  # which scenario of that reference, e.g. "mqtt_scenario_1"
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
    libvirt: str = "qemu:///embed"  # who runs the nodes of kind vm
    format: int = PLAN_FORMAT
