"""Checks that MQTT clients can reach their broker, and that their topics, payloads and
intervals are valid.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...language.source import Path
from ..brokers import Service, check_broker, check_features
from ..checking import Checks, Here
from ..sending import check_sending
from .file import PROTOCOL, Client, MqttOptions, Publish
from .payloads import check_payload
from .requests import check_requests
from .session_checks import check_session, check_text, check_topic
from .sparkplug import check_sparkplug
from .topics import SHARED, filter_fault, inner, share_fault

LONGEST_KEEPALIVE_S = 65535  # CONNECT has two bytes for the keep alive (MQTT 3.1.1, section 3.1.2.10)


def check(report: Checks, here: Here, client: Client) -> None:
    """Reports an MQTT client that neither publishes nor subscribes, a keepalive other than 1 to 65535 whole
    seconds, an unknown or unreachable broker, a broker without a needed feature, and mistakes in session,
    topics and payload.
    """
    mqtt, path = client.mqtt, (*here.path, "mqtt")
    if mqtt.publish is None and not mqtt.subscribe:
        report.add(path, None, "neither publishes nor subscribes", "write `publish:` or `subscribe:`")
    keepalive_s, rest = divmod(mqtt.keepalive, 10**9)
    if rest or not 0 < keepalive_s <= LONGEST_KEEPALIVE_S:
        rule = f"must be whole seconds, from 1 to {LONGEST_KEEPALIVE_S}"
        report.add((*path, "keepalive"), None, rule, 'write for example "60 s"')
    service = _broker(report, here, mqtt, path)
    check_session(report, here, mqtt, service, path)
    _topics(report, mqtt, path)
    _absences(report, mqtt, path)
    if mqtt.churn is not None and mqtt.churn.mean == 0:
        rule = "a connection lasts longer than no time"
        report.add((*path, "churn", "mean"), "0 s", rule, 'write for example "60 s"')
    if mqtt.publish is not None:
        _publish(report, here, mqtt.publish, (*path, "publish"), mqtt.version)
        check_sparkplug(report, mqtt, mqtt.publish, path)
        if mqtt.sessions > 1 and mqtt.publish.rate_of != "client":
            rule = "a rate of the whole group is drawn by every sender for all, too much for many sessions"
            report.add((*path, "publish", "rate_of"), mqtt.publish.rate_of, rule, "write `rate_of: client`")


def _publish(report: Checks, here: Here, wanted: Publish, path: Path, version: str) -> None:
    check_sending(report, here, wanted, path, "leave `publish` out for a client that is silent")
    check_payload(report, wanted, path, version)
    check_requests(report, wanted, path, version)


def _broker(report: Checks, here: Here, mqtt: MqttOptions, path: Path) -> Service | None:
    example = "{mosquitto: {broker: mosquitto}}"
    service = check_broker(report, here, (*path, "broker"), mqtt.broker, mqtt.port, PROTOCOL, example)
    check_features(report, service, mqtt.broker, _used(mqtt, path))
    return service


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
    for index, wanted in enumerate(mqtt.subscribe):
        where = (*path, "subscribe", index, "topic")
        check_text(report, where, wanted.topic, "a topic")
        if wrong := share_fault(wanted.topic) or filter_fault(inner(wanted.topic)):
            report.add(where, wanted.topic, wrong, "write for example meter/# or meter/+/power")
        if wanted.topic.startswith(SHARED) and mqtt.version == "3.1.1":
            rule = "MQTT 3.1.1 has no shared subscriptions"
            report.add(where, wanted.topic, rule, "write `version: 5`, or subscribe to the topic itself")
    if mqtt.publish is not None and mqtt.publish.sparkplug is None:
        check_topic(report, (*path, "publish", "topic"), mqtt.publish.topic)


def _absences(report: Checks, mqtt: MqttOptions, path: Path) -> None:
    """Reports times without a subscription if the client has several subscriptions or the subscription is
    shared; also reports times that are empty, out of order or overlap.
    """
    for index, wanted in enumerate(mqtt.subscribe):
        where: Path = (*path, "subscribe", index, "unsubscribed")
        if not wanted.unsubscribed:
            continue
        if len(mqtt.subscribe) > 1 or wanted.topic.startswith(SHARED):
            rule = "needs a client with one subscription, not shared: else no record shows what it missed"
            report.add(where, None, rule, "give the subscription a client of its own")
            continue
        over_ns = 0
        for number, one in enumerate(wanted.unsubscribed):
            begin_ns = report.since_start_ns(one.since)
            if one.duration == 0:
                report.add(
                    (*where, number, "for"), "0 s", "is no time", "write a longer one, or leave it out"
                )
            if begin_ns is None:
                return
            if begin_ns < over_ns or (number and wanted.unsubscribed[number - 1].duration is None):
                rule = "begins before the time above it has ended"
                report.add((*where, number, "from"), None, rule, "write them in order and apart")
                return
            over_ns = begin_ns + (one.duration or 0)
