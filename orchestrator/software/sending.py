"""Defines and checks the keys that all senders share (rate, arrivals, burst, deadline, class, settle), and
makes a flow from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from contract.plan import Delivery, Flow, Pattern, Payload, Rate, Schedule, Spread

from ..language.scalars import (
    Base,
    Duration,
    Frequency,
    Moment,
    Name,
    Positive,
    Since,
    reader,
    text,
)
from ..language.units import FREQUENCY, real, text_ns
from .checking import Checks, Here
from .scene import LOAD_END, Placed, Scene

_RATE_SCHEMA = {"type": "string", "title": "frequency", "pattern": r"^\s*[0-9.]+\s*(/s|/min|/h)\s*$"}


class RateStep(Base):
    """A sending rate and the moment from which it applies."""

    since: Since = Field(
        alias="from", description="From when on: a moment, or a duration from the start of the ramp."
    )
    rate: Frequency = Field(description="Messages a second from then on; 0 /s: silence.")


def _steps(value: Any) -> Any:
    """Reads one rate, or a list of rates with their beginnings: {from: 0 s, rate: 20 /s} or {from: 0 s, 20
    /s}.
    """
    if not isinstance(value, list):
        return [RateStep.model_construct(since=Moment("ramp", 0), rate=real(FREQUENCY, value))]
    return [_named(step) for step in value]


def _named(step: Any) -> Any:
    if not isinstance(step, dict) or "rate" in step:
        return step
    bare = [key for key, value in step.items() if key != "from" and value is None]
    return {"from": step.get("from"), "rate": bare[0]} if len(bare) == 1 and len(step) == 2 else step


_STEP_SCHEMA = {
    "type": "object",
    "properties": {"from": {"type": "string"}, "rate": _RATE_SCHEMA},
    "required": ["from"],
}
_RATES_SCHEMA = {"anyOf": [_RATE_SCHEMA, {"type": "array", "items": _STEP_SCHEMA, "minItems": 1}]}
Rates = Annotated[
    list[RateStep], Field(min_length=1), reader(_steps), WithJsonSchema({"title": "rates", **_RATES_SCHEMA})
]


class Sending(Base):
    """The messages in an open loop: they are due by the clock, whether or not the last message has
    arrived.
    """

    rate: Rates = Field(
        description="Messages a second; see `rate_of`. A list of `{from: MOMENT, rate: RATE}` changes it in "
        "time."
    )
    rate_of: Literal["group", "client"] = Field(
        "group",
        description=(
            "group: `rate` is the whole group's, each message from a client drawn by the seed; client: "
            "`rate` is that of each client."
        ),
    )
    arrivals: Literal["periodic", "poisson", "together"] = Field(
        "periodic",
        description="Spacing of the scheduled times. together: periodic, and all senders at the same times.",
    )
    burst: Positive = Field(1, le=100_000, description="Messages at every scheduled time.")
    deadline: Duration | None = Field(
        None,
        description="Deadline of each message (for a request: of its reply); late and lost messages miss it.",
    )
    traffic_class: Name | None = Field(
        None,
        alias="class",
        description="Traffic class: flows of one class are grouped in tables; by default GROUP.SOFTWARE.",
    )
    settle: Duration = Field(
        text("1 s"),
        description=(
            "Time from the connect times of the sender and its receivers to the first scheduled message."
        ),
    )


def check_sending(
    report: Checks, here: Here, wanted: Sending, path: tuple[str | int, ...], silent: str
) -> None:
    """Reports a rate that is always zero, a deadline of 0, `together` with a rate of the whole group, and
    steps of the rate after the load or out of order. `silent` is the remedy for a rate that is always zero.
    """
    if all(step.rate <= 0 for step in wanted.rate):
        report.add((*path, "rate"), None, "must be more than zero", silent)
    if wanted.deadline == 0:
        report.add((*path, "deadline"), "0 s", "is not above zero", 'write for example "100 ms"')
    if wanted.arrivals == "together" and wanted.rate_of == "group" and len(here.nodes) > 1:
        rule = "all senders at the same times have a rate of their own each"
        report.add((*path, "arrivals"), "together", rule, "write `rate_of: client`, or other arrivals")
    check_order(report, (*path, "rate"), [step.since for step in wanted.rate])


def check_order(report: Checks, path: tuple[str | int, ...], moments: Sequence[Moment]) -> None:
    """Reports times that are after the load or out of order; each is the key `from` of a step
    below `path`.
    """
    before = -1
    for index, since in enumerate(moments):
        where = (*path, index, "from")
        at, over = report.since_start_ns(since), report.since_start_ns(LOAD_END)
        if at is None or over is None:
            return
        if at > over or since.phase == "drain":
            rule = f"is after the end of the load, which ends with the hold, {text_ns(over)} after the start"
            report.add(where, f"{text_ns(at)} after the start", rule, "begin earlier, or lengthen the hold")
        elif at <= before:
            rule = f"goes back in time: the step before begins {text_ns(before)} after the start"
            report.add(where, f"{text_ns(at)} after the start", rule, "write the steps in the order of time")
        before = max(before, at)


def make_flow(
    scene: Scene,
    placed: Placed,
    wanted: Sending,
    payload: Payload,
    *,
    pattern: Pattern,
    deliveries: tuple[Delivery, ...],
    heard_ns: int = 0,
    name: str = "",
    topic: str = "",
    reply: Payload | None = None,
    spread: Spread = "all",
) -> Flow:
    """Returns the flow of the messages that `placed` sends. It begins `wanted.settle` after the sender and
    its receivers (`heard_ns`) have connected, and ends with the load. `name` tells several flows of one
    software apart.
    """
    group = scene.group_of[placed.node]
    parts = [placed.name, name] if name else [placed.name]
    return Flow(
        name=".".join((placed.node, *parts)),
        traffic_class=wanted.traffic_class or ".".join((group, placed.label or placed.name, *parts[1:])),
        pattern=pattern,
        sender=placed.endpoint,
        deliveries=deliveries,
        payload=payload,
        schedule=_schedule(scene, placed, wanted, parts),
        start_ns=min(max(placed.connect_ns, heard_ns) + wanted.settle, scene.stop_ns),
        stop_ns=scene.stop_ns,
        deadline_ns=wanted.deadline or 0,
        reply=reply,
        spread=spread,
        topic=topic,
    )


def _schedule(scene: Scene, placed: Placed, wanted: Sending, parts: list[str]) -> Schedule:
    rates = tuple(Rate(scene.at_ns(step.since), step.rate) for step in wanted.rate)
    if rates[0].from_ns > 0:
        rates = (Rate(0, 0.0), *rates)
    if wanted.rate_of == "client":
        seed = scene.seed_for("schedule", placed.node, *parts)
        return Schedule("own", rates, seed, arrivals=wanted.arrivals, burst=wanted.burst)
    seed = scene.seed_for("schedule", scene.group_of[placed.node], *parts)
    index, count = scene.index_of[placed.node] - 1, scene.count(placed.node)
    return Schedule("shared", rates, seed, index, count, wanted.arrivals, wanted.burst)


def rate_words(flow: Flow) -> str:
    """Describes how often a flow sends: "100 /s together", "20 /s, 40 /s from 70 s", or "greedy"."""
    schedule = flow.schedule
    if schedule is None:
        return "greedy"
    first, *later = schedule.rates
    said = [f"{first.per_s:g} /s" + _share(schedule)]
    said += [f"{rate.per_s:g} /s from {text_ns(rate.from_ns)}" for rate in later]
    said += [schedule.arrivals] if schedule.arrivals == "together" else []
    said += [f"bursts of {schedule.burst}"] if schedule.burst > 1 else []
    return ", ".join(said)


def _share(schedule: Schedule) -> str:
    return " together" if schedule.kind == "shared" and schedule.count > 1 else ""


def expected_messages(flow: Flow) -> float:
    """Returns the mean number of messages that a flow schedules; for a shared schedule, the part of its
    sender. 0 for a greedy flow.
    """
    schedule = flow.schedule
    if schedule is None:
        return 0.0
    ends = [rate.from_ns for rate in schedule.rates[1:]] + [flow.stop_ns]
    ticks = sum(
        rate.per_s * max(min(end, flow.stop_ns) - max(rate.from_ns, flow.start_ns), 0) / 1e9
        for rate, end in zip(schedule.rates, ends, strict=True)
    )
    return ticks * schedule.burst / schedule.count


def receivers_of_each(flow: Flow, receivers: int) -> int:
    """Returns the number of receivers of each message: one if they take turns, else all."""
    return min(receivers, 1) if flow.spread == "round-robin" else receivers
