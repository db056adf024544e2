"""Defines the keys of `expect`: conditions on metrics, deliveries, logs and events that a run has to meet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from contract.chosen import COLUMNS, SHORT, column

from ..language import condition, units
from ..language.scalars import Base, Span, fail, reader, text
from ..language.source import Document, Path


def _amount(value: Any) -> str | int | float | None:
    """Reads a bound as text; the metric determines its unit."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        raise units.UnitError("is no amount", 'write for example "500 ms", or 5 for a count')
    return value


Amount = Annotated[
    Any,
    reader(_amount),
    WithJsonSchema({"title": "amount", "anyOf": [{"type": "string"}, {"type": "number"}]}),
]


def _bound(meaning: str) -> Any:
    return Field(None, description=meaning)


def _series(value: Any) -> Any:
    """Reads `never: "error"` as `{text: "error"}`, and `eventually: true` as `{}`."""
    if isinstance(value, str):
        return {"text": value}
    return {} if value is True else value


def _or_short(schema: dict[str, Any]) -> None:
    schema["anyOf"] += [{"type": "string"}, {"type": "boolean"}]


def line(value: Any) -> Any:
    """Reads an expectation that is one line of text as the mapping it stands for; returns any other value
    unchanged.
    """
    if not isinstance(value, str):
        return value
    try:
        return condition.mapping(value)
    except units.UnitError as error:
        raise fail(error.rule, error.remedy) from None


class Series(Base):
    """A condition that holds always, eventually or never: bounds of a series, or a text in a log or in a
    session's step. A text alone means `{text: TEXT}`; for an event, `true` means `{}`.
    """

    above: Amount = _bound("More than this, in the unit of the metric; times and rates with theirs.")
    at_least: Amount = _bound("This or more.")
    below: Amount = _bound("Less than this.")
    at_most: Amount = _bound("This or less.")
    within: Span | None = Field(None, description="eventually: longest time until the condition is met.")
    text: str | None = Field(
        None,
        min_length=1,
        description=(
            "Regular expression for a log line, or for the text recorded with a session's step; case is "
            "ignored."
        ),
    )


Short = BeforeValidator(_series)


class Chosen(Base):
    """The keys that choose values of a metric; without these keys, the condition applies to all
    its values.
    """

    during: str | None = Field(
        None, description="Label of the timeline: from that event to its end, or to that of the hold."
    )
    after: str | None = Field(
        None, description="Label of the timeline: from that event to the end of the hold."
    )
    traffic_class: str | None = Field(None, alias="class", description="Traffic class.")
    qos: int | None = Field(None, ge=0, le=2, description="MQTT: short for `guarantee: QoS N`.")
    guarantee: str | None = Field(None, description="Delivery guarantee, as the report names it.")
    link: str | None = Field(None, description="Link.")
    direction: Literal["forward", "reverse", "both"] | None = Field(
        None, description="Direction of the link."
    )
    queue_class: str | None = Field(None, description="Band, class or tin of the link's queue.")
    nodes: Literal["broker", "server", "sender", "receiver", "client"] | None = Field(
        None, description="Nodes by their function."
    )
    group: str | None = Field(None, description="Group, or a single node.")
    role: str | None = Field(None, description="Role of the group's software.")
    machine: str | None = Field(None, description="Machine that carries the lab.")
    capture: str | None = Field(None, description="Capture point.")
    protocol: str | None = Field(None, description='Path of protocols in a capture: "eth:ip:tcp".')
    layer: str | None = Field(None, description="Layer of frames.")
    bin: str | None = Field(None, description='Packet lengths: "640-1279".')
    flow: str | None = Field(None, description="One bulk transfer.")
    stream: str | None = Field(None, description="Stream of trials after RFC 2544.")
    frame_bytes: int | None = Field(None, description="Frame size of those trials, bytes.")
    program: str | None = Field(
        None, description="NODE/SOFTWARE with `figures`; for fio with the part: `disk/test read`."
    )


class Condition(Base):
    """The subject of an expectation, and the condition that must hold for it."""

    metric: str | None = Field(
        None,
        description="Name in summary.json; also `throughput` of a `link` (of its busier direction, unless "
        "`direction` names one) and `recovery`, the time from the event of `after` to the end of the pause "
        "that it caused.",
    )
    delivered: Literal["at-most-once", "at-least-once", "exactly-once"] | None = Field(
        None,
        description=(
            "Delivery of all sent messages: none lost (at least once), none delivered twice (at most "
            "once), or both."
        ),
    )
    log: str | None = Field(None, description="Node or group whose programs' logs are searched.")
    event: str | None = Field(
        None,
        description="Label of the timeline, or a step of a session: connecting, tls, connected, subscribed, "
        "listening, retained, will, refused, disconnected, failed.",
    )
    above: Amount = _bound("More than this, in the unit of the metric; times and rates with theirs.")
    at_least: Amount = _bound("This or more.")
    below: Amount = _bound("Less than this.")
    at_most: Amount = _bound("This or less.")
    always: Annotated[Series | None, Short] = Field(
        None, description="The bounds hold in each interval of the time.", json_schema_extra=_or_short
    )
    eventually: Annotated[Series | None, Short] = Field(
        None,
        description="The bounds hold in an interval, the log has the text, or the event happens.",
        json_schema_extra=_or_short,
    )
    never: Annotated[Series | None, Short] = Field(
        None,
        description="The bounds hold in no interval, the log has the text nowhere, or the event does not "
        "happen.",
        json_schema_extra=_or_short,
    )
    every: Span = Field(
        text("1 s"), ge=10**6, description="always, eventually, never: the length of the intervals."
    )


class Expect(Chosen, Condition):
    """One expectation, with exactly one of `metric`, `delivered`, `log` and `event`. The keys from `class` on
    choose the values that must meet the condition; without them, all values must meet it.
    """


@dataclass(frozen=True)
class Stated:
    """Expectations with their places in the document that states them."""

    document: Document
    written: tuple[tuple[Path, Expect], ...]


Line = Annotated[Expect, BeforeValidator(line)]


def or_lines(schema: dict[str, Any]) -> None:
    """Changes the JSON Schema of a list of expectations so that it also accepts lines of text."""
    schema["items"] = {"anyOf": [schema["items"], {"type": "string"}]}


SUBJECTS = ("metric", "delivered", "log", "event")
BOUNDS = ("above", "at_least", "below", "at_most")
MODES = ("always", "eventually", "never")


def given(one: Chosen) -> Iterator[tuple[str, str, str]]:
    """Yields (key in the file, column, value) of each key that chooses values."""
    for key, name in (*COLUMNS.items(), (SHORT, SHORT)):
        value = getattr(one, name)
        if value is not None and (found := column(key, value)) is not None:
            yield key, *found
