"""Tests traces made from measured round-trip times, in the two file formats of the LENS dataset."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.plan import Plan
from orchestrator.plan.build import make_plan
from orchestrator.topology import TopologyError
from orchestrator.topology.loading import load
from orchestrator.topology.round_trips import Column, is_one, read
from orchestrator.topology.traces import TraceError

MS = 10**6
# Lines from the dataset's README (LENS), 10 ms apart; -1: the packet was lost, 0: not known.
LENS = """\
timestamp,rtt,uplink,downlink
1705744800616897349,0,0,-1
1705744800626565141,120.126123,72.439368,47.68675
1705744800636737402,109.976237,62.295097,47.681199
1705744800666731717,0,-1,0
1705744800676416449,-1,0,0
1705744800736681812,97.297734,49.362602,47.935125
"""


def states(text: str, column: Column, bin_ms: int = 100) -> list[tuple[int, int | None, float | None]]:
    found = read(text, column, bin_ms * MS)
    return [(state.at_ns // MS, state.delay_ns, state.loss) for state in found.states]


def test_a_state_is_the_median_delay_and_the_lost_share_of_its_bin() -> None:
    assert states(LENS, "uplink") == [(0, 67_367_000, 0.2), (100, 49_363_000, 0.0)]
    assert states(LENS, "downlink") == [(0, 47_684_000, 0.2), (100, 47_935_000, 0.0)]


def test_a_round_trip_is_halved_and_lost_on_either_way() -> None:
    (first, second) = states(LENS, "rtt")
    assert first[1] == 57_526_000 and second == (100, 48_649_000, 0.0)
    assert first[2] is not None and 1 - (1 - first[2]) ** 2 == pytest.approx(3 / 5)


def test_the_length_is_that_of_the_bins() -> None:
    found = read(LENS, "rtt", 100 * MS)
    assert (found.length_ns, found.bin_ns) == (200 * MS, 100 * MS)


def test_ping_has_seconds_and_no_ways() -> None:
    text = "timestamp,rtt\n1705744800.5,90.0\n1705744800.52,96.0\n1705744801.4,-1\n"
    assert states(text, "rtt", 1000) == [(0, 46_500_000, pytest.approx(1 - (2 / 3) ** 0.5))]
    with pytest.raises(TraceError, match="no column uplink"):
        read(text, "uplink", 1000 * MS)


def test_a_bin_of_lost_packets_keeps_the_delay() -> None:
    text = "timestamp,rtt\n0,90\n1.5,-1\n2.5,80\n"
    assert states(text, "rtt", 1000) == [(0, 45 * MS, 0.0), (1000, 45 * MS, 1.0), (2000, 40 * MS, 0.0)]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("timestamp,rtt\n0,90\n3.5,80\n", 3, "comes after a gap: nothing was measured from 1 s on for 1 s"),
        ("timestamp,rtt\n0,90\n1,\n", 3, "is not a number"),
        ("timestamp,rtt\n0,90\n1,80,7\n", 3, "has 3 values, not 2"),
        ("timestamp,rtt\n5,90\n1,80\n", 3, "goes back"),
        ("timestamp,rtt\n0,-2\n", 2, "is negative"),
        ("timestamp,rtt\n0,1e9\n", 2, "is more than 274 s"),
        ("timestamp,rtt\n0,-1\n", 2, "has lost packets only"),
        ("timestamp,rtt\n", 1, "has no line below its columns"),
        ("timestamp,rtt\n0,nan\n", 2, "is not a number"),
    ],
)
def test_mistakes_have_their_line(text: str, line: int, said: str) -> None:
    with pytest.raises(TraceError) as refusal:
        read(text, "rtt", 1000 * MS)
    assert refusal.value.line == line and said in refusal.value.rule


def test_other_forms_are_none_of_these() -> None:
    assert is_one("timestamp, rtt") and is_one("timestamp,rtt,uplink,downlink")
    assert not is_one("time_s,delay_ms") and not is_one("12")


TEXT = """\
name: dish
segments: {a: {subnet: 10.0.0.0/24}, b: {subnet: 10.0.0.0/24}}
nodes: {x: {segment: a}, y: {segment: b}}
links:
  l:
    between: [a, b]
    forward: {trace: {file: d.csv, column: uplink}}
    reverse: {trace: {file: d.csv, column: downlink}}
"""


def plan(tmp_path: Path, text: str = TEXT, trace: str = LENS) -> Plan:
    (tmp_path / "d.csv").write_text(trace)
    file = tmp_path / "d.yaml"
    file.write_text(text)
    return make_plan(load(file))


def test_each_way_of_one_file_is_a_trace_of_its_own(tmp_path: Path) -> None:
    made = plan(tmp_path)
    (link,) = made.links
    ways = {made.traces[str(way.trace)].states[0].delay_ns for way in (link.forward, link.reverse)}
    assert ways == {67_367_000, 47_684_000} and len(made.traces) == 2


def test_a_column_belongs_to_round_trips_alone(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match="has no columns of measured round trips"):
        plan(tmp_path, trace="time_s,delay_ms\n0,10\n1,20\n")


def test_a_missing_value_of_a_usual_trace_is_a_gap(tmp_path: Path) -> None:
    text = TEXT.replace(", column: uplink", "").replace(", column: downlink", "")
    with pytest.raises(TopologyError, match="is empty: a gap"):
        plan(tmp_path, text, "time_s,delay_ms,loss_percent\n0,10,0\n1,,0\n")
