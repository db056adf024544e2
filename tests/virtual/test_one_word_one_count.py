"""Tests that the terminal's table uses one word for one count, in the whole run and around an event."""

from __future__ import annotations

import re

from virtual_place import Place

LAB = """\
name: field
segments:
  meters: {subnet: 10.50.0.0/24}
  centre: {subnet: 10.50.0.0/24}
nodes:
  server: {segment: centre, software: {answers: {udp: {listen: 9000}}}}
groups:
  meter:
    count: 3
    segment: meters
    software:
      asks:
        udp:
          to: server
          request: {size: 100 B, reply: 400 B, rate: 10 /s, rate_of: client, deadline: 100 ms}
links:
  way: {between: [meters, centre], both: {delay: 20 ms, rate: 1 Mbit/s}}
timeline:
  - {at: hold + 5 s, impair: way, both: {loss: 10 %}, for: 5 s, label: rain}
run: {connect_interval: 100 ms, hold: 20 s, drain: 5 s}
"""
ROW = re.compile(r"^ ([a-z][\w .,:-]+?)  +([\d,.]+)\b", re.MULTILINE)


def test_requests_unanswered_are_not_called_messages_lost(place: Place) -> None:
    """Shows that each loss, all of which are in the rain, has the same number in both places."""
    (place.cwd / "field.yaml").write_text(LAB)
    done = place.vnet("run", "field.yaml", "--time", "virtual", "--seed", "7", "--results", "out")
    assert done.returncode == 0, done.stderr
    rows = dict(ROW.findall(done.stdout + done.stderr))
    lost, unanswered = int(rows["messages lost"]), int(rows["requests unanswered"])
    assert 0 < lost < unanswered
    assert rows["rain, meter.asks: messages lost"] == str(lost)
    assert rows["rain, meter.asks: requests unanswered"] == str(unanswered)
