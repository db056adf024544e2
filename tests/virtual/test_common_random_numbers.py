"""Tests that a link draws the same delays and losses in two runs with one seed, whatever other links
carry.
"""

from __future__ import annotations

import polars as pl
from virtual_place import Place, Ran

TWO_LINKS = """\
name: two
parameters: {other: {type: frequency, default: 10 /s}, delay: {type: duration, default: 20 ms}}
segments:
  a: {subnet: 10.1.0.0/24}
  b: {subnet: 10.1.0.0/24}
  c: {subnet: 10.2.0.0/24}
  d: {subnet: 10.2.0.0/24}
nodes:
  left:
    segment: a
    software: {feed: {udp: {to: right, stream: {size: 200 B, rate: 100 /s, class: watched}}}}
  right: {segment: b, software: {sink: {udp: {listen: 9000}}}}
  up:
    segment: c
    software: {feed: {udp: {to: down, stream: {size: 200 B, rate: "${other}", class: other}}}}
  down: {segment: d, software: {sink: {udp: {listen: 9000}}}}
links:
  watched: {between: [a, b], both: {delay: "${delay}", jitter: 5 ms, loss: 10 %}}
  other: {between: [c, d], both: {delay: 20 ms, jitter: 5 ms, loss: 10 %}}
timeline:
  - {at: hold + 1 s, impair: watched, both: {delay: "${delay}", jitter: 5 ms, loss: 20 %}}
run: {hold: 2 s}
"""


def lost_and_delays(ran: Ran) -> tuple[set[int], dict[int, float]]:
    """Returns the sequence numbers of the lost messages of class `watched`, and the delays of the others in
    ms.
    """
    table = pl.read_parquet(ran.run_dir / "messages.parquet").filter(pl.col("class") == "watched")
    took = ((pl.col("received_ns") - pl.col("sent_ns")) / 1e6).alias("ms")
    rows = table.select("seq", took).sort("seq").iter_rows()
    delays = dict(rows)
    return {seq for seq, ms in delays.items() if ms is None}, {
        s: ms for s, ms in delays.items() if ms is not None
    }


def test_one_link_s_draws_depend_on_neither_its_delay_nor_the_others_traffic(place: Place) -> None:
    """Shows that a link's losses stay the same with another delay and other traffic, also after the timeline
    changed its impairment.
    """
    (place.cwd / "two.yaml").write_text(TWO_LINKS)
    lost, delays = lost_and_delays(place.run("-p", "other=10 /s", file="two.yaml", seed=3))
    there = place.run("-p", "other=70 /s", "-p", "delay=30 ms", file="two.yaml", seed=3)
    lost_there, delays_there = lost_and_delays(there)
    assert len(lost) > 10 and lost == lost_there
    assert all(abs(delays_there[seq] - ms - 10) < 0.05 for seq, ms in delays.items())
    assert "unseeded" not in there.said
