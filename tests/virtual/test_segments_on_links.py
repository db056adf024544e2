"""Tests that a link which begins at a node handles each TCP segment by itself, as a cable does."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from virtual_place import Place

from capture.reduce import reduce_run

LOSS = 0.02
LINKS = ("four", "six", "far")
SENT = ("TcpOutSegs", "TcpRetransSegs")  # the first counter does not include retransmissions
OTHERS = 20  # number of frames of neighbour discovery and multicast, besides TCP
# The links: one between nodes for each address family, and one from a node to a segment.
LAB = """\
name: segments
segments:
  lan: {subnet: 10.3.0.0/24}
nodes:
  four-a: {software: {up: {bulk: {to: four-b, congestion: reno}}}}
  four-b: {software: {sink: {bulk: {listen: 5001}}}}
  six-a: {software: {up: {bulk: {to: six-b, congestion: reno}}}}
  six-b: {software: {sink: {bulk: {listen: 5001}}}}
  far-a: {segment: lan, software: {up: {bulk: {to: far-b, congestion: cubic}}}}
  far-b: {segment: lan, software: {sink: {bulk: {listen: 5001}}}}
links:
  four: {between: [four-a, four-b], forward: {delay: 5 ms, loss: 2 %}, reverse: {delay: 5 ms}}
  six: {between: [six-a, six-b], subnet: "fd00:6::/64", forward: {delay: 5 ms, loss: 2 %}, reverse: {delay: 5 ms}}
  far: {between: [far-a, lan], forward: {delay: 5 ms, loss: 2 %}, reverse: {delay: 5 ms}}
captures:
  sent: {at: node four-a}
run: {hold: 4 s, drain: 2 s}
"""  # noqa: E501 - lines of YAML


@pytest.fixture(scope="module")
def run(places: Callable[[str], Place]) -> Path:
    place = places("segments")
    (place.cwd / "lab.yaml").write_text(LAB)
    run_dir = place.run("--lab", "segments", "--raw", file="lab.yaml").run_dir
    reduce_run(run_dir)
    return run_dir


def passed_and_dropped(run: Path, link: str) -> tuple[int, int]:
    """Returns the number of packets that the queue passed and dropped since the first sample, so without the
    link proof.
    """
    rows = pl.read_parquet(run / "links.parquet").filter(link=link, direction="forward").sort("t_ns")
    begin, end = rows.row(0, named=True), rows.row(-1, named=True)
    return end["packets"] - begin["packets"], end["dropped"] - begin["dropped"]


@pytest.mark.parametrize("link", LINKS)
def test_a_link_that_begins_at_a_node_loses_the_requested_share_of_tcp_segments(run: Path, link: str) -> None:
    passed, dropped = passed_and_dropped(run, link)
    sent = passed + dropped
    assert sent > 2000
    deviation = math.sqrt(LOSS * (1 - LOSS) / sent)
    assert abs(dropped / sent - LOSS) < 3 * deviation, (dropped, sent)


@pytest.mark.parametrize("link", LINKS)
def test_its_queue_counts_as_many_segments_as_the_stack_sent(run: Path, link: str) -> None:
    counters = pl.read_parquet(run / "stacks.parquet").filter(pl.col("counter").is_in(SENT), node=f"{link}-a")
    beside = sum(passed_and_dropped(run, link)) - counters["value"].sum()
    assert 0 <= beside <= OTHERS, beside


def test_no_captured_frame_is_longer_than_the_mtu(run: Path) -> None:
    frames = pl.read_parquet(run / "packets" / "sent.parquet")
    assert frames.height > 2000 and frames["wire_bytes"].max() == 1514
