"""Tests edge nodes of Sparkplug B in virtual time: protoc decodes the messages, and their numbers are those
of the specification across lost connections.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from test_mqtt_runs import NEEDS_TSHARK, lines, packets
from virtual_place import PROJECT, Place

SCHEMA = PROJECT / "images" / "agent" / "src" / "payload" / "sparkplug.proto"
# Connections end after 8 s without DISCONNECT, so more than 256 messages follow a birth.
FILE = """\
name: edge
seed: 3
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  broker: {segment: lan, software: {b: {broker: mosquitto}}}
  host:
    segment: lan
    software: {h: {mqtt: {broker: broker, subscribe: [{topic: "spBv1.0/plant/#", qos: 1}]}}}
  pump:
    segment: lan
    software:
      m:
        mqtt:
          broker: broker
          version: "VERSION"
          churn: {mean: 8 s, times: equal, away: 1 s, abrupt: 100 %}
          publish: {sparkplug: {group_id: plant, metrics: 2}, rate: 60 /s}
captures: {broker: {at: node broker}}
run: {connect_interval: 20 ms, hold: 12 s, drain: 2 s}
"""
TO_BROKER = "mqtt.msgtype == 3 && tcp.dstport == 1883"


def decoded(payload: str) -> str:
    """Decodes a payload in hexadecimal digits with protoc; asserts that the schema has every field."""
    command = ["protoc", "--decode=sparkplug.Payload", f"-I{SCHEMA.parent}", SCHEMA.name]
    octets = bytes.fromhex(payload.replace(":", ""))
    text = subprocess.run(command, input=octets, capture_output=True, check=True).stdout.decode()
    assert not re.search(r"^\s*\d+[: ]", text, re.MULTILINE), "a field that the schema does not have"
    return text


def number(name: str, text: str) -> list[int]:
    return [int(value) for value in re.findall(rf"\b{name}: (\d+)", text)]


def sent(run_dir: Path) -> list[tuple[str, str]]:
    """Returns type and payload of each message to the broker, in order."""
    rows = packets(run_dir, TO_BROKER, "mqtt.topic", "mqtt.msg")
    found = []
    for topics, bodies in rows:
        for topic, body in zip(topics.split(","), bodies.split(","), strict=True):
            found.append((topic.split("/")[2], body))
    return found


@NEEDS_TSHARK
def test_births_data_and_deaths_have_the_numbers_of_the_specification(place: Place) -> None:
    for version in ("3.1.1", "5"):
        (place.cwd / "edge.yaml").write_text(FILE.replace("VERSION", version))
        where = place.run(file="edge.yaml").run_dir
        messages = sent(where)
        kinds = [kind for kind, _ in messages]
        assert kinds[0] == "NBIRTH" and kinds.count("NBIRTH") == 2 and kinds[-1] == "NDEATH"
        again = kinds.index("NBIRTH", 1)
        assert again > 256, "the sequence numbers begin again after 255"
        for at in (0, again):
            birth = decoded(messages[at][1])
            names = re.findall(r'name: "([^"]+)"', birth)
            assert names == ["bdSeq", "Node Control/Rebirth", "signal/0001", "signal/0002"]
            assert number("seq", birth) == [0] and number("long_value", birth) == [int(at > 0)]
            assert number("datatype", birth) == [4, 11, 10, 10]
        # Some of the data: protoc takes 10 ms for each.
        for at in (1, 2, 128, 255, 256, 257, again + 1, again + 2):
            data = decoded(messages[at][1])
            assert kinds[at] == "NDATA" and number("seq", data) == [(at if at < again else at - again) % 256]
            assert len(re.findall(r"double_value: 0(?:\.\d+)?$", data, re.MULTILINE)) == 2
        death = decoded(messages[-1][1])
        assert number("seq", death) == [] and number("long_value", death) == [1]

        noted = [row[2] for row in lines(where, "C") if row[1] == "host"]
        assert noted.count("birth") == 2 and noted.count("death") >= 1
        assert noted.index("death") < len(noted) - 1 - noted[::-1].index("birth"), (
            "the will is before the return"
        )
        rows = lines(where, "S")
        due = {int(row[2]): int(row[4]) for row in rows}
        assert {row[-1] for row in rows} == {"sent"} and len(lines(where, "R")) == len(rows) == kinds.count(
            "NDATA"
        )
        assert number("timestamp", decoded(messages[1][1]))[0] == due[0] // 10**6
