"""Tests MQTT clients with TLS, logins, wills and kept sessions in virtual time; tshark reads their
packets.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import polars as pl
import pytest
from virtual_place import PROJECT, Place

from capture.delivery import verdicts
from capture.reduce import reduce_run
from contract.rundir import read_plan
from orchestrator.kernel.facts import find_tool

NEEDS_TSHARK = pytest.mark.skipif(find_tool("tshark") is None, reason="no tshark (make setup installs it)")
# The wan link cuts the meter off for longer than its keep-alive time and the delay of its will.
FIVE = """\
name: five
seed: 5
segments: {site: {subnet: 10.1.0.0/24}, centre: {subnet: 10.1.0.0/24}}
nodes:
  broker: {segment: centre, software: {b: {broker: mosquitto, users: {u: p}, allow_anonymous: true}}}
  reader:
    segment: centre
    software:
      r:
        mqtt:
          broker: broker
          version: 5
          receive_maximum: 700
          subscribe: [{topic: "#", qos: 2, no_local: true, retained: new}]
  meter:
    segment: site
    software:
      m:
        mqtt:
          broker: broker
          version: 5
          client_id: "m-{node}"
          user: u
          password: p
          keepalive: 2 s
          session_expiry: 40 s
          backoff: {factor: 2, limit: 4 s}
          will: {topic: state/m, payload: gone, qos: 1, delay: 2 s}
          publish:
            topic: meter/1
            qos: 2
            rate: 5 /s
            topic_alias: true
            json: '{"n": {seq}}'
            retain: true
            user_properties: {unit: kWh}
            message_expiry: 60 s
links: {wan: {between: [site, centre], both: {delay: 20 ms}}}
captures: {broker: {at: node broker}}
run: {hold: 16 s, drain: 10 s}
timeline:
  - {at: hold + 2 s, link-down: wan, for: 9 s}
