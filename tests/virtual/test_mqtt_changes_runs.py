"""Tests MQTT clients that unsubscribe, that connect for some time, or that stand for many, in virtual time;
tshark and the agent agree on the number of packets of each type.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from test_mqtt_runs import NEEDS_TSHARK, lines, packets, records
from virtual_place import Place

from capture.delivery import verdicts
from capture.reduce import reduce_run
from contract.rundir import read_plan

# The lab loses and retransmits nothing, so each packet is in the capture once. `exact` uses QoS 2, the gate
# QoS 1.
CHANGES = """\
name: changes
seed: 3
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  broker: {segment: lan, software: {b: {broker: mosquitto}}}
  gate:
    segment: lan
    software:
      m:
        mqtt:
          broker: broker
          version: VERSION
          sessions: 12
          publish: {topic: "m/{session}", qos: 1, rate: 1 /s, rate_of: client}
  exact:
    segment: lan
    software:
      m:
        mqtt:
          broker: broker
          version: VERSION
          keepalive: 2 s
          publish:
            topic: exact
            qos: 2
            rate: [{from: 0 s, rate: 2 /s}, {from: hold + 8 s, rate: 0 /s}]
  comer:
    segment: lan
    software:
      m:
        mqtt:
          broker: broker
          version: VERSION
          clean_session: false
          churn: {mean: 2 s, away: 500 ms, abrupt: 50 %}
          will: {topic: state/c, qos: 1}
          publish: {topic: came, qos: 1, rate: 3 /s}
  reader:
    segment: lan
    software:
      r:
        mqtt:
          broker: broker
          version: VERSION
          subscribe: [{topic: m/#, qos: 1, unsubscribed: [{from: hold + 4 s, for: 6 s}]}]
  watcher:
    segment: lan
    software:
      r:
        mqtt:
          broker: broker
          version: VERSION
          subscribe: [{topic: exact, qos: 2}, {topic: came, qos: 1}, {topic: state/#, qos: 1}]
captures: {broker: {at: node broker}}
run: {connect_interval: 20 ms, hold: 16 s, drain: 4 s}
"""
TYPES = {1: "CONNECT", 3: "PUBLISH", 8: "SUBSCRIBE", 10: "UNSUBSCRIBE", 12: "PINGREQ", 14: "DISCONNECT"}
ANSWERS = {1: 2, 8: 9, 10: 11, 12: 13}  # type -> type of its answer


def said(run_dir: Path, what: str) -> int:
    return sum(row[2] == what for row in lines(run_dir, "C"))


def of_tshark(run_dir: Path) -> Counter[int]:
    rows = packets(run_dir, "mqtt", "mqtt.msgtype")
    return Counter(int(kind) for row in rows for kind in row[0].split(","))


@NEEDS_TSHARK
@pytest.mark.parametrize("version", ["3.1.1", "5"])
def test_tshark_and_the_agent_agree_on_each_type_of_packet(place: Place, version: str) -> None:
    (place.cwd / "changes.yaml").write_text(CHANGES.replace("VERSION", f'"{version}"'))
    run = place.run(file="changes.yaml")
    where, counted = run.run_dir, of_tshark(run.run_dir)
    sent, received = lines(where, "S"), lines(where, "R")
    abrupt = [row for row in lines(where, "C") if row[2] == "disconnected" and "abruptly" in row[-1]]
    assert counted[1] == said(where, "connecting") > 17
    assert counted[14] == said(where, "disconnected") - len(abrupt) and abrupt
    assert counted[8] == said(where, "subscribed") == 3
    assert counted[10] == said(where, "unsubscribing") == 1 and said(where, "unsubscribed") == 1
    wills = records(where, "watcher").count(("will", "state/c"))
    assert wills == len(abrupt)
    assert counted[3] == len(sent) + len(received) + wills
    exact = 2 * sum(row[1] == exact_flow(where) for row in sent)
    assert counted[5] == counted[6] == counted[7] == exact > 0
    assert counted[4] == counted[3] - exact
    assert counted[12] > 2, "exact is silent for longer than its keep-alive"
    assert all(counted[asked] == counted[answer] for asked, answer in ANSWERS.items()), counted

    reduce_run(where)
    plan = read_plan(where)
    seen = pl.read_parquet(where / "packets" / "broker.parquet")["app_types"].explode().drop_nulls()
    ours = Counter(seen.to_list())
    assert {name: ours[name] for name in TYPES.values()} == {
        name: counted[kind] for kind, name in TYPES.items()
    }
    judged = verdicts(pl.read_parquet(where / "messages.parquet"), plan)
    assert judged and all(one.holds for one in judged), judged
    gate = next(one for one in judged if one.class_ == "gate.m")
    all_of_it = sum(row[1] not in {exact_flow(where), flow_of(where, "comer")} for row in sent)
    assert 0 < gate.expected < all_of_it, "what was sent without a subscription is not expected"


def flow_of(run_dir: Path, sender: str) -> str:
    flows = read_plan(run_dir).flows
    return str(next(number for number, flow in enumerate(flows) if flow.sender == sender))


def exact_flow(run_dir: Path) -> str:
    return flow_of(run_dir, "exact")
