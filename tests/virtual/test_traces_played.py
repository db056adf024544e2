"""Tests links that follow traces in virtual time: they carry the requested rates, and runs are equal byte for
byte.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import polars as pl
import pytest
from virtual_place import Place, Ran

from capture.reduce import reduce_run

FRAME_BITS = 1442 * 8  # 1,400 bytes of UDP
LAB = """\
name: walk
segments:
  left: {subnet: 10.1.0.0/24}
  right: {subnet: 10.1.0.0/24}
  hall: {subnet: 10.2.0.0/24, duplex: half, medium: {trace: {file: walk.csv, repeat: true}}}
nodes:
  c: {segment: hall, software: {in: {udp: {listen: 7000}}, out: {udp: {to: d, push: LOAD}}}}
  d: {segment: hall, software: {in: {udp: {listen: 7000}}, out: {udp: {to: c, push: LOAD}}}}
  a: {segment: left, software: {in: {udp: {listen: 7000}}, out: {udp: {to: b, push: LOAD}}}}
  b: {segment: right, software: {in: {udp: {listen: 7000}}, out: {udp: {to: a, push: LOAD}}}}
links:
  wan:
    between: [left, right]
    forward: {trace: {file: walk.csv, repeat: true}}
    reverse:
      delay: 5 ms
      trace: {file: cell.up, repeat: true, bin: 250 ms}
      queue: {prio: {first: {dscp: EF}, rest: {limit: 200}}}
run: {ramp: 0 s, hold: 6 s, drain: 2 s}
"""
LAB = LAB.replace("LOAD", "{rate: 400 /s, size: 1400 B}")
WALK = "time_s,rate_mbps,delay_ms\n0,4,10\n1,2,20\n2,0,20\n2.5,0.5,40\n4,3,15\n5,4,10\n"
# Rates: 6 Mbit/s for half a second, then 1.5 Mbit/s.
CELL = "".join(f"{ms}\n" for ms in [*range(2, 501, 2), *range(508, 1001, 8), 1000])


def played_at(place: Place) -> Ran:
    for file, text in (("walk.yaml", LAB), ("walk.csv", WALK), ("cell.up", CELL)):
        (place.cwd / file).write_text(text)
    return place.run(file="walk.yaml")


@pytest.fixture(scope="module")
def run(places: Callable[[str], Place]) -> Ran:
    found = played_at(places("walk"))
    reduce_run(found.run_dir)
    return found


@pytest.mark.parametrize(("link", "direction"), [("wan", "forward"), ("wan", "reverse"), ("hall", "both")])
def test_a_saturated_link_carries_what_its_trace_asks(run: Ran, link: str, direction: str) -> None:
    """Shows that a saturated link carries the requested rate in each second, within 1 % and three frames,
    with fifo, strict priority and on a medium.
    """
    table = pl.read_parquet(run.run_dir / "links.parquet").sort("t_ns")
    table = table.filter(pl.col("class").is_null(), link=link, direction=direction)
    busy = table.filter((pl.col("backlog_packets") > 1) & (pl.col("backlog_packets").shift(1) > 1))
    assert busy.height >= 4
    for bps, asked in busy.select("bps", "requested_bps").iter_rows():
        assert bps == pytest.approx(asked, rel=0.01, abs=3 * FRAME_BITS), (bps, asked)
    assert busy["requested_bps"].n_unique() > (1 if direction != "reverse" else 0)


def test_the_changes_are_those_of_the_file_and_in_time(run: Ran) -> None:
    played = pl.read_parquet(run.run_dir / "impairments.parquet").filter(link="wan", direction="forward")
    t0 = run.manifest["t0_ns"]
    due = ((played["planned_ns"] - t0) / 10**6).to_list()
    assert due[:7] == [0, 1000, 2000, 2500, 4000, 5000, 6000]
    assert played["rate_bps"].to_list()[:6] == [4e6, 2e6, 0, 0.5e6, 3e6, 4e6]
    assert played["delay_ns"].to_list()[:6] == [10**7, 2 * 10**7, 2 * 10**7, 4 * 10**7, 15 * 10**6, 10**7]
    assert (played["t_ns"] - played["planned_ns"]).max() <= 5 * 10**6


def test_the_state_before_is_proven(run: Ran) -> None:
    proof = json.loads((run.run_dir / "proof.json").read_text())
    assert {one["verdict"] for one in proof} == {"holds"}, proof
    asked = {(one["direction"], one["quantity"]): one["requested"] for one in proof if one["link"] == "wan"}
    assert asked["forward", "rate"] == 4e6 and asked["forward", "delay"] == 10e6
    assert asked["reverse", "rate"] == 6e6 and asked["reverse", "delay"] == 5e6


def test_a_packets_way_is_never_shorter_than_its_trace(run: Ran) -> None:
    """Shows that each message takes at least the delay requested when it was sent, and that none overtakes
    another.
    """
    messages = (
        pl.read_parquet(run.run_dir / "messages.parquet")
        .filter(pl.col("sender").str.starts_with("a"))
        .drop_nulls("received_ns")
    )
    played = pl.read_parquet(run.run_dir / "impairments.parquet").filter(direction="forward")
    together = messages.sort("sent_ns").join_asof(
        played.sort("t_ns").select("t_ns", "delay_ns"), left_on="sent_ns", right_on="t_ns"
    )
    least = together.filter(pl.col("received_ns") - pl.col("sent_ns") < pl.col("delay_ns"))
    assert together.height > 500 and least.is_empty(), least
    assert not messages["reordered"].any()


@pytest.mark.sweep
def test_it_repeats_to_the_byte(run: Ran, places: Callable[[str], Place]) -> None:
    assert run.hashes["raw/impairments.csv"]
    assert played_at(places("walk-again")).hashes == run.hashes
