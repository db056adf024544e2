"""Defines the valid file, the form of a case, and the places in the file that several cases change."""

from __future__ import annotations

from dataclasses import dataclass

BASE = """\
name: small
parameters:
  clients: {type: int, default: 3, min: 1, max: 9}
  hold: {type: duration, default: 20 s}
segments:
  field: {subnet: 10.1.0.0/24}
  office: {}
nodes:
  broker:
    segment: office
    software:
      mosquitto: {broker: mosquitto}
  reader:
    segment: office
    software:
      sub:
        mqtt: {broker: broker, subscribe: [{topic: m/#, qos: 1}]}
groups:
  client:
    count: ${clients}
    segment: field
    software:
      pub:
        mqtt:
          broker: broker
          publish: {topic: "m/{index}", qos: 1, rate: 10 /s}
links:
  wan:
    between: [field, office]
    both: {delay: 10 ms, jitter: 1 ms}
captures:
  main: {at: node broker}
timeline:
  - {at: hold + 5 s, link-down: wan, for: 2 s}
run: {connect_interval: 100 ms, hold: "${hold}", drain: 5 s}
"""


@dataclass(frozen=True)
class Case:
    """A change of BASE from `old` to `new`, after which `place: rule` must be among the problems, at the
    given line.
    """

    name: str
    old: str
    new: str
    place: str
    rule: str
    line: int | None = None  # None: the line where `old` begins in BASE


NET = "field: {subnet: 10.1.0.0/24}"
WAN = "both: {delay: 10 ms, jitter: 1 ms}"
BROKER = "mosquitto: {broker: mosquitto}"
SUB = "mqtt: {broker: broker, subscribe: [{topic: m/#, qos: 1}]}"
PUB = 'publish: {topic: "m/{index}", qos: 1, rate: 10 /s}'
EVENT = "{at: hold + 5 s, link-down: wan, for: 2 s}"
RUN = 'run: {connect_interval: 100 ms, hold: "${hold}", drain: 5 s}'
BETWEEN = "between: [field, office]"
CLIENTS = "clients: {type: int, default: 3, min: 1, max: 9}"
HOLD = "hold: {type: duration, default: 20 s}"
EDGE = "links.wan.both"
MQTT = "nodes.reader.software.sub.mqtt"
PUBLISH = "groups.client.software.pub.mqtt.publish"


def impaired(new: str) -> str:
    return f"both: {{{new}}}"
