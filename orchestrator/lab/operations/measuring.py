"""Requests for measurements: counters, proofs of links, captures, trials with frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

from orchestrator.lab.operations.operation import Done, Operation


class Counters(TypedDict):
    cpu: list[str]  # files
    memory: str | None  # the node's memory file


class SampledNode(Counters):
    node: str
    ports: list[str]  # the node's ports in the core namespace
    own: list[str]  # devices of `netns` without an end in the core
    netns: str


# A qdisc below a link's root (handle: major number in the upper 16 bits), or one tin of it, counted from 1.
# marked_at: offset of the 32 bits that count marked packets in the qdisc's own statistics (TCA_STATS_APP).
SampledClass = TypedDict(
    "SampledClass", {"class": str, "handle": int, "tin": int | None, "marked_at": int | None}
)


class SampledLink(TypedDict):
    link: str
    direction: str
    netns: str
    device: str
    classes: list[SampledClass]


@dataclass(frozen=True)
class Sample(Operation[Done]):
    """Starts to write nodes.csv, links.csv and host.csv, and classes.csv if a link has classes."""

    op = "sample"
    interval_ns: int
    dir: str
    nodes: Sequence[SampledNode]
    links: Sequence[SampledLink]


class Counted(TypedDict):
    nodes: dict[str, dict[str, int]]  # by the counter's name in `nstat`, such as UdpRcvbufErrors


@dataclass(frozen=True)
class Stack(Operation[Counted]):
    """Returns the counters of each node's network stack since the stack was made; omits counters that are
    zero.
    """

    op = "stack"


class Probe(TypedDict):
    """Frames that are sent out of `device` and that `far_device` receives, the first after `start_ns`; `size`
    in bytes.
    """

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
    batch: NotRequired[int]  # frames sent together, at most 64; batches are `batch` intervals apart (1)
    counts_only: NotRequired[bool]  # the answer has no delays and arrivals


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
    """Sends raw frames through links, all probes in parallel.

    The frames have the Ethertype 0x88B5 and the destination 01:80:C2:00:00:0E, which bridges do not forward.
    """

    op = "prove"
    probes: Sequence[Probe]


class Captured(TypedDict):
    """Numbers of packets."""

    packets: int  # written
    received: int  # passed by the filter, dropped ones included
    dropped_kernel: int
    dropped_interface: int


@dataclass(frozen=True)
class Capture(Operation[Captured]):
    """Captures the frames of a device into a pcap file; answers when it has ended, by `capture-end` or with
    an error. Sends the event `capturing` once it has begun.
    """

    op = "capture"
    name: str
    netns: str
    device: str
    file: str
    snaplen: int  # bytes
    ring_bytes: int
    # instructions of classic BPF: code, offsets of the jumps if true and if false, operand; none: all frames
    filter: Sequence[tuple[int, int, int, int]]


@dataclass(frozen=True)
class EndCapture(Operation[Done]):
    """Ends a capture, which then answers."""

    op = "capture-end"
    target: int  # the id of its request


class Listening(TypedDict):
    armed: bool
    mac: str  # MAC address to which the sender sends


@dataclass(frozen=True)
class ListenForFrames(Operation[Listening]):
    """Begins to receive the frames of one trial of RFC 2544. Each request of a trial goes to one node.

    Times of trials are the node's CLOCK_REALTIME.
    """

    op = "frames"
    action: str = field(init=False, default="listen")
    trial: int  # 0 to 65535
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
    """Sends the frames of one trial, and answers when the last one is sent."""

    op = "frames"
    action: str = field(init=False, default="send")
    node: str
    iface: str
    to: str  # the MAC address in the answer to `listen`
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
    buckets: list[tuple[int, int, int]]  # lowest latency, first latency above it, and number of frames


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
    """Returns the result of the trial's frames, when `sent` of them have arrived or after `wait_ns`."""

    op = "frames"
    action: str = field(init=False, default="collect")
    node: str
    sent: int
    wait_ns: int
