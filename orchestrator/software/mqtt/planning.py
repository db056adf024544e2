"""Plans MQTT clients: their sessions, their flows and the expected receivers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from contract.plan import Delivery, Flow, Note, Payload, Session, Software

from ...language.dscp import marks
from ..brokers import name_at, port_at
from ..encodings import payload_of
from ..kind import Planned
from ..placeholders import fill_for
from ..scene import Placed, Scene
from ..sending import make_flow
from .file import PROTOCOL, MqttOptions, Publish
from .subscriptions import SHARED, Subscribed, Subscriptions, deliveries

# Keep-alive intervals without a sign of life after which a broker ends a connection (MQTT 5, 3.1.2.10).
PATIENCE = 1.5


def plan(scene: Scene, clients: Sequence[Placed]) -> Iterator[Planned]:
    """Plans every MQTT client of the lab, in the order given."""
    subscriptions = Subscriptions.of(one for client in clients for one in _subscribed(scene, client))
    for client in clients:
        mqtt: MqttOptions = client.model.mqtt
        flows, receivers = _flow(scene, client, mqtt, subscriptions) if mqtt.publish else ((), {})
        yield Planned(
            _software(scene, client, mqtt), flows, receivers, tuple(_notes(client, mqtt)), relay=mqtt.broker
        )


def _software(scene: Scene, client: Placed, mqtt: MqttOptions) -> Software:
    port = port_at(scene, mqtt.broker, mqtt.port, PROTOCOL)
    patience_ns = int(PATIENCE * mqtt.keepalive) if mqtt.clean_session else None
    session = Session(client.endpoint, client.connect_ns, scene.end_ns, patience_ns=patience_ns)
    spec = {
        "broker": scene.address(mqtt.broker, client.node),
        "port": port,
        "version": mqtt.version,
        "keepalive_s": mqtt.keepalive // 10**9,
        "clean_session": mqtt.clean_session,
        "reconnect_ns": mqtt.reconnect,
        "publish": _sends(scene, client, mqtt.publish) if mqtt.publish else None,
        "subscribe": [{"topic": fill_for(scene, client, s.topic), "qos": s.qos} for s in mqtt.subscribe],
        **marks(mqtt),
    }
    return Software(client.name, "client", client.kind, session=session, spec=spec, ports={PROTOCOL: (port,)})


def _sends(scene: Scene, client: Placed, wanted: Publish) -> dict[str, Any]:
    """Returns the agent's settings of a publisher, without times and payload, which are in its flow."""
    topic = fill_for(scene, client, wanted.topic)
    return {"topic": topic, "qos": wanted.qos, "inflight": wanted.inflight, "queue": wanted.queue}


def _broker(scene: Scene, mqtt: MqttOptions) -> str:
    return name_at(scene, mqtt.broker, mqtt.port, PROTOCOL)


def _subscribed(scene: Scene, client: Placed) -> Iterator[Subscribed]:
    mqtt: MqttOptions = client.model.mqtt
    for wanted in mqtt.subscribe:
        topic = fill_for(scene, client, wanted.topic)
        yield Subscribed(
            _broker(scene, mqtt), topic, wanted.qos, client.endpoint, client.connect_ns, mqtt.clean_session
        )


def _flow(
    scene: Scene, client: Placed, mqtt: MqttOptions, subscriptions: Subscriptions
) -> tuple[tuple[Flow], dict[str, tuple[str, ...]]]:
    """Returns the flow of a publisher, and its sets of receivers by name."""
    wanted = mqtt.publish
    assert wanted is not None
    broker, topic = _broker(scene, mqtt), fill_for(scene, client, wanted.topic)
    heard = subscriptions.to(broker, topic)
    owed: dict[Delivery, tuple[str, ...]] = dict(deliveries(broker, topic, wanted.qos, heard))
    flow = make_flow(
        scene,
        client,
        wanted,
        payload_of(wanted, Payload(wanted.payload, wanted.payload_size)),
        pattern="publish",
        deliveries=tuple(owed),
        heard_ns=max((one.connect_ns for one in heard), default=0),
        topic=topic,
    )
    return (flow,), {delivery.receivers: names for delivery, names in owed.items()}


def _notes(client: Placed, mqtt: MqttOptions) -> Iterator[Note]:
    if any(wanted.topic.startswith(SHARED) for wanted in mqtt.subscribe):
        text = "a shared subscription: which of its subscribers gets a message is the broker's choice"
        yield Note(f"nodes.{client.node}.{client.name}", text, "deliveries to them have no verdict")
