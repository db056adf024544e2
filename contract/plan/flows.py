"""Defines flows, their schedules and delivery guarantees, which the plan sets once; later stages read them
and need no protocol. Imports the standard library only: the lab process reads it inside the lab's kernel,
where every import costs time. Times are nanoseconds from the scenario's start, sizes bytes of payload.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from ..codec import RARE

Pattern = Literal["publish", "request", "push", "stream"]
Spread = Literal["all", "round-robin"]


@dataclass(frozen=True, slots=True)
class Rate:
    """From `from_ns` on, `per_s` ticks a second; 0: silence."""

    from_ns: int
    per_s: float


@dataclass(frozen=True, slots=True)
class Schedule:
    """The schedule of a sender, open loop: by the clock, whether or not the last message has arrived.

    shared: one stream of ticks for `count` senders; tick k belongs to the sender that a hash of (seed, k)
    picks, so each of them computes its own part alone. own: this sender alone has all ticks.
    Ticks before `Flow.start_ns` belong to nobody: the offered load grows with the ramp.
    """

    kind: Literal["shared", "own"]
    rates: tuple[Rate, ...]  # in order of time, the first from 0
    seed: int
    index: int = 0
    count: int = 1
    # periodic: evenly spaced, senders of their own out of step; together: all senders at the same times
    arrivals: Literal["periodic", "poisson", "together"] = "periodic"
    burst: int = 1  # messages at every tick


@dataclass(frozen=True, slots=True)
class Sizes:
    """The lengths of a flow's payloads in bytes, from `least` to `most`, each drawn from `seed` and the
    message's number: all equally likely, or exponential from `least` on and cut at `most`.
    """

    least: int
    most: int
    seed: int
    scale: float | None = None  # scale of the exponential distribution before the cut; None: equally likely


@dataclass(frozen=True, slots=True)
class Payload:
    """The content of a message: `kind` names a generator of the agent, `bytes` is the exact length, or with
    `sizes` the mean.
    """

    kind: str
    bytes: int
    sizes: Sizes | None = field(default=None, metadata=RARE)

    @property
    def bounds(self) -> tuple[int, int]:
        """Returns the shortest and the longest length in bytes."""
        return (self.bytes, self.bytes) if self.sizes is None else (self.sizes.least, self.sizes.most)


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The delivery guarantee of a protocol for each message and receiver: its name in the protocol, and the
    rule.
    """

    name: str  # name in tables, in the protocol's own words
    rule: str  # such as "at least once, so no message is lost"
    lossless: bool = False
    single: bool = False  # no message is delivered twice
    ordered: bool = False  # no message overtakes another of its flow
    while_session: bool = False  # valid only while the receiver's session, or the connection, lasts


@dataclass(frozen=True, slots=True)
class Delivery:
    """A set of receivers (a key of `Plan.receivers`) with the delivery guarantee of their messages."""

    RETIRED: ClassVar[dict[str, str]] = {"promise": "guarantee"}

    receivers: str
    guarantee: Guarantee


@dataclass(frozen=True, slots=True)
class Flow:
    """Messages of one sender. Records and payloads name it by its number: its place in `Plan.flows`."""

    name: str  # unique: "client7.meter"
    traffic_class: str  # groups flows in tables: "client.meter", or the file's `class`
    pattern: Pattern
    sender: str  # name of a session's endpoint
    deliveries: tuple[Delivery, ...]
    payload: Payload
    schedule: Schedule | None  # None: greedy, as fast as the transport takes it
    start_ns: int  # no message is scheduled before this time
    stop_ns: int  # all messages are scheduled before this time
    deadline_ns: int = 0  # deadline of each message, for a request of its reply; 0: none
    reply: Payload | None = None  # payload of a request's reply
    # round-robin: a message goes to one receiver of its set, number seq modulo their count
    spread: Spread = "all"
    topic: str = ""  # destination of the messages: a topic, routing key or subject; "" if there is none
