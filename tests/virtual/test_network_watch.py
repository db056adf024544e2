"""Tests that programs that change their node's network during the run make it suspect, even if they undo the
change; events of the timeline do not.
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
        start: hold
        at_end: exited
        command: |
          sleep 1; ip link set eth0 down; ip link set eth0 up
          ip route add blackhole 10.97.0.0/16; ip route del blackhole 10.97.0.0/16
          ip route add 10.99.0.0/16 via $(hostname -I | cut -d' ' -f1)
  b:
    software:
      sink: {udp: {listen: 9000}}
      sneak:
        start: hold
        at_end: exited
        command: |
          sleep 1; own=$(ip -4 -o addr show dev eth0 | cut -d' ' -f7)
          ip neigh replace 10.255.0.77 lladdr 02:00:00:00:00:01 dev eth0
          ip link set eth0 mtu 1300; ip link set eth0 mtu 1500; ip addr del $own dev eth0
  early: {segment: lan, software: {e: {command: "ip link set eth0 mtu 1400; exec sleep 60"}}}
  timed: {segment: lan, software: {e: {command: "exec sleep 60"}}}
  cut: {software: {e: {command: "exec sleep 60"}}}
  killed: {software: {e: {command: "exec sleep 60"}}}
links:
  way: {between: [a, b], both: {delay: 20 ms}}
  other: {between: [cut, killed], both: {delay: 20 ms}}
timeline:
  - {at: hold + 1 s, link-down: other}
  - {at: hold + 2 s, link-up: other}
  - {at: hold + 1 s, run: "ip link set eth0 mtu 1300", on: [timed]}
  - {at: hold + 3 s, kill: killed}
  - {at: hold + 4 s, start: killed}
run: {connect_interval: 10 ms, hold: 6 s, drain: 1 s}
"""
CHANGED = (
    "nodes.a: eth0 set down", "nodes.a: blackhole route to 10.97.0.0/16",
    "nodes.b: eth0: neighbour 10.255.0.77 set", "nodes.b: eth0: MTU 1300 instead of 1500",
    "nodes.b: eth0: address 10.255.0.2 removed",
)  # fmt: skip


def test_what_programs_do_to_the_network_marks_the_run(tmp_path: Path) -> None:
    (tmp_path / "sneak.yaml").write_text(LAB)
    found = {w["code"]: w for w in Place(tmp_path).run(file="sneak.yaml").manifest["warnings"]}
    changed, added = found["network-changed"], found["network-added"]
    assert changed["suspect"] and not added["suspect"]
    assert all(one in changed["text"] for one in CHANGED), changed["text"]
    assert added["text"].endswith("in the run: nodes.a: route to 10.99.0.0/16 added")
    assert not any(f"nodes.{node}:" in changed["text"] for node in ("early", "timed", "cut", "killed"))
    assert "more" not in changed["text"], "otherwise the line above proves nothing"
