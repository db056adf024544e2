"""Software: clients that can reach their broker, topics, ports, probes and templates that make sense."""

from __future__ import annotations

import re

from ...language.source import Path
from ...language.templates import fault
from ..network import Machine
from ..software import Broker, Client, Command, MqttOptions
from ..topics import filter_fault, longest, unknown
from .report import Report

LONGEST_KEEPALIVE_S = 65535  # two bytes in CONNECT, MQTT 3.1.1 section 3.1.2.10
SMALLEST_PAYLOAD = (
    256  # publisher, sequence number and scheduled time at fixed places, and the XML around them
)
LARGEST_PAYLOAD = 1 << 20
LONGEST_TOPIC = 65535  # bytes; MQTT 3.1.1 section 1.5.3
_OPTION = re.compile(r"[a-z][a-z0-9_]*")


def check(report: Report) -> None:
    """Every program of every node and group."""
    for section in ("nodes", "groups"):
        for name, machine in getattr(report.model, section).items():
            _ports(report, machine, (section, name, "software"))
            for label, software in machine.software.items():
                path = (section, name, "software", label)
                if isinstance(software, Client):
                    _client(report, machine, software.mqtt, (*path, "mqtt"))
                elif isinstance(software, Command):
                    _command(report, software, path)


def _ports(report: Report, machine: Machine, path: Path) -> None:
    taken: dict[int, str] = {}
    for label, software in machine.software.items():
        if not isinstance(software, Broker):
            continue
        if software.port in taken:
            rule = f"is already the port of {taken[software.port]} on this node"
            report.add((*path, label, "port"), software.port, rule, "choose another port")
        taken[software.port] = label
        _options(report, software, (*path, label, "options"))


def _options(report: Report, broker: Broker, path: Path) -> None:
    for key, value in broker.options.items():
        if not _OPTION.fullmatch(key) or not str(value).isprintable():
            rule = "is not one line of a configuration"
            report.add((*path, key), f"{key} {value}", rule, "write `name: value`, each on one line")


def _client(report: Report, machine: Machine, mqtt: MqttOptions, path: Path) -> None:
    if mqtt.publish is None and not mqtt.subscribe:
        report.add(path, None, "neither publishes nor subscribes", "write `publish:` or `subscribe:`")
    keepalive_s, rest = divmod(mqtt.keepalive, 10**9)
    if rest or not 0 < keepalive_s <= LONGEST_KEEPALIVE_S:
        rule = f"must be whole seconds, from 1 to {LONGEST_KEEPALIVE_S}"
        report.add((*path, "keepalive"), None, rule, 'write for example "60 s"')
    _broker(report, machine, mqtt, (*path, "broker"))
    _topics(report, mqtt, path)
    if mqtt.publish is not None:
        _publish(report, mqtt, (*path, "publish"))


def _publish(report: Report, mqtt: MqttOptions, path: Path) -> None:
    assert mqtt.publish is not None
    if mqtt.publish.rate <= 0:
        report.add(
            (*path, "rate"), None, "must be more than zero", "leave `publish` out for a client that is silent"
        )
    if not SMALLEST_PAYLOAD <= mqtt.publish.payload_size <= LARGEST_PAYLOAD:
        rule = f"a {mqtt.publish.payload} payload has from {SMALLEST_PAYLOAD} to {LARGEST_PAYLOAD} bytes"
        report.add((*path, "payload_size"), mqtt.publish.payload_size, rule, 'write for example "717 B"')


def _broker(report: Report, machine: Machine, mqtt: MqttOptions, path: Path) -> None:
    if mqtt.broker in report.broken("nodes"):
        return
    node = report.names.nodes.get(mqtt.broker)
    if node is None:
        report.unknown(path, mqtt.broker, "node", set(report.names.nodes) | report.declared("nodes"))
        return
    ports = [s.port for s in node.software.values() if isinstance(s, Broker)]
    if not ports and mqtt.port is None:
        rule = "no broker runs on this node, so its port is not known"
        report.add(
            path,
            mqtt.broker,
            rule,
            "write `software: {mosquitto: {broker: mosquitto}}` there, or `port:` here",
        )
    if mqtt.port is None and len(ports) > 1:
        report.add(path, mqtt.broker, "more than one broker runs on this node", "write `port:`")
    if report.unsure("links", "between") or report.lost("segments"):
        return
    members = [name for name, one in report.names.nodes.items() if one is machine]
    if not all(report.reach.reachable(name, mqtt.broker) for name in members):
        rule = "no link joins its segment to one of this client's, and no node that forwards"
        remedy = "add a link between the segments, a second segment to the node, or a router"
        report.add(path, mqtt.broker, rule, remedy)


def _topics(report: Report, mqtt: MqttOptions, path: Path) -> None:
    topics = [((*path, "subscribe", i, "topic"), s.topic, True) for i, s in enumerate(mqtt.subscribe)]
    if mqtt.publish is not None:
        topics.append(((*path, "publish", "topic"), mqtt.publish.topic, False))
    for where, topic, is_filter in topics:
        for name in unknown(topic):
            rule = f"no placeholder is called {{{name}}}"
            report.add(where, topic, rule, "use {node}, {group}, {index}, {next} or {previous}")
        if not topic.isprintable() or longest(topic) > LONGEST_TOPIC:
            rule = f"a topic has at most {LONGEST_TOPIC} bytes, and no control characters"
            report.add(where, topic, rule, "write a shorter one, of letters and digits")
        if not is_filter and any(sign in topic for sign in "+#"):
            report.add(where, topic, "a message's topic has no wildcards", "name one topic")
        if is_filter and (wrong := filter_fault(topic)):
            report.add(where, topic, wrong, "write for example meter/# or meter/+/power")


def _command(report: Report, software: Command, path: Path) -> None:
    if software.ready is not None:
        subjects = [k for k in ("tcp", "log", "command") if getattr(software.ready, k) is not None]
        if len(subjects) != 1:
            rule = "has exactly one of the keys tcp, log and command"
            report.add((*path, "ready"), None, rule, "keep one, or leave `ready` out")
        if software.ready.within == 0:
            report.add((*path, "ready", "within"), "0 s", "is no time at all", 'write for example "10 s"')
    texts = [((*path, "command"), text) for text in software.command]
    texts += [((*path, "env", key), text) for key, text in software.env.items()]
    texts += [((*path, "files", key), text) for key, text in software.files.items()]
    for where, text in texts:
        if "\0" in text and where[-2] != "files":
            report.add(where, text, "holds a zero byte, where the kernel ends a text", "leave it out")
        if wrong := fault(text):
            report.add(
                where, text, f"is not a template ({wrong})", "see jinja2; a literal {{ is written {{ '{{' }}"
            )
    for key in software.env:
        if not key or "=" in key or "\0" in key:
            report.add(
                (*path, "env", key), key, "is not the name of a variable", "write for example GREETING"
            )
    for key in software.files:
        if any(f"{key}/" == other[: len(key) + 1] for other in software.files):
            rule = "is a file, and another file lies below it"
            report.add((*path, "files", key), key, rule, "rename one of them")
        if not key or ".." in key.split("/") or "\0" in key:
            report.add(
                (*path, "files", key),
                key,
                "is not a path below the node's directory",
                "write a name without ..",
            )
