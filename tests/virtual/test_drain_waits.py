"""Tests that the drain waits for messages in flight: in a slow queue, or at a TCP sender that will retransmit
them.
"""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
from virtual_place import Place

from capture.reduce import reduce_run

LAB = """\
name: drains
seed: 1
segments:
  l: {subnet: 10.1.0.0/24}
  r: {subnet: 10.1.0.0/24}
  x: {subnet: 10.2.0.0/24}
  y: {subnet: 10.2.0.0/24}
nodes:
  broker: {segment: r, software: {m: {broker: mosquitto}}}
  ear: {segment: r, software: {e: {mqtt: {broker: broker, subscribe: [{topic: "t/#", qos: 0}]}}}}
  mouth:
    segment: l
    software: {p: {mqtt: {broker: broker, publish: {topic: t/1, qos: 0, rate: 10 /s, rate_of: client}}}}
  a: {segment: x, software: {q: {udp: {to: b, push: {rate: 2 /s, size: 958 B}}}}}
  b: {segment: y, software: {q: {udp: {listen: 7000}}}}
links:
  wan: {between: [l, r], both: {delay: 20 ms}}
  slow: {between: [x, y], forward: {rate: 9600 bit/s, limit: 100}}
timeline:
  - {at: hold + 1 s, link-down: wan, for: 1900 ms}
run: {hold: 3 s, drain: 60 s}
"""


def test_slow_queues_and_repetitions_are_waited_for_and_nothing_more(tmp_path: Path) -> None:
    """Shows that all messages arrive, over a link on which a frame takes 0.83 s and by TCP retransmissions
    1.9 s later, and that the drain then ends early.
    """
    place = Place(tmp_path)
    (tmp_path / "drains.yaml").write_text(LAB)
    run = place.run(file="drains.yaml").run_dir
    reduce_run(run)
    manifest = json.loads((run / "manifest.json").read_text())
    messages = pl.read_parquet(run / "messages.parquet")
    assert messages.height > 25 and messages["received_ns"].null_count() == 0
    begin, end = manifest["phases"]["drain"]
    assert messages["received_ns"].max() > begin + 1.5e9 and end - begin < 15e9, "and not to the drain's end"
