"""Defines the keys of an adaptive sender or its receiver in a topology file."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ...language.scalars import Base, Share, Size, Span, text
from ..peers import Peer
from ..sending import Sending

HEADER_BYTES = 16  # bytes of each message's header: a word, its flow, number and length
LARGEST_BYTES = 1400  # bytes; a message is one datagram, which must not be fragmented
# a probe that has not returned in this time counts as lost, as in programs/policy.py
LOST_AFTER_NS = 500_000_000
# Largest number of messages of a flow, because a program gets the list of their times (docs/accounting.md).
LONGEST_SCHEDULE = 10_000


class Messages(Sending):
    """Messages of one size without an answer."""

    size: Size = Field(description=f"Size of each message, {HEADER_BYTES} to {LARGEST_BYTES} B.")


class Policy(Base):
    """Rules by which the sender chooses the transport. Probes are datagrams that the receiver returns."""

    probe_every: Span = Field(text("50 ms"), description="Time from one probe to the next.")
    window: Span = Field(text("2 s"), description="Age up to which probes count.")
    loss: Share = Field(text("5 %"), description="Share of lost probes above which the sender uses `twice`.")
    queue: Span = Field(
        text("100 ms"),
        description=(
            "Excess of the last probes' time over the fastest of the window, above which the sender uses "
            "`once`."
        ),
    )
    stay: Span = Field(text("1 s"), description="Least time from one change to the next.")


class AdaptiveOptions(Peer):
    """Keys of a receiver (`listen`) or of a sender (`to`)."""

    push: Messages | None = Field(None, description="to: the messages.")
    use: Literal["adaptive", "stream", "once", "twice"] = Field(
        "adaptive",
        description=(
            "to: transport of messages. stream: over one TCP connection; once: a datagram each; twice: two "
            "datagrams each; adaptive: the sender measures the path and chooses one of these by `policy`."
        ),
    )
    policy: Policy = Field(
        default_factory=lambda: Policy.model_validate({}), description="to: policy of `use: adaptive`."
    )


class Adaptive(Base):
    """The software key `adaptive`: a receiver or a sender."""

    adaptive: AdaptiveOptions = Field(description="The side.")
