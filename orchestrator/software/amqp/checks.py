"""Checks that AMQP clients can reach their broker, and that their names, keys, payloads and intervals are
valid.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...language.source import Path
from ..brokers import check_broker
from ..checking import Checks, Here
from ..encodings import check_encoded
from ..messages import SMALLEST_BYTES
from ..placeholders import REMEDY, longest, unknown
from ..sending import check_sending
from .file import PROTOCOL, Amqp, AmqpConsume, AmqpOptions, AmqpPublish

LONGEST_HEARTBEAT_S = 65535  # connection.tune has two bytes for the heartbeat
LONGEST_TEXT = 255  # bytes of a short string
# Least number of bytes that the agent's payload generators need.
SMALLEST_PAYLOAD = {"bytes": SMALLEST_BYTES, "metering-xml": 256}
LARGEST_PAYLOAD = 1 << 20
# Every broker has the durable exchanges MADE from its start; it refuses other names that begin with RESERVED.
RESERVED = "amq."
MADE = {"amq.topic": "topic", "amq.direct": "direct", "amq.fanout": "fanout"}


def check(report: Checks, here: Here, client: Amqp) -> None:
    """Reports an AMQP client that neither publishes nor consumes, a heartbeat that is not whole seconds, an
    unknown or unreachable broker, and invalid names, keys, payloads, exchanges and queues.
    """
    amqp, path = client.amqp, (*here.path, "amqp")
    if amqp.publish is None and amqp.consume is None:
        report.add(path, None, "neither publishes nor consumes", "write `publish:` or `consume:`")
    seconds, rest = divmod(amqp.heartbeat, 10**9)
    if rest or seconds > LONGEST_HEARTBEAT_S:
        rule = f"must be whole seconds, at most {LONGEST_HEARTBEAT_S}"
        report.add((*path, "heartbeat"), None, rule, 'write for example "10 s"')
    example = "{rabbit: {broker: rabbitmq}}"
    check_broker(report, here, (*path, "broker"), amqp.broker, amqp.port, PROTOCOL, example)
    _texts(report, amqp, path)
    if amqp.publish is not None:
        _publish(report, here, amqp.publish, (*path, "publish"))
    if amqp.consume is not None:
        _consume(report, amqp.consume, (*path, "consume"))


def _texts(report: Checks, amqp: AmqpOptions, path: Path) -> None:
    for where, text in _named(amqp, path):
        for name in unknown(text):
            report.add(where, text, f"no placeholder is called {{{name}}}", REMEDY)
        if longest(text) > LONGEST_TEXT or (text and not text.isprintable()):
            rule = f"a name or key has at most {LONGEST_TEXT} bytes, and no control characters"
            report.add(where, text, rule, "write a shorter one, of letters and digits")


def _named(amqp: AmqpOptions, path: Path) -> Iterator[tuple[Path, str]]:
    for key in ("vhost", "user", "password"):
        yield (*path, key), getattr(amqp, key)
    if amqp.publish is not None:
        for key in ("exchange", "key"):
            yield (*path, "publish", key), getattr(amqp.publish, key)
    if amqp.consume is not None:
        for key in ("exchange", "queue"):
            yield (*path, "consume", key), getattr(amqp.consume, key)
        for index, text in enumerate(amqp.consume.keys):
            yield (*path, "consume", "keys", index), text


def _publish(report: Checks, here: Here, wanted: AmqpPublish, path: Path) -> None:
    check_sending(report, here, wanted, path, "leave `publish` out for a client that is silent")
    encoded = check_encoded(report, wanted, path, "payload_size", "payload")
    smallest = SMALLEST_PAYLOAD[wanted.payload]
    if not encoded and not smallest <= wanted.payload_size <= LARGEST_PAYLOAD:
        rule = f"a {wanted.payload} payload has from {smallest} to {LARGEST_PAYLOAD} bytes"
        report.add((*path, "payload_size"), wanted.payload_size, rule, 'write for example "717 B"')
    if wanted.exchange == "" and wanted.key == "":
        rule = "the default exchange takes the name of a queue, and there is none"
        report.add((*path, "key"), None, rule, "write `key: QUEUE`, or name an exchange")
    if "*" in wanted.key or "#" in wanted.key:
        report.add((*path, "key"), wanted.key, "a message's key has no wildcards", "name one key")
    if not wanted.confirms and "inflight" in wanted.model_fields_set:
        rule = "limits unconfirmed messages, and confirms is off"
        report.add((*path, "inflight"), wanted.inflight, rule, "write `confirms: true`, or leave it out")
    _reserved(report, wanted, path)


def _consume(report: Checks, wanted: AmqpConsume, path: Path) -> None:
    if wanted.exchange == "":
        if wanted.keys:
            rule = "the default exchange takes no bindings"
            report.add((*path, "keys"), None, rule, "name an exchange, or leave `keys` out")
        if wanted.queue == "":
            rule = "names neither an exchange nor a queue, so nothing can come"
            report.add(path, None, rule, "write `exchange:` with `keys:`, or `queue:`")
    elif not wanted.keys and wanted.type != "fanout":
        rule = f"a queue gets nothing of a {wanted.type} exchange without a key"
        report.add((*path, "keys"), None, rule, 'write for example `keys: ["#"]`')
    if wanted.queue.startswith(RESERVED):
        rule = f"names that begin with {RESERVED} are the broker's own"
        report.add((*path, "queue"), wanted.queue, rule, "write another")
    if not wanted.acknowledge and "prefetch" in wanted.model_fields_set:
        rule = "limits unacknowledged messages, and acknowledge is off"
        report.add((*path, "prefetch"), wanted.prefetch, rule, "write `acknowledge: true`, or leave it out")
    _reserved(report, wanted, path)


def _reserved(report: Checks, wanted: AmqpPublish | AmqpConsume, path: Path) -> None:
    name = wanted.exchange
    if name.startswith(RESERVED) and (MADE.get(name) != wanted.type or not wanted.durable):
        known = ", ".join(f"{name} ({kind})" for name, kind in MADE.items())
        rule = f"names that begin with {RESERVED} are the broker's own: {known}, durable"
        report.add((*path, "exchange"), name, rule, "write another name, or that type")
