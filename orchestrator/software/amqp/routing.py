"""Finds the queues of each message by matching exchange keys, only here (AMQP 0-9-1, 3.1.3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .file import ExchangeType

ANY_WORD, ANY_WORDS = "*", "#"


@dataclass(frozen=True, slots=True)
class Consumer:
    """One that receives: `broker` names it, queue and keys have their placeholders filled in."""

    broker: str
    endpoint: str
    connect_ns: int
    exchange: str
    type: ExchangeType
    keys: tuple[str, ...]
    queue: str  # "": its own
    durable: bool
    acknowledge: bool


@dataclass
class Queues:
    """All queues of a lab: who consumes from each, and by which exchange and keys messages come to it."""

    of: dict[tuple[str, str], list[Consumer]] = field(default_factory=dict)  # (broker, queue)

    @classmethod
    def made(cls, consumers: Iterable[Consumer]) -> Queues:
        """A queue without a name is its consumer's alone."""
        found = cls()
        for one in consumers:
            found.of.setdefault((one.broker, one.queue or f" {one.endpoint}"), []).append(one)
        return found

    def to(self, broker: str, exchange: str, key: str) -> list[list[Consumer]]:
        """The consumers of each queue that gets a message; those of one queue share its messages."""
        return [
            consumers
            for (at, queue), consumers in self.of.items()
            if at == broker and any(takes(one, queue, exchange, key) for one in consumers)
        ]


def takes(consumer: Consumer, queue: str, exchange: str, key: str) -> bool:
    """Whether a consumer's bindings bring a message to its queue."""
    if exchange == "":
        return queue == key
    if consumer.exchange != exchange:
        return False
    return any(matches(consumer.type, pattern, key) for pattern in consumer.keys)


def matches(kind: ExchangeType, pattern: str, key: str) -> bool:
    """Whether an exchange of this type routes a key by a binding."""
    if kind == "fanout":
        return True
    if kind == "direct":
        return pattern == key
    return _words_match(pattern.split("."), key.split("."))


def _words_match(pattern: list[str], words: list[str]) -> bool:
    """Whether words match a pattern; by columns of the table of prefixes, so that no pattern takes long."""
    reached = [True] + [False] * len(words)
    for piece in pattern:
        if piece == ANY_WORDS:
            for place in range(1, len(words) + 1):
                reached[place] = reached[place] or reached[place - 1]
        else:
            fits = [piece in (ANY_WORD, word) for word in words]
            reached = [False] + [reached[place] and fits[place] for place in range(len(words))]
    return reached[-1]
