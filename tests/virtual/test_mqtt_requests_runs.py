"""Tests requests over MQTT 5, subscription identifiers and random lengths in virtual time against tshark's
reading of the capture.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl
from test_mqtt_runs import NEEDS_TSHARK, lines, packets
from virtual_place import Place

from capture.delivery import verdicts
from capture.reduce import reduce_run
from contract.rundir import read_plan

# The lab loses nothing, so each packet is in the capture once.
FILE = """\
name: requests
seed: 3
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  broker: {segment: lan, software: {b: {broker: mosquitto}}}
  server:
    segment: lan
    software:
      r:
        mqtt:
          broker: broker
          version: 5
          subscribe: [{topic: ask/#, qos: 1, identifier: 300}, {topic: other, qos: 1}]
  asker:
    segment: lan
    software:
      m:
        mqtt:
          broker: broker
          version: 5
          publish:
            topic: ask/1
            qos: 1
            rate: 20 /s
            payload: bytes
            payload_sizes: {min: 40 B, max: 1 kB, mean: 200 B}
            reply: 60 B
            response_topic: "to/{node}"
captures: {broker: {at: node broker}}
run: {connect_interval: 20 ms, hold: 6 s, drain: 4 s}
expect:
  - {event: misidentified, never: true}
  - {metric: messages_unanswered, class: asker.m, at_most: 0}
"""
TO_BROKER, FROM_BROKER = "tcp.dstport == 1883", "tcp.srcport == 1883"


def published(run_dir: Path, way: str, topic: str, field: str) -> list[str]:
    """Returns one field of each PUBLISH to a topic, in order."""
    rows = packets(run_dir, f'mqtt.msgtype == 3 && {way} && mqtt.topic == "{topic}"', field)
    return [value for row in rows for value in row[0].split(",")]


@NEEDS_TSHARK
def test_tshark_reads_the_properties_of_requests_and_their_replies(place: Place) -> None:
    (place.cwd / "requests.yaml").write_text(FILE)
    where = place.run(file="requests.yaml").run_dir
    sent, received = lines(where, "S"), lines(where, "R")
    count = len(sent)
    assert count > 80 and {row[-1] for row in sent} == {"settled"}
    assert Counter(row[4] for row in received) == {"0": count, "1": count}

    for way in (TO_BROKER, FROM_BROKER):
        asked = published(where, way, "ask/1", "mqtt.prop_string")
        # tshark ends the correlation data (the header of a payload `bytes`) at its first zero byte.
        assert asked == ["to/asker", "vNET"] * count, "response topic and correlation data"
        lengths = [len(text) // 2 for text in published(where, way, "ask/1", "mqtt.msg")]
        assert sorted(lengths) == sorted(int(row[3]) for row in sent), "the lengths of the records"
        assert {len(text) // 2 for text in published(where, way, "to/asker", "mqtt.msg")} == {60}
    identified = published(where, FROM_BROKER, "ask/1", "mqtt.prop_number")
    assert identified == ["300"] * count
    subscribed = packets(where, "mqtt.msgtype == 8", "mqtt.topic", "mqtt.prop_number")
    assert sorted(row[0] for row in subscribed) == ["ask/#", "other", "to/asker"]
    assert [row[1] for row in subscribed if row[0] == "ask/#"] == ["300"]
    assert packets(where, "_ws.malformed", "frame.number") == []

    reduce_run(where)
    table = pl.read_parquet(where / "messages.parquet")
    assert table["replied_ns"].null_count() == 0
    assert (table["replied_ns"] > table["received_ns"]).all()
    judged = verdicts(table, read_plan(where))
    assert judged and all(one.holds for one in judged), judged
