"""Tests NATS: the plan of its clients, their mistakes, and a run in virtual time whose capture an independent
reader of the protocol's text reads in the same way.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from virtual_place import PROJECT, Place

from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.software.nats.broker import PROGRAM
from orchestrator.software.nats.client import matches
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import parse

EAR = "nats: {broker: server, subscribe: [m.*.x]}"
FILE = f"""\
name: nats
segments: {{lan: {{subnet: 10.1.0.0/24}}}}
nodes:
  server: {{segment: lan, software: {{b: {{broker: nats-server}}}}}}
  all: {{segment: lan, software: {{ear: {{nats: {{broker: server, subscribe: [">"]}}}}}}}}
  deaf: {{segment: lan, software: {{ear: {{nats: {{broker: server, subscribe: [m.x]}}}}}}}}
groups:
  ear: {{count: 2, segment: lan, software: {{ear: {{{EAR}}}}}}}
  worker: {{count: 2, segment: lan, software: {{w: {{nats: {{broker: server, subscribe: [m.>], group: g}}}}}}}}
  mouth: {{count: 2, segment: lan, software: {{say: {{nats: {{broker: server, publish: {{subject: "m.{{index}}.x", rate: 1 /s}}}}}}}}}}
run: {{hold: 10 s}}
"""  # noqa: E501


def planned(new: str = EAR) -> Plan:
    return make_plan(parse("nats.yaml", FILE.replace(EAR, new).encode()))


def test_each_message_goes_to_its_subscribers_and_to_one_of_a_queue_group() -> None:
    plan = planned()
    flow = next(flow for flow in plan.flows if flow.name == "mouth2.say")
    assert flow.topic == "m.2.x"
    alone, group = (plan.receivers[delivery.receivers] for delivery in flow.deliveries)
    assert alone == ("all", "ear1", "ear2") and group == ("queue group g at server",)
    assert plan.shared == {"queue group g at server": ("worker1", "worker2")}
    guarantee = flow.deliveries[0].guarantee
    assert guarantee.single and guarantee.while_session and not guarantee.lossless


@pytest.mark.parametrize(
    ("pattern", "subject", "match"),
    [
        ("a.b", "a.b", True), ("a.*", "a.b", True), ("a.*", "a.b.c", False), ("a.>", "a.b.c", True),
        ("a.>", "a", False), (">", "a", True), ("*.b", "a.c", False), ("a.*.c", "a.b.c", True),
    ],
)  # fmt: skip
def test_wildcards_match_words(pattern: str, subject: str, match: bool) -> None:
    assert matches(pattern, subject) is match


@pytest.mark.parametrize(
    ("new", "place", "rule"),
    [
        ("nats: {broker: server}", "", "neither publishes nor subscribes"),
        ("nats: {broker: server, subscribe: [m.*, m.1]}", "subscribe[1]", "overlaps another subject"),
        ("nats: {broker: server, subscribe: [a.>.b]}", "subscribe[0]", "all further words"),
        ("nats: {broker: server, subscribe: [a..b]}", "subscribe[0]", "is no subject"),
        ("nats: {broker: server, publish: {subject: 'a.*', rate: 1 /s}}", "publish.subject", "no wildcards"),
        ("nats: {broker: deaf, subscribe: [a]}", "broker", "no broker runs on this node that speaks nats"),
        ("nats: {broker: server, publish: {subject: a, rate: 1 /s}, group: g}", "group", "has none"),
        (
            "nats: {broker: server, publish: {subject: a, rate: 1 /s, payload_size: 9 B}}",
            "publish.payload_size",
            "from 28 to",
        ),
    ],
)
def test_mistakes_are_named(new: str, place: str, rule: str) -> None:
    with pytest.raises(TopologyError) as caught:
        planned(new=new)
    lines = [str(one) for one in caught.value.problems]
    start = f"groups.ear.software.ear.nats{'.' if place else ''}{place}: "
    assert any(start in line and rule in line for line in lines), lines


def test_a_login_that_the_broker_does_not_admit_is_refused() -> None:
    text = FILE.replace("broker: nats-server", "broker: nats-server, users: {a: b}")
    with pytest.raises(TopologyError) as caught:
        parse("nats.yaml", text.encode())
    assert any("does not admit this login" in str(one) for one in caught.value.problems)


@pytest.mark.skipif(not Path(PROGRAM).exists(), reason="no NATS server: make brokers BROKERS=nats")
def test_messages_are_delivered_once_and_the_capture_is_what_its_text_says(place: Place) -> None:
    file = str(PROJECT / "topologies" / "nats.yaml")
    run = place.run("-p", "meters=3", "-p", "hold=15s", file=file)
    messages = pl.read_parquet(run.run_dir / "messages.parquet")
    assert set(messages["outcome"]) <= {"sent", "unsent"}
    assert messages["copies"].max() == 1, "at most once"
    came = messages.filter(pl.col("received_ns").is_not_null())
    assert came.height > 0.8 * messages.height
    of = Counter(messages["receiver"])
    assert of["monitor"] == of["queue group workers at server"] > 150
    verdicts = json.loads((run.run_dir / "verdicts.json").read_text())["verdicts"]
    assert {one["verdict"] for one in verdicts if one["of"] == "guarantee"} == {"holds"}
    records = (run.run_dir / "raw").rglob("messages.csv")
    workers = {
        m[1] for path in records for m in re.finditer(r"^R,\d+,\d+,(worker\d),", path.read_text(), re.M)
    }
    assert workers == {"worker1", "worker2", "worker3"}, "the server spreads a queue group's messages"

    packets = pl.read_parquet(run.run_dir / "packets" / "server.parquet")
    kinds = Counter(packets["app_types"].drop_nulls().explode().to_list())
    assert kinds == operations(run.run_dir / "pcap" / "server.pcap")
    assert kinds["PUB"] > 150 and kinds["MSG"] > 1.5 * kinds["PUB"] and "UNKNOWN" not in kinds
    data = packets.filter(pl.col("app") == "nats")["data_bytes"].sum()
    assert data >= 200 * (kinds["PUB"] + kinds["MSG"])


def operations(pcap: Path) -> Counter[str]:
    """Returns the operations of all connections, from the bytes of each as tshark puts them together."""
    argv = ["tshark", "-n", "-r", str(pcap), "-q", "-z", "conv,tcp"]
    count = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.count("<->")
    found: Counter[str] = Counter()
    for stream in range(count):
        argv = ["tshark", "-n", "-r", str(pcap), "-q", "-z", f"follow,tcp,raw,{stream}"]
        said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        lines = [line for line in said.splitlines() if re.fullmatch(r"\t?[0-9a-f]+", line)]
        for back in (True, False):
            parts = (line.strip() for line in lines if line.startswith("\t") is back)
            found.update(_words(bytes.fromhex("".join(parts))))
    return found


def _words(stream: bytes) -> list[str]:
    """Returns the operations of one direction, by a regular expression in place of a state machine."""
    words: list[str] = []
    while stream:
        line, _, stream = stream.partition(b"\r\n")
        word = re.match(rb"[A-Za-z+-]+", line)
        assert word is not None, line[:80]
        words.append(word[0].decode().upper())
        if words[-1] in ("PUB", "MSG"):
            length = int(line.split()[-1])
            assert stream[length : length + 2] in (b"\r\n", b"\r", b""), line
            if len(stream) < length + 2:
                words.pop()
            stream = stream[length + 2 :]
    return words
