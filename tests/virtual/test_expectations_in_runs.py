"""Tests expectations of real runs in virtual time in command line, page, JUnit file and exit status."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

from virtual_place import Place

LAB = """\
name: watched
seed: 1
segments:
  left: {subnet: 10.50.0.0/24}
  right: {subnet: 10.50.0.0/24}
nodes:
  broker: {segment: right, software: {mosquitto: {broker: mosquitto}}}
  ear: {segment: right, software: {ear: {mqtt: {broker: broker, subscribe: [{topic: "t/#", qos: 1}]}}}}
groups:
  mouth:
    count: 2
    segment: left
    software:
      say: {mqtt: {broker: broker, publish: {topic: "t/{index}", qos: 1, rate: 20 /s, class: site-a}}}
links:
  wan: {between: [left, right], both: {delay: 10 ms}}
timeline:
  - {at: hold + 6 s, link-down: wan, for: 2 s, label: cut}
  - {at: hold + 18 s, impair: wan, both: {delay: 30 ms}, for: 15 s, label: rain}
run: {connect_interval: 100 ms, hold: 40 s, drain: 10 s}
expect:
  - {metric: latency_p50, class: site-a, below: 60 ms}
  - {metric: messages_lost, qos: 1, at_most: 0}
  - {metric: recovery, after: cut, below: 10 s}
  - {metric: throughput, link: wan, at_least: 1 kbit/s, during: rain}
  - {delivered: at-least-once, class: site-a}
  - {log: broker, never: "panic"}
  - {event: connected, eventually: {within: 5 s}}
  - {metric: messages_received, class: site-a, eventually: {above: 100, within: 10 s}}
"""


def test_a_run_is_judged_by_its_file_and_by_more(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (tmp_path / "watched.yaml").write_text(LAB)
    ran = place.vnet(
        "run", "watched.yaml", "--time", "virtual", "--out", "out", "--junit", "verdicts.xml", "--json",
        "--fail-if", "latency_max[class=site-a] > 1 s",
    )  # fmt: skip
    answer = json.loads(ran.stdout)
    found = {one["expectation"]: one["verdict"] for one in answer["expectations"]}
    assert ran.returncode == 7, ran.stderr
    assert found.pop("latency_max of class site-a at most 1 s") == "fails", "the link was down for 2 s"
    assert len(found) == 8 and set(found.values()) == {"holds"}, answer["expectations"]
    names = [case.get("name") for case in ElementTree.parse(tmp_path / "verdicts.xml").iter("failure")]
    assert len(names) == 1
    page = (tmp_path / "out/report/index.html").read_text()
    assert "1 of 9 expectations fails." in page

    more = place.vnet("expect", "out", "latency_p50 < 60 ms", "recovery > 1 s after cut", "--json")
    assert more.returncode == 0, more.stderr
    one = json.loads(place.vnet("expect", "out", "recovery > 1 s after cut", "--json").stdout)["expectations"]
    assert one[0]["verdict"] == "holds" and one[0]["reason"].endswith(" s")
    assert place.vnet("expect", "out", "latency_p50 < 1 ms").returncode == 7
    assert place.vnet("expect", "out", "latency_p99.9[class=site-a] < 10 s").returncode == 8, (
        "too few messages"
    )
    wrong = place.vnet("expect", "out", "latency_p50[class=site-b] < 1 ms")
    assert wrong.returncode == 3 and 'did you mean "site-a"?' in wrong.stderr
    assert place.vnet("report", "out").returncode == 7


def test_a_wrong_file_makes_nothing(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (tmp_path / "watched.yaml").write_text(LAB.replace("after: cut", "after: cat"))
    ran = place.vnet("run", "watched.yaml", "--time", "virtual", "--out", "out")
    assert ran.returncode == 3 and 'did you mean "cut"?' in ran.stderr and not (tmp_path / "out").exists()
