"""Defines the input and the result of the analysis as frozen dataclasses that do not depend on a plan:
servers, streams, hops and bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Order = Literal["fifo", "priority", "guarantee", "credit", "any"]


@dataclass(frozen=True, slots=True)
class Server:
    """One direction of a link, or the transmitter that both directions share: first a delay, then a rate.

    order: the order in which waiting frames leave. fifo: in order of arrival; priority: by class, 0 first;
    guarantee: each class has its own rate; credit: priority, where classes with a guaranteed rate send only
    while they have credit (IEEE 802.1Qav); any: work-conserving, in any order.
    """

    name: str
    bps: float = 0.0
    delay_s: float = 0.0
    jitter_s: float = 0.0  # largest deviation from the delay in either direction, in seconds
    order: Order = "fifo"
    frame_bits: float = 0.0  # bits of the longest frame on the link
    guarantees_bps: tuple[float, ...] = ()
    # At most line_bits + line_bps * t leave in a time t; line_bps 0: no such curve is known.
    line_bps: float = 0.0
    line_bits: float = 0.0
    unknown_of: Mapping[int, str] = field(default_factory=dict)  # class -> the reason why it has no bound
    unknown: str = ""  # the reason if the server has no bound


@dataclass(frozen=True, slots=True)
class Hop:
    """A stream's message at one server: its class there, and its size in bits with headers. answers: a node
    sends it there as the answer to the message of the hop before, so it need not come at that link's rate.
    """

    server: str
    bits: float
    band: int = 0
    answers: bool = False


@dataclass(frozen=True, slots=True)
class Stream:
    """Messages along one path: at most `burst` at once and `per_s` per second.

    source: streams with the same source carry the same messages (senders that draw from one schedule,
    receivers that take turns, copies made after a shared link), which count once on a link that the streams
    share.
    """

    name: str
    source: str
    hops: tuple[Hop, ...]
    burst: float = 1.0
    per_s: float = 0.0
    unknown: str = ""  # the reason if no curve bounds the messages that the stream sends
    ends_s: float = 0.0  # longest time (seconds) that the nodes at the ends need


@dataclass(frozen=True, slots=True)
class Bound:
    """The least and worst delay of a stream's messages, from scheduled time to arrival of the last bit, in
    seconds.
    """

    stream: Stream
    least_s: float
    worst_s: float | None  # None: no bound, for the reason `why`
    why: str = ""
    parts: tuple[tuple[str, float], ...] = ()  # server -> its share of `worst_s`
