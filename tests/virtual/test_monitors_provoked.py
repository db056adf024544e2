"""Causes in virtual time what each monitor watches for, and has labs beside it in which the monitor stays
below its threshold.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from virtual_place import Place

from capture.reduce import reduce_run
from contract import manifest
from orchestrator.cli.headlines import explained
from reports.report import report
from reports.sections.section import words

# Each pair is a network of its own: a flood above the link's rate, with TCP beside it; a program that does
# not read; TCP over a short queue; a broker with a receiver whose queue overflows.
PROVOKED = """\
name: provoked
segments:
  flood-l: {subnet: 10.1.0.0/24}
  flood-r: {subnet: 10.1.0.0/24}
  near: {subnet: 10.2.0.0/24}
  asked-l: {subnet: 10.3.0.0/24}
  asked-r: {subnet: 10.3.0.0/24}
  far-l: {subnet: 10.5.0.0/24}
  far-r: {subnet: 10.5.0.0/24}
  held: {subnet: 10.6.0.0/24}
  free: {subnet: 10.7.0.0/24}
nodes:
  flood-a: {segment: flood-l, software: {q: {udp: {to: flood-b, push: {rate: 1000 /s, size: 200 B}}}}}
  flood-b: {segment: flood-r, software: {q: {udp: {listen: 7000}}}}
  talks:
    segment: near
    software:
      talk:
        command:
          - python3
          - -c
          - |
            import socket, time
            to = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            for _ in range(1000):
                time.sleep(0.001)
                to.sendto(bytes(1000), ("deaf", 7000))
        start: hold
        at_end: exited
  deaf:
    segment: near
    software:
      sleep:
        command:
          - python3
          - -c
          - |
            import socket, time
            held = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            held.bind(("", 7000))
            time.sleep(100)
  bulk-a: {segment: flood-l, software: {up: {bulk: {to: bulk-b}}}}
  bulk-b: {segment: flood-r, software: {sink: {bulk: {listen: 5001}}}}
  asked-a: {segment: asked-l, software: {up: {bulk: {to: asked-b}}}}
  asked-b: {segment: asked-r, software: {sink: {bulk: {listen: 5001}}}}
  broker: {segment: far-r, software: {mosquitto: {broker: mosquitto, max_inflight_messages: 2, max_queued_messages: 10}}}
  mouth: {segment: far-r, software: {m: {mqtt: {broker: broker, publish: {topic: t/1, qos: 1, rate: 100 /s, payload: bytes, payload_size: 100 B}}}}}
  ear: {segment: far-l, software: {e: {mqtt: {broker: broker, subscribe: [{topic: "t/#", qos: 1}]}}}}
HELD
FREE
links:
  flood: {between: [flood-l, flood-r], forward: {rate: 1 Mbit/s}}
  asked: {between: [asked-l, asked-r], both: {rate: 2 Mbit/s, delay: 5 ms, limit: 15}}
  far: {between: [far-l, far-r], both: {delay: 50 ms}}
run: {hold: 5 s, drain: 4 s}
"""  # noqa: E501 - lines of YAML
# The receiver also publishes, so its kernel treats the connection as interactive and delays acknowledgements.
# The broker's sockets have Nagle's algorithm, as mosquitto's have by default, or not.
PAIR = """\
  SIDE-broker: {segment: SIDE, software: {mosquitto: {broker: mosquitto, nodelay: NODELAY}}}
  SIDE-mouth: {segment: SIDE, software: {m: {mqtt: {broker: SIDE-broker, publish: {topic: t/1, qos: 0, rate: 100 /s, payload: bytes, payload_size: 100 B}}}}}
  SIDE-ear: {segment: SIDE, software: {e: {mqtt: {broker: SIDE-broker, publish: {topic: own/1, qos: 1, rate: 20 /s, payload: bytes, payload_size: 100 B}, subscribe: [{topic: "t/#", qos: 0}]}}}}
"""  # noqa: E501 - lines of YAML
Readings = dict[str, dict[str, Any]]


def readings(run_dir: Path) -> Readings:
    return {one["name"]: one for one in manifest.load(run_dir).monitors}


@pytest.fixture(scope="module")
def provoked(places: Callable[[str], Place]) -> Path:
    held, free = (PAIR.replace("SIDE", side) for side in ("held", "free"))
    text = PROVOKED.replace("HELD\n", held.replace("NODELAY", "false"))
    place = places("provoked")
    (place.cwd / "lab.yaml").write_text(text.replace("FREE\n", free.replace("NODELAY", "true")))
    run_dir = place.run("--lab", "monitored", "--raw", file="lab.yaml").run_dir
    reduce_run(run_dir)
    return run_dir


@pytest.mark.parametrize(
    ("monitor", "subject"),
    [
        ("queue-overflow", "link flood forward: its queue dropped"),
        ("link-rate", "link flood forward was at its rate in"),
        ("socket-drops", "deaf dropped"),
        ("retransmissions", "bulk-a sent"),
        ("broker-limits", "broker.mosquitto dropped messages for ear"),
        ("delayed-acks", ""),
    ],
)
def test_a_monitor_reaches_its_threshold_where_its_cause_is_provoked(
    provoked: Path, monitor: str, subject: str
) -> None:
    one = readings(provoked)[monitor]
    assert one["state"] == "reached" and one["value"] >= one["threshold"], one
    assert one["text"].startswith(subject)


def test_page_and_terminal_have_the_sentences(provoked: Path) -> None:
    reached = {name: one["text"] for name, one in readings(provoked).items() if one["state"] == "reached"}
    assert dict(line.split(": ", 1) for line, _ in explained(provoked)) == reached
    page = report(provoked).read_text()
    assert ">Monitors<" in page
    assert [text for text in reached.values() if words(text) not in page] == []


def test_retransmissions_name_the_queue_that_overflowed_and_none_that_the_file_makes_short(
    provoked: Path,
) -> None:
    text = readings(provoked)["retransmissions"]["text"]
    assert "the queue of link flood forward dropped" in text and "asked" not in text


def test_only_the_class_behind_nagle_s_algorithm_has_the_plateau(provoked: Path) -> None:
    one = readings(provoked)["delayed-acks"]
    assert "messages of class held-mouth.m arrived in bursts" in one["text"] and "free" not in one["text"]
    assert one["value"] > 50
