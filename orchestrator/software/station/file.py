"""Defines the keys of a station in a topology file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ...language.scalars import Base, Name, Positive, Rate

Algorithm = Literal["one", "strict", "promoting", "alternating"]
Policy = Literal["direct", "when-empty", "after-high"]
Code = Annotated[int, Field(ge=0, le=7)]


class StationReceive(Base):
    """Arriving frames wait until the station takes them; taking a frame takes the time of its length at
    `rate`.
    """

    algorithm: Algorithm = Field(
        "strict",
        description=(
            "one: a single queue; strict: always the highest queue that is not empty; promoting: as strict, "
            "and after `promote_after` frames the first frame of each queue moves up by one; alternating: "
            "after each frame of the highest queue one of the highest queue that is not empty, and no other."
        ),
    )
    rate: Rate = Field(description="Rate at which the station takes frames.")
    queues: list[list[Code]] = Field(
        default_factory=lambda: [[6, 7]],
        min_length=1,
        description="PCP of each queue, the highest first; all other frames are in one more, the lowest.",
    )
    promote_after: Positive = Field(8, description="promoting: frames between two promotions.")
    limit: Positive = Field(1000, description="Most frames of each queue.")


class StationTransmit(Base):
    """Frames of the node wait in a software queue and a hardware queue; the hardware queue sends
    at `rate`.
    """

    policy: Policy = Field(
        "when-empty",
        description=(
            "direct: all frames go straight into the hardware queue; when-empty: only those of `high` do, "
            "and another one follows whenever the hardware queue is empty; after-high: another one follows "
            "only when one of `high` has been placed there."
        ),
    )
    rate: Rate = Field(description="Rate at which the hardware queue sends; at most that of the link.")
    high: list[Code] = Field(
        default_factory=lambda: [6, 7], min_length=1, description="PCP of the frames of high priority."
    )
    limit: Positive = Field(100, description="Most frames of each of the two queues.")


class StationOptions(Base):
    """The queues of an end node's protocol stack, at its end of one link; ARP frames are in the highest
    queue.
    """

    link: Name = Field(description="Link of this node whose frames pass the station.")
    receive: StationReceive | None = Field(
        None, description="Queues of received frames; by default none wait."
    )
    transmit: StationTransmit | None = Field(
        None, description="Queues of sent frames; by default the link's alone."
    )


class Station(Base):
    """The software key `station`."""

    station: StationOptions = Field(description="The station.")
