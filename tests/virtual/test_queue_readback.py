"""Tests a node that changes its own queue with tc during a run, after the link proof: the run reports the
change.
"""

from __future__ import annotations

from pathlib import Path

from virtual_place import Place

LAB = """\
name: sneak
segments: {lan: {subnet: 10.94.0.0/24}}
nodes:
  a:
    segment: lan
    software:
      tx: {udp: {to: [b], push: {size: 100 B, rate: 10 /s}}}
      sneak:
        command: |
          sleep 2; tc qdisc replace dev eth1 root netem delay 120ms limit 1000
          tc qdisc add dev eth0 root tbf rate 1mbit burst 5kb latency 9ms
        start: ramp
        at_end: exited
  b: {software: {sink: {udp: {listen: 9000}}}}
links:
  way: {between: [a, b], both: {delay: 20 ms}}
run: {connect_interval: 10 ms, hold: 4 s, drain: 1 s}
"""


def test_what_a_node_did_to_its_queues_marks_the_run(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (tmp_path / "sneak.yaml").write_text(LAB)
    ran = place.run(file="sneak.yaml")
    (said,) = [w["text"] for w in ran.manifest["warnings"] if w["code"] == "changed"]
    assert "links.way.forward.delay" in said
    assert "vnet-sneak.a.eth0: requested nothing, read back tbf" in said
    assert ran.manifest["suspect"] is True


PUT_BACK = """\
name: back
segments: {lan: {subnet: 10.94.0.0/24}}
nodes:
  a:
    segment: lan
    software:
      tx: {udp: {to: [b], push: {size: 100 B, rate: 10 /s}}}
      sneak:
        command: |
          sleep 1; tc qdisc change dev eth1 root netem delay 120ms limit 1000
          tc qdisc add dev eth0 root tbf rate 1mbit burst 5kb latency 9ms
          sleep 2; tc qdisc del dev eth0 root
        start: hold
        at_end: exited
      idle: {command: exec sleep 60}
  b: {software: {sink: {udp: {listen: 9000}}}}
links:
  way: {between: [a, b], both: {delay: 20 ms}}
timeline:
  - {at: hold + 500 ms, impair: way, both: {delay: 20 ms}, label: while all is well}
  - {at: hold + 2 s, kill: a, software: idle, label: an end}
  - {at: hold + 2500 ms, impair: way, both: {delay: 30 ms}, label: a change}
run: {connect_interval: 10 ms, hold: 4 s, drain: 1 s}
"""


def test_what_was_changed_and_put_back_is_found_by_an_event_in_between(tmp_path: Path) -> None:
    """Shows that the read-back before a later event finds a changed queue, although at the end all queues are
    as requested.
    """
    place = Place(tmp_path)
    (tmp_path / "back.yaml").write_text(PUT_BACK)
    ran = place.run(file="back.yaml")
    (said,) = [w["text"] for w in ran.manifest["warnings"] if w["code"] == "changed"]
    assert "links.way.forward.delay" in said and "(before an end)" in said
    assert "vnet-back.a.eth0: requested nothing, read back tbf (before an end)" in said
    assert "well" not in said and "(before a change)" not in said, "each difference once"
    assert ran.manifest["suspect"] is True


def test_events_alone_are_no_change(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (tmp_path / "back.yaml").write_text(PUT_BACK.replace("tc qdisc", "true"))
    ran = place.run("--strict", file="back.yaml")
    assert not [w for w in ran.manifest["warnings"] if w["code"] in ("changed", "unread")]
