"""Tests links between nodes: their bytes count at both nodes, and a link with a long delay loses nothing
while its ends resolve each other's addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from virtual_place import Place

FRAME_BYTES = 200 + 62  # payload and the headers of Ethernet, IPv6 and UDP
LAB = """\
name: wires
segments: {near: {subnet: "fd00:1::/64"}, mid: {subnet: "fd00:1::/64"}, far: {subnet: "fd00:2::/64"}}
nodes:
  a: {software: {q: {udp: {to: b, push: {rate: 3000 /s, size: 200 B}}}}}
  b: {software: {q: {udp: {listen: 7000}}}}
  c: {segment: near, software: {q: {udp: {to: d, push: {rate: 3000 /s, size: 200 B}}}}}
  r: {segment: [mid, far], forward: true}
  d: {segment: far, software: {q: {udp: {listen: 7000}}}}
links:
  wire: {between: [a, b], both: {delay: 400 ms}}
  way: {between: [near, mid], both: {delay: 150 ms}}
run: {hold: 2 s, drain: 2 s}
"""


@pytest.fixture(scope="module")
def run(places: Callable[[str], Place]) -> Path:
    place = places("wires")
    (place.cwd / "wires.yaml").write_text(LAB)
    return place.run("--lab", "wires", file="wires.yaml").run_dir


@pytest.mark.parametrize("sender", ["a", "c"])
def test_nothing_is_lost_in_the_first_round_trip(run: Path, sender: str) -> None:
    sent = pl.read_parquet(run / "messages.parquet").filter(pl.col("sender") == sender)
    assert sent.height > 3000
    assert sent.get_column("received_ns").null_count() == 0


def test_bytes_of_a_wire_count_at_both_of_its_nodes(run: Path) -> None:
    nodes = pl.read_parquet(run / "nodes.parquet")
    link = pl.read_parquet(run / "links.parquet").filter(
        pl.col("link") == "wire", pl.col("direction") == "forward"
    )
    a, b = (nodes.filter(pl.col("node") == name) for name in "ab")
    sent = pl.read_parquet(run / "messages.parquet").filter(pl.col("sender") == "a").height * FRAME_BYTES
    for count in (rise(a, "tx_bytes"), rise(b, "rx_bytes"), rise(link, "bytes")):
        assert count == pytest.approx(sent, rel=0.01)
    assert rise(a, "rx_bytes") < 0.01 * sent


def rise(table: pl.DataFrame, name: str) -> int:
    counts = table.sort("t_ns").get_column(name)
    return int(counts[-1] - counts[0])
