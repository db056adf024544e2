"""Defines the registry entry of the MQTT client: its description for readers, its costs and its turn in the
ramp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from contract.plan import Flow, Software

from ..brokers import Traffic, client_costs
from ..kind import Costs, Kind
from ..placeholders import PLACEHOLDERS
from ..sending import rate_words
from .checks import check
from .file import Client
from .planning import plan

MEMORY_AT_BROKER_BYTES = 10_000  # from bench/memory.py: below 4 kB for each client, without waiting messages
# packets: handshake, CONNECT, SUBSCRIBE, their answers and acknowledgements, the end
_CONNECTION_PACKETS = 16
# Each QoS step adds handshake packets (4 bytes of MQTT) and, at worst, a TCP acknowledgement for each.
_HANDSHAKE_PACKETS = {0: 0, 1: 1, 2: 3}
# packets and bytes of the handshake, for two chains of one certificate each, with Ed25519 keys
_TLS_PACKETS, _TLS_HANDSHAKE_BYTES = 12, 3000
# bytes of header, nonce and tag with AES-GCM in TLS 1.2 (RFC 5246, RFC 5288); TLS 1.3 has 22
_TLS_RECORD_BYTES = 29
_FRAME_BYTES = 8  # bytes of head and mask of a frame below 64 KiB (RFC 6455, 5.2)
_UPGRADE_PACKETS, _UPGRADE_BYTES = 4, 500  # packets and bytes of request, answer and their acknowledgements
_REQUEST_BYTES = 100  # bytes of the response topic and of the correlation data (28)
_NUMBER_BYTES = 49  # bytes of the user property with the message's number: 5 bytes, `vnet`, 40 of base64


def _words(software: Software, flows: Sequence[Flow]) -> str:
    words = [f"MQTT {software.spec['version']}"]
    for flow in flows:
        qos = software.spec["publish"]["qos"]
        words.append(f"publishes {_length(flow)}, {rate_words(flow)}, QoS {qos}")
    words += [f"subscribes {s['topic']}, QoS {s['qos']}" for s in software.spec["subscribe"][:2]]
    return ", ".join(words)


def _length(flow: Flow) -> str:
    """Returns the lengths of a flow's messages and replies: "717 B", or "600 to 2000 B, answers of 200 B"."""
    least, most = flow.payload.bounds
    words = f"{most} B" if least == most else f"{least} to {most} B"
    return words if flow.reply is None else f"{words}, answers of {flow.reply.bytes} B"


def _costs(software: Software, flows: Sequence[Flow]) -> Costs:
    spec = software.spec
    qos = spec["publish"]["qos"] if flows else 0
    record = _TLS_RECORD_BYTES if "tls" in spec else 0
    record += _FRAME_BYTES if "websocket" in spec else 0
    packets, octets = _CONNECTION_PACKETS, 20 * _CONNECTION_PACKETS
    if "websocket" in spec:
        packets, octets = packets + _UPGRADE_PACKETS, octets + _UPGRADE_BYTES
    if "tls" in spec:
        packets, octets = packets + _TLS_PACKETS, octets + _TLS_HANDSHAKE_BYTES + packets * record
    message = 5 + record + (_properties(spec["publish"]) if flows else 0)
    answers = 2 * _HANDSHAKE_PACKETS[qos] + 1
    traffic = Traffic((packets, -(-octets // packets)), message, answers, 4 + record)
    return client_costs(MEMORY_AT_BROKER_BYTES, flows, traffic, f"{spec['broker']}:{spec['port']}")


def _properties(publish: Mapping[str, Any]) -> int:
    """Returns the bytes of a message's properties (MQTT 5, 2.2.2)."""
    own = sum(5 + len(f"{name}{value}".encode()) for name, value in publish.get("user_properties", ()))
    own += _REQUEST_BYTES if "request" in publish else 0
    return own + _NUMBER_BYTES * ("content" in publish) + 5 * ("message_expiry_s" in publish)


KIND = Kind(
    name="mqtt",
    key="mqtt",
    model=Client,
    what="an MQTT client",
    example="mqtt: {broker: server, subscribe: [{topic: meter/#}]}",
    check=check,
    plan=plan,
    words=_words,
    costs=_costs,
    sessions=lambda client: client.mqtt.sessions,
    ramp=lambda client: int(client.mqtt.publish is not None),
    titles={
        "MqttOptions": "software.NAME.mqtt: an MQTT client",
        "Publish": "mqtt.publish",
        "PayloadSizes": "mqtt.publish.payload_sizes",
        "SparkplugNode": "mqtt.publish.sparkplug",
        "Will": "mqtt.will",
        "Backoff": "mqtt.backoff",
        "Churn": "mqtt.churn",
        "ClientTls": "mqtt.tls",
        "Subscription": "mqtt.subscribe[]",
        "Absence": "mqtt.subscribe[].unsubscribed[]",
    },
    notes=f"In `topic`, `client_id`, `user` and `password`: "
    f"{', '.join(f'`{{{name}}}`' for name in PLACEHOLDERS)}. `{{next}}` and `{{previous}}` "
    "are the index of another\nmember of the group and wrap around, which gives one-to-one pairs. "
    "`{session}` is the\nnumber of the client among the `sessions` of its software.\n",
)
