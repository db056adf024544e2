"""Defines the keys of one side of a middleware exchange in a topology file."""

from __future__ import annotations

from pydantic import Field

from ...language.scalars import Base, Name, Port, Since, Size, Span, text
from ..sending import Sending

PORTS = 3  # from `listen` on: requests, pushes (the next one, where a library wants two), subscribers
LONGEST_SCHEDULE = 10_000  # messages of a flow, whose times a program gets as a list (docs/accounting.md)


class Greedy(Base):
    """One message after the other without a pause, for a while: each is due when the one before is gone."""

    start: Since = Field(description="A moment, or a duration from the start of the ramp.")
    duration: Span = Field(alias="for", description="How long.")
    traffic_class: Name | None = Field(
        None, alias="class", description="What belongs together in tables, by default GROUP.SOFTWARE.greedy."
    )


class Give(Sending):
    """Objects that nobody answers."""

    greedy: Greedy | None = Field(
        None, description="When `rate` has come to 0 /s: as much as goes, which is its throughput."
    )

    give_up: Span | None = Field(
        None,
        description="A message that is so late when its turn comes is dropped: what a queue of that length "
        "would do. By default it is sent, however late, to the end of the load.",
    )


class Ask(Give):
    """Short requests that the other side answers with the object."""


class MiddlewareOptions(Base):
    """One side: `listen` names the libraries and may publish, `to` asks, pushes or subscribes."""

    listen: Port | None = Field(
        None, description=f"First of {PORTS} TCP ports of the side that answers, takes and publishes."
    )
    use: str | None = Field(None, description="listen: the middleware, see docs/kinds/middleware.md.")
    serialiser: str | None = Field(None, description="listen: what makes bytes of the object.")
    publish: Give | None = Field(None, description="listen: objects for all that subscribe.")
    to: Name | None = Field(None, description="Node whose `middleware` listens.")
    request: Ask | None = Field(None, description="to: requests, of which the answer is the object.")
    push: Give | None = Field(None, description="to: objects that it sends there.")
    subscribe: bool = Field(False, description="to: it gets what is published there.")
    call_back: Port = Field(
        7900,
        description="subscribe: where it listens for middleware without publish-subscribe, which calls it.",
    )
    warm_up: Span = Field(
        text("3 s"),
        description="to: so long messages go and come, or come, before it is ready; none is counted.",
    )
    memory: Size = Field(text("128 MiB"), description="Heap of the Java machine, no less and no more.")
    ready_within: Span = Field(text("90 s"), description="Deadline for that, from its start.")


class Middleware(Base):
    """One side of an exchange."""

    middleware: MiddlewareOptions = Field(description="The side.")
