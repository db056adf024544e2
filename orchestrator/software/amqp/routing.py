"""Finds the queues that each AMQP message reaches, by matching exchange and key (AMQP 0-9-1, 3.1.3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .file import ExchangeType

ANY_WORD, ANY_WORDS = "*", "#"


@dataclass(frozen=True, slots=True)
class Consumer:
    """A client that consumes from a queue: its broker's name, and its queue and keys with placeholders
    filled in.
    """

    broker: str
    endpoint: str
    connect_ns: int
    exchange: str
    type: ExchangeType
    keys: tuple[str, ...]
    queue: str  # "" stands for a queue of the consumer's own
    durable: bool
    acknowledge: bool


@dataclass
class Queues:
    """All queues of a lab: the consumers of each, by broker and queue name."""

    # (broker, queue) -> its consumers
    of: dict[tuple[str, str], list[Consumer]] = field(default_factory=dict)

    @classmethod
    def made(cls, consumers: Iterable[Consumer]) -> Queues:
        """Groups the consumers by broker and queue; a consumer whose queue has no name gets a queue of its
        own.
        """
        found = cls()
        for one in consumers:
            found.of.setdefault((one.broker, one.queue or f" {one.endpoint}"), []).append(one)
        return found

    def to(self, broker: str, exchange: str, key: str) -> list[list[Consumer]]:
        """Returns the consumers of each queue that a message reaches; the consumers of one queue share its
        messages.
        """
        return [
            consumers
            for (at, queue), consumers in self.of.items()
            if at == broker and any(takes(one, queue, exchange, key) for one in consumers)
        ]


def takes(consumer: Consumer, queue: str, exchange: str, key: str) -> bool:
    """Returns whether a message with this exchange and key reaches the queue by the consumer's bindings."""
    if exchange == "":
        return queue == key
    if consumer.exchange != exchange:
        return False
    return any(matches(consumer.type, pattern, key) for pattern in consumer.keys)


def matches(kind: ExchangeType, pattern: str, key: str) -> bool:
    """Returns whether an exchange of type `kind` routes the key to a binding with this pattern."""
    if kind == "fanout":
        return True
    if kind == "direct":
        return pattern == key
    return _words_match(pattern.split("."), key.split("."))


def _words_match(pattern: list[str], words: list[str]) -> bool:
    """Returns whether the words of a key match a topic pattern with * and #, in time proportional to the
    product of their lengths.
    """
    reached = [True] + [False] * len(words)
    for piece in pattern:
        if piece == ANY_WORDS:
            for place in range(1, len(words) + 1):
                reached[place] = reached[place] or reached[place - 1]
        else:
            fits = [piece in (ANY_WORD, word) for word in words]
            reached = [False] + [reached[place] and fits[place] for place in range(len(words))]
    return reached[-1]
