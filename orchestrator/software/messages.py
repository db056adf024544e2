"""Defines the keys of requests, pushes (messages without an answer) and streams between nodes, checks them,
and makes flows of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field, model_validator

from contract.plan import Delivery, Flow, Pattern, Payload, Spread

from ..language.scalars import Size, Span, fail, text
from ..language.source import Path
from .checking import Checks, Here
from .encodings import Encoded, check_encoded, payload_of
from .peers import options_of
from .scene import Placed, Scene
from .sending import Sending, check_sending, make_flow

PATTERNS: tuple[Pattern, ...] = ("request", "push", "stream")
TITLES = {"Request": "request", "Push": "push", "Stream": "stream"}  # sections of the reference page
PAYLOAD = "bytes"  # the agent's payload generator: a header with flow, number and time, then padding
SMALLEST_BYTES = 28  # length of that header


class Push(Sending, Encoded):
    """Messages without an answer."""

    size: Size | None = Field(
        None, description=f"Size of each message, at least {SMALLEST_BYTES} B; an `encoding` determines it."
    )
    spread: Spread = Field(
        "all", description="Each message goes to all receivers, or to the next one of them: round-robin."
    )

    @model_validator(mode="before")
    @classmethod
    def _no_reply(cls, data: Any) -> Any:
        if isinstance(data, dict) and "reply" in data and "reply" not in cls.model_fields:
            raise fail("has a reply without a request", "write `request:`, or leave `reply` out")
        return data


class Stream(Push):
    """A continuous feed of messages, of which the newest counts."""


class Request(Push):
    """Messages that each receiver answers."""

    reply: Size = Field(description=f"Size of each answer, at least {SMALLEST_BYTES} B.")
    timeout: Span = Field(text("1 s"), description="Longest wait for an answer.")


def check_messages(report: Checks, here: Here, wanted: Push, path: Path, largest: int) -> None:
    """Reports mistakes in one flow: in its rate and times, its encoding, a size or reply that is not 28 to
    `largest` bytes, and a timeout of 0.
    """
    check_sending(report, here, wanted, path, "leave it out where nothing is sent")
    _check_encoding(report, wanted, path)
    for key in ("size", "reply"):
        value = getattr(wanted, key, None)
        if value is not None and not SMALLEST_BYTES <= value <= largest:
            rule = f"a message has from {SMALLEST_BYTES} to {largest} bytes"
            report.add((*path, key), f"{value} B", rule, 'write for example "100 B"')
    if getattr(wanted, "timeout", None) == 0:
        report.add((*path, "timeout"), "0 s", "is not above zero", 'write for example "1 s"')


def _check_encoding(report: Checks, wanted: Push, path: Path) -> None:
    if not check_encoded(report, wanted, path, "size"):
        if wanted.size is None:
            report.add((*path, "size"), None, "is missing", 'write for example "100 B", or an `encoding`')
    elif isinstance(wanted, Request):
        rule = "has no place for what an answer is to be"
        report.add((*path, "encoding"), wanted.encoding, rule, "leave it out, or write `push:`")


def flows(
    scene: Scene, placed: Placed, deliveries: tuple[Delivery, ...], heard_ns: int = 0
) -> Iterator[Flow]:
    """Yields one flow for each pattern that `placed` has; no flow begins before its receivers have connected
    (`heard_ns`).
    """
    options = options_of(placed.model, placed.kind)
    said = [(key, one) for key in PATTERNS if (one := getattr(options, key, None)) is not None]
    for key, wanted in said:
        yield make_flow(
            scene,
            placed,
            wanted,
            payload_of(wanted, Payload(PAYLOAD, wanted.size or 0)),
            pattern=key,
            deliveries=deliveries,
            heard_ns=heard_ns,
            name=key if len(said) > 1 else "",
            reply=Payload(PAYLOAD, wanted.reply) if isinstance(wanted, Request) else None,
            spread=wanted.spread,
        )


def timeout_ns(placed: Placed) -> int:
    """Returns the time in nanoseconds for which the software waits for a reply; 0 without requests."""
    request = getattr(options_of(placed.model, placed.kind), "request", None)
    return request.timeout if request is not None else 0


def flow_words(flow: Flow, rate: str) -> str:
    """Describes a flow in a few words: "requests of 100 B, answers of 400 B, 10 /s"."""
    words = {"request": "requests", "stream": "stream"}.get(flow.pattern, "messages")
    turns = ", to one after the other" if flow.spread == "round-robin" else ""
    answers = f", answers of {flow.reply.bytes} B" if flow.reply is not None else ""
    return f"{words} of {flow.payload.bytes} B{answers}, {rate}{turns}"
