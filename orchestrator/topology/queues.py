"""Defines the keys of a direction's queue: which packets go first, are dropped, or share the rate."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from ..language.dscp import Dscp
from ..language.scalars import Base, Duration, Name, Port, Positive, Rate, Share, Size, text

LEAST_BANDS, MOST_BANDS = 2, 16  # of the kernel's prio


def _several(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


Pcp = Annotated[int, Field(ge=0, le=7)]


def _or_one(schema: dict[str, Any]) -> None:
    """Changes the schema for editors, so that a single value may stand in place of a list."""
    items = {key: schema.pop(key) for key in ("type", "items") if key in schema}
    schema["anyOf"] = [items, items.get("items", {})]


Dscps = Annotated[list[Dscp], BeforeValidator(_several), Field(json_schema_extra=_or_one)]
Pcps = Annotated[list[Pcp], BeforeValidator(_several), Field(json_schema_extra=_or_one)]
Ports = Annotated[list[Port], BeforeValidator(_several), Field(json_schema_extra=_or_one)]


class Band(Base):
    """Packets that queue together. They belong to it by any of what it names; the one band that names nothing
    takes the rest.
    """

    pcp: Pcps = Field(default_factory=list, description="Priority code points of 802.1Q tags, 0 to 7.")
    dscp: Dscps = Field(default_factory=list, description="DSCP of IPv4 and IPv6: EF, AF41, CS6 or a number.")
    port: Ports = Field(
        default_factory=list, description="TCP or UDP port, on either side; IPv4 without fragments."
    )
    limit: Positive = Field(1000, le=2**31 - 1, description="Its own queue, packets.")


class RateClass(Band):
    """A band with rates of its own."""

    rate: Rate = Field(description="Guaranteed, whatever the others send.")
    ceil: Rate | None = Field(
        None, description="Ceiling, of what others leave; without one it may take the whole rate."
    )


class Red(Base):
    """Random early detection (Floyd and Jacobson 1993)."""

    min: Size = Field(description="Mean queue from which packets are dropped or marked.")
    max: Size = Field(description="Mean queue at which the probability is reached; beyond, every packet.")
    probability: Share = Field(text("2 %"), description="Of dropping or marking at `max`.")
    limit: Size | None = Field(None, description="The whole queue (4 times `max`).")
    ecn: bool = Field(False, description="Mark packets that can carry ECN (RFC 3168) instead of dropping.")


class FqCodel(Base):
    """A queue for each flow, kept short by CoDel (RFC 8290)."""

    limit: Positive = Field(10240, le=2**31 - 1, description="All queues together, packets.")
    flows: int = Field(1024, ge=1, le=65536, description="Queues; flows are told apart by their hash.")
    target: Duration = Field(text("5 ms"), description="Standing delay that is accepted.")
    interval: Duration = Field(text("100 ms"), description="How long it may be exceeded.")
    ecn: bool = Field(True, description="Mark packets that can carry ECN instead of dropping.")


class Cake(Base):
    """Shaper, fair queueing and priorities in one (tc-cake)."""

    isolation: Literal[
        "flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost", "triple-isolate"
    ] = Field("triple-isolate", description="What gets a fair share.")
    diffserv: Literal["besteffort", "diffserv3", "diffserv4", "diffserv8"] = Field(
        "diffserv3", description="Tins, which packets get by their DSCP."
    )
    rtt: Duration = Field(text("100 ms"), description="Round trip that it is tuned for.")


class Fifo(Base):
    """First in, first out, behind netem where there is a delay: a changed rate acts on what waits."""

    limit: Positive = Field(1000, le=2**31 - 1, description="Its length, packets.")


class Queue(Base):
    """The queue of packets that the `rate` cannot send at once: one kind. By default first in, first out."""

    prio: dict[Name, Band] | None = Field(
        None, description="Strict priority: bands in their order, the first is always served first."
    )
    htb: dict[Name, RateClass] | None = Field(
        None, description="Classes with guaranteed and ceiling rates; they borrow what others leave."
    )
    red: Red | None = Field(None, description="Random early detection, dropping or marking (ECN).")
    fq_codel: FqCodel | None = Field(None, description="Fair queueing with short queues.")
    cake: Cake | None = Field(None, description="CAKE; `{}` for its defaults.")
    fifo: Fifo | None = Field(
        None,
        description="First in, first out, behind the delay and not inside it; a changed rate acts on the "
        "packets that wait. What a `trace` with rates has by itself.",
    )

    @property
    def kinds(self) -> list[str]:
        """The kinds of queue that the file states; the checks require exactly one."""
        return [name for name in type(self).model_fields if getattr(self, name) is not None]

    @property
    def bands(self) -> dict[str, Band]:
        """The bands of `prio` or the classes of `htb` by name, in their order; empty for other kinds."""
        return {**(self.prio or {}), **(self.htb or {})}
