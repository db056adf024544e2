"""Defines the shape of a synthetic run: scenario, size and length, and the connect time of each client."""

from __future__ import annotations

from dataclasses import dataclass

S = 1_000_000_000
T0 = 1_790_000_000 * S
PAYLOAD = 717
CLASS = "client.meter"
RULES = (
    "at most once, so no message is delivered twice",
    "at least once, so no message is lost",
    "exactly once, so no message is lost or delivered twice",
)


@dataclass(frozen=True)
class Shape:
    """A synthetic run: scenario 1 or 2, QoS, size and length of the run, and its losses."""

    scenario: int = 1
    qos: int = 1
    clients: int = 30
    ramp_s: int = 30
    hold_s: int = 60
    drain_s: int = 5
    rate: float = 20.0
    loss: float = 0.0
    seed: int = 1
    reference: bool = True
    suspect: bool = False
    events: bool = True


def names(shape: Shape) -> list[str]:
    return [f"client{i + 1}" for i in range(shape.clients)]


def connect_ns(shape: Shape, index: int) -> int:
    return index * shape.ramp_s * S // (shape.clients + 1)


def topic(shape: Shape, index: int) -> str:
    """Returns the topic of the client of that index."""
    return f"meter/{names(shape)[index] if shape.scenario == 2 else index}"


def receiver(shape: Shape, index: int) -> str:
    """Returns the receiver of the messages of the client of that index."""
    return "subscriber" if shape.scenario == 1 else names(shape)[(index - 1) % shape.clients]
