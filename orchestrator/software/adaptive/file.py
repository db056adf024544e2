"""Defines the keys of an adaptive sender or its receiver in a topology file."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ...language.scalars import Base, Share, Size, Span, text
from ..peers import Peer
from ..sending import Sending

HEADER_BYTES = 16  # of each message: a word, its flow, its number, its length
LARGEST_BYTES = 1400  # a message is one datagram that nothing fragments
LOST_AFTER_NS = 500_000_000  # as in programs/policy.py: a probe that has not returned is lost
LONGEST_SCHEDULE = 10_000  # messages of a flow, whose times a program gets as a list (docs/accounting.md)


class Messages(Sending):
    """Messages of one size without an answer."""

    size: Size = Field(description=f"Of each message, {HEADER_BYTES} to {LARGEST_BYTES} B.")


class Policy(Base):
    """When the sender chooses what. Probes are datagrams that the receiver returns."""

    probe_every: Span = Field(text("50 ms"), description="From one probe to the next.")
    window: Span = Field(text("2 s"), description="How far back probes count.")
    loss: Share = Field(text("5 %"), description="Of probes that do not return; above it: twice.")
    queue: Span = Field(
        text("100 ms"),
        description="What the last probes took longer than the fastest of the window; above it: once.",
    )
    stay: Span = Field(text("1 s"), description="Least time from one change to the next.")


class AdaptiveOptions(Peer):
    """One side: `listen` receives, `to` sends."""

    push: Messages | None = Field(None, description="to: the messages.")
    use: Literal["adaptive", "stream", "once", "twice"] = Field(
        "adaptive",
        description="to: how messages go. stream: over one TCP connection; once: a datagram each; twice: two "
        "datagrams each; adaptive: the sender measures the path and chooses one of these by `policy`.",
    )
    policy: Policy = Field(
        default_factory=lambda: Policy.model_validate({}), description="to: of `use: adaptive`."
    )


class Adaptive(Base):
    """One side of adaptive messages."""

    adaptive: AdaptiveOptions = Field(description="The side.")
