"""Checks that MQTT clients can reach their broker, and that their topics, payloads and
intervals are valid.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...language.source import Path
from ..brokers import check_broker, check_features
from ..checking import Checks, Here
from ..encodings import check_encoded
from ..placeholders import REMEDY, longest, unknown
from ..sending import check_sending
from .file import PROTOCOL, Client, MqttOptions, Publish
from .subscriptions import SHARED
from .topics import filter_fault

LONGEST_KEEPALIVE_S = 65535  # two bytes in CONNECT, MQTT 3.1.1 section 3.1.2.10
# Flow, number and time at fixed places, and the XML around them: the agent's payload/metering_xml.rs.
SMALLEST_PAYLOAD = 548
LARGEST_PAYLOAD = 1 << 20
LONGEST_TOPIC = 65535  # bytes; MQTT 3.1.1 section 1.5.3


def check(report: Checks, here: Here, client: Client) -> None:
    """Reports the mistakes in the settings of one MQTT client."""
    mqtt, path = client.mqtt, (*here.path, "mqtt")
    if mqtt.publish is None and not mqtt.subscribe:
        report.add(path, None, "neither publishes nor subscribes", "write `publish:` or `subscribe:`")
    keepalive_s, rest = divmod(mqtt.keepalive, 10**9)
    if rest or not 0 < keepalive_s <= LONGEST_KEEPALIVE_S:
        rule = f"must be whole seconds, from 1 to {LONGEST_KEEPALIVE_S}"
        report.add((*path, "keepalive"), None, rule, 'write for example "60 s"')
    _broker(report, here, mqtt, path)
    _topics(report, mqtt, path)
    if mqtt.publish is not None:
        _publish(report, here, mqtt.publish, (*path, "publish"))


def _publish(report: Checks, here: Here, wanted: Publish, path: Path) -> None:
    check_sending(report, here, wanted, path, "leave `publish` out for a client that is silent")
    encoded = check_encoded(report, wanted, path, "payload_size", "payload")
    if not encoded and not SMALLEST_PAYLOAD <= wanted.payload_size <= LARGEST_PAYLOAD:
        rule = f"a {wanted.payload} payload has from {SMALLEST_PAYLOAD} to {LARGEST_PAYLOAD} bytes"
        report.add((*path, "payload_size"), wanted.payload_size, rule, 'write for example "717 B"')


def _broker(report: Checks, here: Here, mqtt: MqttOptions, path: Path) -> None:
    example = "{mosquitto: {broker: mosquitto}}"
    service = check_broker(report, here, (*path, "broker"), mqtt.broker, mqtt.port, PROTOCOL, example)
    check_features(report, service, mqtt.broker, _used(mqtt, path))


def _used(mqtt: MqttOptions, path: Path) -> Iterator[tuple[Path, str, str]]:
    """Yields (place, feature, remedy) of each feature in use that not every broker has."""
    yield (*path, "version"), f"version {mqtt.version}", 'write `version: "3.1.1"`'
    if mqtt.publish is not None:
        yield (*path, "publish", "qos"), f"QoS {mqtt.publish.qos}", "write `qos: 1`"
    for index, wanted in enumerate(mqtt.subscribe):
        yield (*path, "subscribe", index, "qos"), f"QoS {wanted.qos}", "write `qos: 1`"
        if wanted.topic.startswith(SHARED):
            remedy = "subscribe to the topic itself"
            yield (*path, "subscribe", index, "topic"), "a shared subscription", remedy


def _topics(report: Checks, mqtt: MqttOptions, path: Path) -> None:
    topics = [((*path, "subscribe", i, "topic"), s.topic, True) for i, s in enumerate(mqtt.subscribe)]
    if mqtt.publish is not None:
        topics.append(((*path, "publish", "topic"), mqtt.publish.topic, False))
    for where, topic, is_filter in topics:
        for name in unknown(topic):
            rule = f"no placeholder is called {{{name}}}"
            report.add(where, topic, rule, REMEDY)
        if not topic.isprintable() or longest(topic) > LONGEST_TOPIC:
            rule = f"a topic has at most {LONGEST_TOPIC} bytes, and no control characters"
            report.add(where, topic, rule, "write a shorter one, of letters and digits")
        if not is_filter and any(sign in topic for sign in "+#"):
            report.add(where, topic, "a message's topic has no wildcards", "name one topic")
        if is_filter and (wrong := filter_fault(topic)):
            report.add(where, topic, wrong, "write for example meter/# or meter/+/power")
