"""Defines the keys of an RFC 2544 test in a topology file: frames from this node to another."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from ...language.scalars import Base, Name, Positive, Rate, Share, Span, fail, text

SIZES = (64, 128, 256, 512, 1024, 1280, 1518)  # RFC 2544, section 9.1: Ethernet
SMALLEST, LARGEST = 64, 9018
Test = Literal["throughput", "latency", "frame-loss", "back-to-back"]
TESTS: tuple[Test, ...] = ("throughput", "latency", "frame-loss", "back-to-back")


def _sizes(value: Any) -> Any:
    if value == "all":
        return list(SIZES)
    return [_size(one) for one in (value if isinstance(value, list) else [value])]


def _size(value: Any) -> int:
    number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
    if isinstance(number, bool) or not isinstance(number, int) or not SMALLEST <= number <= LARGEST:
        rule = f"a frame has from {SMALLEST} to {LARGEST} bytes, its check sequence counted"
        raise fail(rule, f"write `all` for {', '.join(map(str, SIZES))}, a size, or a list of sizes")
    return number


_NUMBER = {"type": "integer", "minimum": SMALLEST, "maximum": LARGEST}
_SIZES_SCHEMA = WithJsonSchema(
    {
        "title": "frame sizes",
        "anyOf": [{"const": "all"}, _NUMBER, {"type": "array", "items": _NUMBER, "minItems": 1}],
    }
)
Sizes = Annotated[list[int], Field(min_length=1), BeforeValidator(_sizes), _SIZES_SCHEMA]


class FramesOptions(Base):
    """A generator of test frames on this node, a receiver on another, and the trials between them."""

    to: Name = Field(description="Node that receives; it needs no software of its own.")
    sizes: Sizes = Field(
        text("all"),
        description=f"Frame sizes with FCS: `all` ({', '.join(map(str, SIZES))}), a size, or a list.",
    )
    tests: list[Test] = Field(
        list(TESTS), min_length=1, description="The tests to run; latency needs throughput."
    )
    line_rate: Rate = Field(
        text("1 Gbit/s"), description="Rate of the wire, from which the theoretical maximum is computed."
    )
    trial: Span = Field(
        text("1 s"), description="Length of a trial; RFC 2544 requires 60 s for the final ones."
    )
    settle: Span = Field(
        text("2 s"), description="Longest wait for the last frames of a trial; it ends when none is missing."
    )
    resolution: Share = Field(text("1 %"), description="Precision of the throughput.")
    tolerate: Share = Field(
        text("0 %"), description="Loss that still counts as none; RFC 2544 allows nothing."
    )
    loss_step: Share = Field(
        text("10 %"), description="Step of the offered load in the frame loss rate test."
    )
    latency_trials: Positive = Field(
        3, le=1000, description="Number of latency trials; RFC 2544 requires 20."
    )
    latency_trial: Span | None = Field(
        None, description="Length of a latency trial, by default `trial`; RFC 2544 requires 120 s."
    )
    burst: Span = Field(text("2 s"), description="Longest burst tried, as time at the highest rate.")
    burst_trials: Positive = Field(
        3, le=1000, description="Searches for the longest burst; RFC 2544 requires 50."
    )


class Frames(Base):
    """A test of the path to another node after RFC 2544: throughput, latency, loss, back-to-back frames."""

    frames: FramesOptions = Field(description="The test.")