"""


def lines(run_dir: Path, kind: str) -> list[list[str]]:
    text = (run_dir / "raw" / "messages.csv").read_text()
    return [line.split(",") for line in text.splitlines() if line.startswith(f"{kind},")]


def records(run_dir: Path, endpoint: str) -> list[tuple[str, str]]:
    return [(row[2], row[4]) for row in lines(run_dir, "C") if row[1] == endpoint]


def delivered(run_dir: Path) -> int:
    """Returns the number of messages, after checking that each of them arrived, once."""
    sent, received = (sorted((row[1], row[2]) for row in lines(run_dir, kind)) for kind in "SR")
    assert sent == received
    return len(sent)


def packets(run_dir: Path, wanted: str, *fields: str) -> list[list[str]]:
    """Returns what tshark reads of the packets that match a display filter."""
    options = [word for field in fields for word in ("-e", field)]
    done = subprocess.run(
        ["tshark", "-r", run_dir / "pcap" / "broker.pcap", "-Y", wanted, "-T", "fields", *options],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [line.split("\t") for line in done.stdout.splitlines()]


@NEEDS_TSHARK
def test_a_cut_brings_the_will_and_the_session_continues_as_tshark_reads_it(place: Place) -> None:
    (place.cwd / "five.yaml").write_text(FIVE)
    run = place.run(file="five.yaml")
    said = records(run.run_dir, "meter")
    assert ("connected", "new session") in said and ("connected", "session present") in said, said
    assert records(run.run_dir, "reader").count(("will", "state/m")) == 1
    assert delivered(run.run_dir) > 70

    connects = packets(
        run.run_dir, "mqtt.msgtype == 1 && mqtt.username == u", "mqtt.clientid", "mqtt.willtopic",
        "mqtt.kalive", "mqtt.conflag.cleansess", "mqtt.prop_number",
    )  # fmt: skip
    # Properties: a session expiry of 40 s and a will delay of 2 s. Only the first connect asks for a clean
    # session.
    assert connects[0] == ["m-meter", "state/m", "2", "1", "40,2"]
    assert connects[-1] == ["m-meter", "state/m", "2", "0", "40,2"]
    own = packets(run.run_dir, "mqtt.msgtype == 3 && tcp.dstport == 1883", "mqtt.retain", "mqtt.prop_key")
    assert own and all(re.fullmatch(r"(1,?)+", row[0]) and "unit" in row[1] for row in own)
    lengths = packets(run.run_dir, "mqtt.msgtype == 3 && tcp.dstport == 1883", "mqtt.topic_len")
    of_connections = [int(length) for row in lengths for length in row[0].split(",")]
    assert of_connections[0] == len("meter/1") and 0 in of_connections, "an alias stands for the topic"
    (subscription,) = packets(run.run_dir, "mqtt.msgtype == 8", "mqtt.subscription_options_nl",
                              "mqtt.subscription_options_retain")  # fmt: skip
    assert subscription == ["1", "1"]


@NEEDS_TSHARK
def test_tshark_reads_the_frames_of_a_websocket(place: Place) -> None:
    text = FIVE.replace("broker: mosquitto,", "broker: mosquitto, port: 8080, websocket: true,")
    text = text.replace("version: 5\n", "version: 5\n          websocket: true\n")
    (place.cwd / "ws.yaml").write_text(text)
    run = place.run(file="ws.yaml")
    assert delivered(run.run_dir) > 70
    assert records(run.run_dir, "reader").count(("will", "state/m")) == 1
    frames = packets(run.run_dir, "websocket.mask == 1 && websocket.opcode == 2", "data.data")
    own = [frame for row in frames for frame in row[0].split(",")]
    kinds = [int(frame[0], 16) for frame in own]  # the first byte of a packet holds its type
    assert kinds.count(8) == 1 and kinds.count(3) >= delivered(run.run_dir), "SUBSCRIBE and PUBLISH"
    assert any(b"meter/1".hex() in frame for frame in own), "tshark removes the mask"
    assert len(packets(run.run_dir, "http.response.code == 101", "http.sec_websocket_accept")) >= 3
    assert packets(run.run_dir, "_ws.malformed", "frame.number") == []


def test_three_sites_over_tls_lose_nothing_and_an_intruder_stays_out(place: Place) -> None:
    file = PROJECT / "topologies" / "mqtt-validation.yaml"
    run = place.run("--raw", "-p", "devices=2", "-p", "hold=40s", "-p", "rate=2 /s", file=str(file))
    assert delivered(run.run_dir) > 200
    wills = {detail for what, detail in records(run.run_dir, "reader") if what == "will"}
    assert wills == {"state/north/1", "state/north/2"}
    north = records(run.run_dir, "north1")
    assert [detail.split()[-1] for what, detail in north if what == "tls"] == ["handshake", "resumed"]
    intruder = {(what, detail) for what, detail in records(run.run_dir, "intruder") if what != "tls"}
    assert intruder == {("connecting", ""), ("failed", "refused: NotAuthorized")}


SHARED = """\
name: shared
seed: 5
segments: {lan: {subnet: 10.1.0.0/24}}
nodes:
  broker: {segment: lan, software: {b: {broker: mosquitto}}}
  worker1: &worker
    segment: lan
    software: {w: {mqtt: {broker: broker, version: 5, subscribe: [{topic: "$share/g/m/#", qos: 1}]}}}
  worker2: *worker
  meter:
    segment: lan
    software: {m: {mqtt: {broker: broker, version: 5, publish: {topic: m/1, qos: 1, rate: 5 /s}}}}
run: {hold: 8 s, drain: 2 s}
"""


def test_a_shared_group_gets_each_message_once_between_its_members(place: Place) -> None:
    (place.cwd / "shared.yaml").write_text(SHARED)
    run = place.run("--raw", file="shared.yaml")
    reduce_run(run.run_dir)
    assert delivered(run.run_dir) > 20
    assert {row[3] for row in lines(run.run_dir, "R")} == {"worker1", "worker2"}
    table = pl.read_parquet(run.run_dir / "messages.parquet")
    assert set(table["receiver"]) == {"$share/g/m/# at broker"} and set(table["copies"]) == {1}
    (verdict,) = verdicts(table, read_plan(run.run_dir))
    assert verdict.holds and verdict.expected == table.height
