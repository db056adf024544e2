"""Defines the keys of one side of a middleware exchange in a topology file."""

from __future__ import annotations

from pydantic import Field

from ...language.scalars import Base, Name, Port, Since, Size, Span, text
from ..sending import Sending

# number of ports from `listen` on: for requests, for pushes (and one more, if a library needs two), for
# subscribers
PORTS = 3
# Largest number of messages of a flow, because a program gets the list of their times (docs/accounting.md).
LONGEST_SCHEDULE = 10_000


class Greedy(Base):
    """Messages without a pause for a while: each is due when the one before has been sent."""

    start: Since = Field(description="A moment, or a duration from the start of the ramp.")
    duration: Span = Field(alias="for", description="How long.")
    traffic_class: Name | None = Field(
        None,
        alias="class",
        description=(
            "Traffic class: flows of one class are grouped in tables; by default GROUP.SOFTWARE.greedy."
        ),
    )


class Give(Sending):
    """Objects that are sent and not answered."""

    greedy: Greedy | None = Field(
        None,
        description="After `rate` has reached 0 /s: messages without a pause, to measure the throughput.",
    )

    give_up: Span | None = Field(
        None,
        description=(
            "Lateness at which a message is dropped, as by a queue of that length. By default late "
            "messages are still sent until the end of the load."
        ),
    )


class Ask(Give):
    """Short requests that the other side answers with the object."""


class MiddlewareOptions(Base):
    """Keys of one side: the one that chooses the libraries (`listen`), or one that requests, pushes or
    subscribes (`to`).
    """

    listen: Port | None = Field(
        None, description=f"First of {PORTS} successive TCP ports of the side that listens."
    )
    use: str | None = Field(None, description="listen: the middleware, see docs/kinds/middleware.md.")
    serialiser: str | None = Field(None, description="listen: library that serialises the object.")
    publish: Give | None = Field(None, description="listen: objects for all that subscribe.")
    to: Name | None = Field(None, description="Node whose `middleware` listens.")
    request: Ask | None = Field(
        None, description="to: requests, which the other side answers with the object."
    )
    push: Give | None = Field(None, description="to: objects that this side sends to the other.")
    subscribe: bool = Field(False, description="to: receive the objects that the other side publishes.")
    call_back: Port = Field(
        7900,
        description="subscribe: port at which middleware without publish-subscribe calls back.",
    )
    warm_up: Span = Field(
        text("3 s"),
        description=(
            "to: duration of the messages that are exchanged before the side is ready; none of them is "
            "counted."
        ),
    )
    memory: Size = Field(text("128 MiB"), description="Heap of the Java machine, as a fixed size.")
    ready_within: Span = Field(text("90 s"), description="Deadline until the side is ready, from its start.")


class Middleware(Base):
    """The software key `middleware`: one side of an exchange."""

    middleware: MiddlewareOptions = Field(description="The side.")
