"""Defines the registry entry of the AMQP client: its description for readers, its costs and its turn in the
ramp.
"""

from __future__ import annotations

from collections.abc import Sequence

from contract.plan import Flow, Software

from ..brokers import Traffic, client_costs
from ..kind import Costs, Kind
from ..placeholders import PLACEHOLDERS
from ..sending import rate_words
from .checks import check
from .file import Amqp
from .planning import plan

MEMORY_AT_BROKER_BYTES = 150_000  # RabbitMQ 3.10: the processes of a connection, its channel and its queue
_CONNECTION_PACKETS = (
    40  # packets: handshakes of TCP and AMQP, declarations, their answers and acknowledgements, the end
)
_TRAFFIC = Traffic(
    (_CONNECTION_PACKETS, 40),
    message_bytes=60,  # bytes of method, header and body frames around key and payload
    answers=2,
    answer_bytes=21,  # basic.ack
)


def _words(software: Software, flows: Sequence[Flow]) -> str:
    words, spec = ["AMQP 0-9-1"], software.spec
    for flow in flows:
        to = f"{spec['publish']['exchange']['name'] or 'queue'} {flow.topic}".strip()
        confirms = ", confirms" if spec["publish"]["confirms"] else ""
        words.append(f"publishes {flow.payload.bytes} B to {to}, {rate_words(flow)}{confirms}")
    if (consume := spec["consume"]) is not None:
        source = consume["queue"] or consume["exchange"]["name"]
        how = f"prefetch {consume['prefetch']}" if consume["acknowledge"] else "acknowledges nothing"
        words.append(f"consumes {source}, {how}")
    return "; ".join(words)


def _costs(_software: Software, flows: Sequence[Flow]) -> Costs:
    return client_costs(MEMORY_AT_BROKER_BYTES, flows, _TRAFFIC)


KIND = Kind(
    name="amqp",
    key="amqp",
    model=Amqp,
    what="an AMQP client",
    example='amqp: {broker: server, consume: {exchange: meters, keys: ["#"]}}',
    check=check,
    plan=plan,
    words=_words,
    costs=_costs,
    ramp=lambda client: int(client.amqp.publish is not None),
    titles={
        "AmqpOptions": "software.NAME.amqp: an AMQP client",
        "AmqpPublish": "amqp.publish",
        "AmqpConsume": "amqp.consume",
    },
    notes=f"In names and keys: {', '.join(f'`{{{name}}}`' for name in PLACEHOLDERS)}, as in an MQTT client's "
    "topics.\n",
)
