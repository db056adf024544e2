"""Defines the keys of an impairment, which is what one direction of a link does to packets."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from ..language.scalars import (
    Base,
    Duration,
    Positive,
    Rate,
    Share,
    Size,
    fail,
    text,
)
from .delays import OwnDelays, OwnTable
from .queues import Queue
from .traces import OwnTrace


class GilbertElliott(Base):
    """Bursty loss: a good and a bad state, a chance to change between them at every packet."""

    good_to_bad: Share = Field(description="Chance to enter the bad state (netem's p).")
    bad_to_good: Share = Field(description="Chance to leave it (netem's r).")
    loss_in_bad: Share = Field(text("100 %"), description="Loss in the bad state (netem's 1-h).")
    loss_in_good: Share = Field(text("0 %"), description="Loss in the good state (netem's 1-k).")


SHAPES = ("uniform", "normal", "pareto", "paretonormal")
_SHAPES = WithJsonSchema({"type": "string", "enum": list(SHAPES)})


def _distribution(value: Any) -> str:
    if isinstance(value, OwnTable) or (isinstance(value, str) and value in SHAPES):
        return value
    raise fail("is not one of the values allowed here", f"write {', '.join(SHAPES)}, or `delays: FILE`")


def _slot_delays(value: Any) -> OwnDelays | None:
    """Accepts only delays that `delays.expand` has read from a file, or None."""
    if value is None or isinstance(value, OwnDelays):
        return value
    raise fail("is no file of delays", "write its name, for example slots.csv")


class Slot(Base):
    """Packets are sent together in time slots, and none between the slots, as by radio schedulers and
    power-line cycles.
    """

    min: Duration | None = Field(None, description="Shortest time from one slot to the next.")
    max: Duration | None = Field(
        None, description="Longest time from one slot to the next (`min`); each is drawn between the two."
    )
    delays: Annotated[Any, BeforeValidator(_slot_delays, json_schema_input_type=str | None)] = Field(
        None,
        description=(
            "In place of min and max: a file beside this one from which these times are drawn, in the form "
            "of a direction's `delays`."
        ),
    )
    packets: Positive | None = Field(None, le=2**31 - 1, description="Most packets of a slot.")
    bytes: Size | None = Field(None, le=2**31 - 1, description="Most bytes of a slot.")


SHORTEST_BIN_NS, LONGEST_BIN_NS = 10**6, 10 * 10**9


def _bin(value: int) -> int:
    if not SHORTEST_BIN_NS <= value <= LONGEST_BIN_NS or value % SHORTEST_BIN_NS:
        raise fail("is not 1 ms to 10 s in whole milliseconds", 'write for example "100 ms"')
    return value


class TraceFile(Base):
    """A file with the values of the direction over time, and how it is played."""

    file: str = Field(min_length=1, description="CSV or packet-delivery trace, relative to this file.")
    repeat: bool = Field(
        False,
        description=(
            "Begin again at the end; the last line of a CSV then only has the end's time. Otherwise the "
            "last state stays."
        ),
    )
    bin: Annotated[Duration, AfterValidator(_bin)] = Field(
        text("100 ms"),
        description=(
            "For a packet-delivery trace: interval over which its opportunities of 1,500 bytes are counted; "
            "for measured round trips: interval whose packets are put together."
        ),
    )
    column: Literal["rtt", "uplink", "downlink"] | None = Field(
        None,
        description=(
            "For measured round trips: the way that this direction is; rtt takes half of the round trip "
            "(rtt)."
        ),
    )


def _trace(value: Any) -> OwnTrace | None:
    """Accepts only a trace that `tracing.expand` has read from a file, or None; the
    timeline takes no trace.
    """
    if value is None or isinstance(value, OwnTrace):
        return value
    raise fail("belongs to a link and begins with the run", "write it at the link, without `impair`")


class Impairment(Base):
    """The impairment of one direction of a link. Delays are one way."""

    profile: str | None = Field(
        None,
        description=(
            "A named impairment (`vnet profiles` lists them, with the source of every figure), or "
            "`profiles/NAME.yaml` beside this file; `both` gives each direction its own. Keys beside it "
            "replace its values."
        ),
    )
    delay: Duration = Field(text("0 s"), description="One way delay.")
    jitter: Duration = Field(
        text("0 s"),
        description="Spread of the delay. Without a `rate` netem lets packets overtake one another.",
    )
    delays: str | None = Field(
        None,
        description="In place of delay, jitter and distribution: a CSV file beside this one, of samples (a "
        "column `delay_ms`) or quantiles (`quantile,delay_ms`).",
    )
    distribution: Annotated[Any, BeforeValidator(_distribution), _SHAPES] = Field(
        "uniform",
        description=(
            "Distribution of the jitter: uniform is delay +- jitter; for the others jitter is the scale."
        ),
    )
    delay_correlation: Share = Field(
        text("0 %"), description="Correlation of a packet's delay with that of the packet before."
    )
    loss: Share = Field(text("0 %"), description="Packets lost, independent unless correlated.")
    loss_correlation: Share = Field(
        text("0 %"), description="Correlation of a packet's loss with that of the packet before."
    )
    gilbert_elliott: GilbertElliott | None = Field(None, description="Bursty loss instead of `loss`.")
    duplicate: Share = Field(text("0 %"), description="Packets sent twice.")
    duplicate_correlation: Share = Field(
        text("0 %"), description="Correlation of successive packets, as for loss."
    )
    corrupt: Share = Field(text("0 %"), description="Packets with one bit flipped.")
    corrupt_correlation: Share = Field(
        text("0 %"), description="Correlation of successive packets, as for loss."
    )
    reorder: Share = Field(
        text("0 %"), description="Packets sent at once, past the delayed ones; needs a delay."
    )
    reorder_correlation: Share = Field(
        text("0 %"), description="Correlation of successive packets, as for loss."
    )
    rate: Rate | None = Field(
        None, description="Bandwidth, Ethernet frames; without it the direction is not shaped."
    )
    limit: Positive | None = Field(
        None, le=2**32 - 1, description="Queue limit in packets; by default sized from rate x delay."
    )
    backpressure: bool = Field(
        False,
        description=(
            "Packets that wait for `rate` still count for the sending socket, as in the sender's own "
            "network card, so its programs wait. Not possible beside settings that only netem has."
        ),
    )
    slot: Slot | None = Field(
        None, description="Packets leave in slots only, after their delay (netem's slot)."
    )
    trace: Annotated[Any, BeforeValidator(_trace, json_schema_input_type=TraceFile | str | None)] = Field(
        None,
        description=(
            "A file beside this one with rate, delay and loss over time: a CSV (columns `time_s` and any "
            "of `rate_mbps`, `delay_ms`, `loss_percent`) or a packet-delivery trace. `{file: FILE, repeat: "
            "true, bin: 100 ms}`, or the file alone."
        ),
    )
    queue: Queue | None = Field(
        None, description="Queue of packets that `rate` cannot send at once; by default first in, first out."
    )
