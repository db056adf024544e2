"""Plans the session of an MQTT client: client identifier, login, TLS, expiry, will and back-off."""

from __future__ import annotations

from typing import Any

from ..brokers import port_at
from ..placeholders import fill_for
from ..scene import Placed, Scene
from ..tls.lab import client_spec
from .file import PROTOCOL, MqttOptions, Will


def client_id(scene: Scene, client: Placed) -> str:
    """Returns the client identifier: that of the file, or else the client's name in records."""
    mqtt: MqttOptions = client.model.mqtt
    return client.endpoint if mqtt.client_id is None else fill_for(scene, client, mqtt.client_id)


def session_spec(scene: Scene, client: Placed, mqtt: MqttOptions) -> dict[str, Any]:
    """Returns the agent's settings of the session; omits those with the agent's default value."""
    spec: dict[str, Any] = {}
    for key, text in (("client_id", mqtt.client_id), ("user", mqtt.user), ("password", mqtt.password)):
        if text is not None:
            spec[key] = fill_for(scene, client, text)
    if mqtt.tls is not None:
        name = spec.get("user") or client_id(scene, client)
        spec["tls"] = client_spec(scene, mqtt.tls, mqtt.broker, name)
    if mqtt.websocket is not None:
        port = port_at(scene, mqtt.broker, mqtt.port, PROTOCOL)
        spec["websocket"] = {"host": f"{mqtt.broker}:{port}", "path": mqtt.websocket.path}
    if mqtt.admission == "refused":
        spec["admission"] = mqtt.admission
    if mqtt.session_expiry is not None:
        spec["session_expiry_s"] = mqtt.expiry_s
    if mqtt.receive_maximum is not None:
        spec["receive_maximum"] = mqtt.receive_maximum
    if mqtt.will is not None:
        spec["will"] = _will(scene, client, mqtt.will)
    if mqtt.churn is not None:
        spec["lives"] = {
            "mean_ns": mqtt.churn.mean,
            "drawn": mqtt.churn.times == "exponential",
            "away_ns": mqtt.churn.away,
            "abrupt": mqtt.churn.abrupt,
            "seed": scene.seed_for("churn", client.node, client.name),
        }
    if mqtt.backoff is not None:
        spec["backoff"] = {
            "factor": mqtt.backoff.factor,
            "limit_ns": mqtt.backoff.limit,
            "jitter": mqtt.backoff.jitter,
            "seed": scene.seed_for("reconnect", client.node, client.name),
        }
    return spec


def _will(scene: Scene, client: Placed, will: Will) -> dict[str, Any]:
    return {
        "topic": fill_for(scene, client, will.topic),
        "payload": will.payload,
        "qos": will.qos,
        "retain": will.retain,
        "delay_s": will.delay // 10**9,
    }
